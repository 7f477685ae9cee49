import os
from typing import Literal

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

url = os.environ.get("HOB_URL", "http://localhost:8000/v1")
model = ChatOpenAI(base_url=url, api_key="hob", model="default", temperature=0, max_tokens=64)
question = "What is the capital of France? Answer in one sentence."

# A whole answer.
print("answer:", model.invoke(question).content)

# The same answer, streamed.
print("stream:", end=" ")
for chunk in model.stream(question):
    print(chunk.content, end="", flush=True)
print()


# A tool call.
@tool
def weather(city: Literal["Paris", "Rome"]) -> str:
    """The weather in a city."""
    return f"It is raining in {city}."


asked = model.bind_tools([weather], tool_choice="any").invoke("What is the weather in Paris?")
print("tool:", asked.tool_calls[0]["name"], asked.tool_calls[0]["args"])


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


print("parsed:", model.with_structured_output(Place, method="json_schema").invoke(question))

# Embeddings. Without the last setting, LangChain sends OpenAI token numbers instead of text.
embeddings = OpenAIEmbeddings(base_url=url, api_key="hob", model="default", check_embedding_ctx_length=False)
vectors = embeddings.embed_documents(["A man is eating food.", "Someone has a meal."])
print("vectors:", len(vectors), "of", len(vectors[0]), "numbers")

# An answer by the Responses API.
responses = ChatOpenAI(base_url=url, api_key="hob", model="default", temperature=0, use_responses_api=True)
print("responses:", responses.invoke(question).text)
