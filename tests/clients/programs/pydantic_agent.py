from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

question = "What is the capital of France? Answer in one sentence."
settings = {"temperature": 0, "max_tokens": 64}


class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


# Each reads its base URL and its key from the environment.
for model in (OpenAIChatModel("default"), OpenAIResponsesModel("default"), AnthropicModel("default")):
    agent = Agent(model, model_settings=settings)
    print(type(model).__name__)

    # A whole answer.
    print("answer:", agent.run_sync(question).output)

    # The same answer, streamed.
    print("stream:", end=" ")
    for text in agent.run_stream_sync(question).stream_text(delta=True):
        print(text, end="", flush=True)
    print()

    # Structured output, by a tool that the model must call.
    print("parsed:", agent.run_sync(question, output_type=Place).output)
