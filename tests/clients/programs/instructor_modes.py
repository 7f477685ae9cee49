from collections.abc import Iterable
from typing import Literal

import instructor
from instructor import Mode
from pydantic import BaseModel


class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    in_europe: bool


MODES = {
    "openai/default": [Mode.TOOLS, Mode.JSON_SCHEMA, Mode.JSON, Mode.MD_JSON, Mode.PARALLEL_TOOLS, Mode.RESPONSES_TOOLS],
    "anthropic/default": [Mode.TOOLS, Mode.JSON_SCHEMA, Mode.JSON, Mode.PARALLEL_TOOLS],
}
question = [{"role": "user", "content": "What is the capital of France?"}]

# Each reads its base URL and its key from the environment.
for model, modes in MODES.items():
    for mode in modes:
        client = instructor.from_provider(model, mode=mode)
        wanted = Iterable[Place] if mode == Mode.PARALLEL_TOOLS else Place
        place = client.create(response_model=wanted, messages=question, max_tokens=64)
        print(f"{model} {mode.name}:", list(place) if mode == Mode.PARALLEL_TOOLS else place)
