from typing import Literal

from openai import OpenAI
from pydantic import BaseModel

client = OpenAI()  # reads OPENAI_BASE_URL and OPENAI_API_KEY
question = "What is the capital of France? Answer in one sentence."
settings = {"model": "default", "temperature": 0, "max_output_tokens": 64}

# A whole answer.
answer = client.responses.create(input=question, **settings)
print("answer:", answer.output_text)

# The same answer, streamed.
print("stream:", end=" ")
with client.responses.stream(input=question, **settings) as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
print()

# A tool call.
weather = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
    },
}
asked = client.responses.create(
    input="What is the weather in Paris?", tools=[weather], tool_choice="required", **settings
)
call = next(item for item in asked.output if item.type == "function_call")
print("tool:", call.name, call.arguments)


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


parsed = client.responses.parse(input=question, text_format=Place, **settings)
print("parsed:", parsed.output_parsed)

# A conversation that Hob stores: the next question refers to the answer before it.
more = client.responses.create(input="Say that again.", previous_response_id=answer.id, **settings)
print("more:", more.output_text)
print("stored:", client.responses.retrieve(answer.id).output_text == answer.output_text)
client.responses.delete(answer.id)
