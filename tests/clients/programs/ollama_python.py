from typing import Literal

import ollama
from pydantic import BaseModel

client = ollama.Client()  # reads OLLAMA_HOST
question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
options = {"temperature": 0, "num_predict": 64}

# A whole answer.
answer = client.chat(model="default", messages=question, options=options)
print("answer:", answer.message.content)

# The same answer, streamed.
print("stream:", end=" ")
for part in client.chat(model="default", messages=question, options=options, stream=True):
    print(part.message.content, end="", flush=True)
print()

# The answer to a prompt without a conversation.
generated = client.generate(model="default", prompt=question[0]["content"], options=options)
print("generated:", generated.response)


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


parsed = client.chat(model="default", messages=question, options=options, format=Place.model_json_schema())
print("parsed:", Place.model_validate_json(parsed.message.content))

# Embeddings.
vectors = client.embed(model="default", input=["A man is eating food.", "Someone has a meal."]).embeddings
print("vectors:", len(vectors), "of", len(vectors[0]), "numbers")

# The models, and what one of them can do.
names = [model.model for model in client.list().models]
print("models:", ", ".join(names))
print("can:", ", ".join(client.show("default").capabilities))
