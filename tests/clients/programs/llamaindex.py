import os
from typing import Literal

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

url = os.environ.get("HOB_URL", "http://localhost:8000/v1")
model = OpenAILike(
    api_base=url,
    api_key="hob",
    model="default",
    is_chat_model=True,
    is_function_calling_model=True,
    should_use_structured_outputs=True,
    context_window=8192,
    temperature=0,
    max_tokens=64,
)
question = [ChatMessage(role="user", content="What is the capital of France? Answer in one sentence.")]

# A whole answer.
print("answer:", model.chat(question).message.content)

# The same answer, streamed.
print("stream:", end=" ")
for piece in model.stream_chat(question):
    print(piece.delta, end="", flush=True)
print()


# A tool call.
def weather(city: Literal["Paris", "Rome"]) -> str:
    """The weather in a city."""
    return f"It is raining in {city}."


tool = FunctionTool.from_defaults(weather)
answer = model.chat_with_tools([tool], user_msg="What is the weather in Paris?", tool_required=True)
call = model.get_tool_calls_from_response(answer)[0]
print("tool:", call.tool_name, call.tool_kwargs)


# Structured output.
class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


print("parsed:", model.as_structured_llm(Place).chat(question).raw)

# Embeddings.
embeddings = OpenAILikeEmbedding(api_base=url, api_key="hob", model_name="default")
vectors = embeddings.get_text_embedding_batch(["A man is eating food.", "Someone has a meal."])
print("vectors:", len(vectors), "of", len(vectors[0]), "numbers")
