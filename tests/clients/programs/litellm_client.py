import os

import litellm

litellm.suppress_debug_info = True

url = os.environ.get("HOB_URL", "http://localhost:8000/v1")
question = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
settings = {"messages": question, "temperature": 0, "max_tokens": 64}

# The same model by three APIs of Hob. A whole answer, and a streamed one.
for model, base in {
    "openai/default": url,
    "anthropic/default": url.removesuffix("/v1"),
    "ollama_chat/default": url.removesuffix("/v1"),
}.items():
    answer = litellm.completion(model=model, api_base=base, api_key="hob", **settings)
    print(f"{model} answer:", answer.choices[0].message.content)
    print(f"{model} stream:", end=" ")
    for chunk in litellm.completion(model=model, api_base=base, api_key="hob", stream=True, **settings):
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()

# The Responses API.
response = litellm.responses(
    model="openai/default", api_base=url, api_key="hob", input=question[0]["content"], temperature=0, max_output_tokens=64
)
print("response:", response.output_text)

# A text that the model continues.
continued = litellm.text_completion(
    model="text-completion-openai/default",
    api_base=url,
    api_key="hob",
    prompt="The capital of France is",
    temperature=0,
    max_tokens=8,
)
print("continued:", continued.choices[0].text)

# Embeddings.
vectors = litellm.embedding(
    model="openai/default", api_base=url, api_key="hob", input=["A man is eating food.", "Someone has a meal."]
)
print("vectors:", len(vectors.data), "of", len(vectors.data[0]["embedding"]), "numbers")
