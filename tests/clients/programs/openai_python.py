from typing import Literal

from openai import OpenAI
from pydantic import BaseModel

client = OpenAI()  # reads OPENAI_BASE_URL and OPENAI_API_KEY
question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]

# A whole answer.
answer = client.chat.completions.create(model="default", messages=question, temperature=0, max_tokens=16)
print("answer:", answer.choices[0].message.content)

# The same answer, streamed.
print("stream:", end=" ")
for chunk in client.chat.completions.create(
    model="default", messages=question, temperature=0, max_tokens=16, stream=True
):
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()

# A tool call.
weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
        },
    },
}
call = client.chat.completions.create(
    model="default",
    messages=[{"role": "user", "content": "What is the weather in Paris?"}],
    tools=[weather],
    tool_choice="required",
    temperature=0,
    max_tokens=64,
)
function = call.choices[0].message.tool_calls[0].function
print("tool:", function.name, function.arguments)


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


parsed = client.chat.completions.parse(
    model="default", messages=question, response_format=Place, temperature=0, max_tokens=64
)
print("parsed:", parsed.choices[0].message.parsed)

# Embeddings.
vectors = client.embeddings.create(model="default", input=["A man is eating food.", "Someone has a meal."])
print("vectors:", len(vectors.data), "of", len(vectors.data[0].embedding), "numbers")

# A text that the model continues.
continued = client.completions.create(model="default", prompt="The capital of France is", temperature=0, max_tokens=8)
print("continued:", continued.choices[0].text)
