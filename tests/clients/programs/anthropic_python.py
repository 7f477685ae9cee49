from typing import Literal

from anthropic import Anthropic
from pydantic import BaseModel

client = Anthropic()  # reads ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY
question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
settings = {"model": "default", "max_tokens": 64, "extra_body": {"temperature": 0}}

# A whole answer.
answer = client.messages.create(messages=question, **settings)
print("answer:", answer.content[0].text)

# The same answer, streamed.
print("stream:", end=" ")
with client.messages.stream(messages=question, **settings) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
print()

# A tool call.
weather = {
    "name": "weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
    },
}
asked = client.messages.create(
    messages=[{"role": "user", "content": "What is the weather in Paris?"}],
    tools=[weather],
    tool_choice={"type": "any"},
    **settings,
)
call = next(block for block in asked.content if block.type == "tool_use")
print("tool:", call.name, call.input)


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


parsed = client.messages.parse(messages=question, output_format=Place, **settings)
print("parsed:", parsed.parsed_output)

# The size of a prompt.
counted = client.messages.count_tokens(model="default", messages=question)
print("tokens:", counted.input_tokens)
