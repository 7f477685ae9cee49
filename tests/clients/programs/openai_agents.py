from typing import Literal

from agents import Agent, ModelSettings, Runner
from pydantic import BaseModel

# Reads OPENAI_BASE_URL and OPENAI_API_KEY, and uses the Responses API.
agent = Agent(name="Guide", model="default", model_settings=ModelSettings(temperature=0, max_tokens=64))
question = "What is the capital of France? Answer in one sentence."


class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


async def main():
    # A whole answer.
    print("answer:", (await Runner.run(agent, question)).final_output)

    # The same answer, streamed.
    print("stream:", end=" ")
    async for event in Runner.run_streamed(agent, question).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)
    print()

    # Structured output.
    print("parsed:", (await Runner.run(agent.clone(output_type=Place), question)).final_output)


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
