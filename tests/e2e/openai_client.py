"""Drives a chat-completions server with the official `openai` package, as a user's program would.

    openai_client.py BASE_URL MODEL [CHECK...]

Prints one line per passed check and ends with 1 when any failed. Every check is a function below, and its name is what it
shows; with names on the command line only those run, and with the name `embeddings` those for a model that makes vectors.
Knows nothing of how the server or the engine behind it is started. The model may be tiny: no check depends on a clever
answer, only on a well-formed one.
"""

import asyncio
import json
import sys
import time
import traceback
from typing import Literal

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

CAPITAL = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
SHORT = 16
CONCURRENT_STREAMS = 8
ABSENT_MODEL = "no-such-model"

# Every run of the same request gives the same answer. A prompt taken out of llama.cpp's cache is computed in other
# batches, which may round differently, so the cache is off; that field is the engine's own and passes through us.
EXACT = {"temperature": 0, "seed": 7, "extra_body": {"cache_prompt": False}}

# A schema lets the model put white space between the parts, which takes tokens too.
STRUCTURED = {**EXACT, "max_tokens": 32}


class Place(BaseModel):
    """Its JSON has few possible forms, so that even a tiny model ends it within a few tokens."""

    city: Literal["Paris", "Rome"]
    in_europe: bool


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


EMBEDDING_CHECKS = []


def embedding_check(function):
    EMBEDDING_CHECKS.append(function)
    return function


class Session:
    """Where to ask: the client and the model under test."""

    def __init__(self, base_url, model):
        self.base_url = base_url
        self.model = model
        self.client = self.client_with_key("placeholder")

    def client_with_key(self, api_key):
        # Without retries a single wrong answer is seen, not smoothed over.
        return OpenAI(base_url=self.base_url, api_key=api_key, max_retries=0, timeout=60)

    def ask(self, **options):
        return self.client.chat.completions.create(**self.request(options))

    def request(self, options):
        return {"model": self.model, "messages": CAPITAL, "max_tokens": SHORT, **options}

    def refusal(self, kind, **options):
        """The error that a request raises; it must be of this kind."""
        try:
            answer = self.ask(**options)
        except kind as error:
            assert error.message, "an error needs a message"
            return error
        raise AssertionError(f"expected {kind.__name__}, got {answer!r}")


def text_of(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def assert_chunks_are_one_answer(chunks):
    """Role first, finish last and only there, one id, model and time throughout."""
    with_choice = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert with_choice[0].delta.role == "assistant", with_choice[0]
    assert not with_choice[0].delta.content, with_choice[0]
    assert all(choice.delta.role is None for choice in with_choice[1:]), "the role comes once"
    assert all(choice.finish_reason is None for choice in with_choice[:-1]), "only the last chunk finishes"
    assert with_choice[-1].finish_reason in ("stop", "length"), with_choice[-1]
    assert not with_choice[-1].delta.content, with_choice[-1]
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    heads = {(chunk.id, chunk.model, chunk.created) for chunk in chunks}
    assert len(heads) == 1, heads


def assert_usage_adds_up(usage, at_most):
    assert usage.prompt_tokens > 0, usage
    assert 0 < usage.completion_tokens <= at_most, usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage


@check
def the_model_list_has_the_model(session):
    models = session.client.models.list().data
    assert session.model in [model.id for model in models], models
    assert all(model.object == "model" and model.owned_by for model in models), models


@check
def an_absent_model_cannot_be_retrieved(session):
    try:
        found = session.client.models.retrieve(ABSENT_MODEL)
    except openai.NotFoundError as error:
        assert error.message
        return
    raise AssertionError(f"got a model that is not there: {found!r}")


@check
def a_chat_is_answered(session):
    answer = session.ask(**EXACT)
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-"), answer.id
    assert answer.model == session.model, answer.model
    assert abs(answer.created - time.time()) < 300, answer.created
    [choice] = answer.choices
    assert (choice.index, choice.message.role) == (0, "assistant")
    assert choice.message.content.strip(), "the answer is empty"
    assert choice.finish_reason in ("stop", "length"), choice.finish_reason
    assert not choice.message.tool_calls


@check
def usage_adds_up(session):
    assert_usage_adds_up(session.ask().usage, at_most=SHORT)


@check
def the_forms_real_clients_send_are_taken(session):
    parts = [{"type": "text", "text": "Say"}, {"type": "text", "text": " hello."}]
    messages = [
        {"role": "developer", "content": "You are brief."},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Again.", "name": "ada"},
    ]
    answer = session.client.chat.completions.create(
        model=session.model, messages=messages, max_completion_tokens=4, top_p=0.9, presence_penalty=0.1, user="ada"
    )
    assert answer.usage.completion_tokens <= 4, answer.usage


@check
def a_stream_is_the_same_answer_in_pieces(session):
    whole = session.ask(**EXACT).choices[0]
    chunks = list(session.ask(stream=True, **EXACT))
    assert_chunks_are_one_answer(chunks)
    assert len(chunks) > 3, "an answer of several tokens comes in several pieces"
    assert text_of(chunks) == whole.message.content, (text_of(chunks), whole.message.content)
    assert chunks[-1].choices[0].finish_reason == whole.finish_reason, (chunks[-1], whole)
    assert all(chunk.usage is None for chunk in chunks), "usage comes only when asked for"


@check
def a_stream_ends_with_usage_when_asked(session):
    *chunks, last = session.ask(stream=True, stream_options={"include_usage": True})
    assert_chunks_are_one_answer(chunks)
    assert last.choices == [], last
    assert_usage_adds_up(last.usage, at_most=SHORT)
    assert all(chunk.usage is None for chunk in chunks), "only the last chunk has usage"


@check
def the_stream_helper_follows_a_stream(session):
    with session.client.chat.completions.stream(**session.request(EXACT)) as stream:
        events = list(stream)
        final = stream.get_final_completion().choices[0]
    deltas = [event.delta for event in events if event.type == "content.delta"]
    [done] = [event for event in events if event.type == "content.done"]
    assert deltas and "".join(deltas) == done.content == final.message.content
    assert final.finish_reason in ("stop", "length"), final


@check
def a_json_schema_binds_the_answer(session):
    schema = {"name": "place", "strict": True, "schema": Place.model_json_schema()}
    answer = session.ask(response_format={"type": "json_schema", "json_schema": schema}, **STRUCTURED)
    assert set(json.loads(answer.choices[0].message.content)) == {"city", "in_europe"}


@check
def an_answer_is_parsed_into_a_class(session):
    request = session.request({"response_format": Place, **STRUCTURED})
    place = session.client.chat.completions.parse(**request).choices[0].message.parsed
    assert isinstance(place, Place), place


@check
def a_streamed_answer_is_parsed_into_a_class(session):
    request = session.request({"response_format": Place, **STRUCTURED})
    with session.client.chat.completions.stream(**request) as stream:
        place = stream.get_final_completion().choices[0].message.parsed
    assert isinstance(place, Place), place


@check
def a_json_object_is_json(session):
    messages = [{"role": "user", "content": 'Repeat exactly: {"ok": true}'}]
    answer = session.ask(messages=messages, response_format={"type": "json_object"}, **STRUCTURED)
    [choice] = answer.choices
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict), choice
    else:
        # Cut off in the middle; without the format the model would have begun with words.
        assert choice.message.content.lstrip().startswith("{"), choice


def assert_probabilities(entries, text):
    assert "".join(entry.token for entry in entries) == text, entries
    for entry in entries:
        assert entry.logprob <= 0, entry
        assert bytes(entry.bytes).decode() == entry.token, entry
        assert len(entry.top_logprobs) == 3, entry
        assert all(other.logprob <= 0 for other in entry.top_logprobs), entry


@check
def logprobs_cover_the_answer(session):
    [choice] = session.ask(logprobs=True, top_logprobs=3, max_tokens=6, **EXACT).choices
    assert_probabilities(choice.logprobs.content, choice.message.content)


@check
def logprobs_come_with_the_stream(session):
    chunks = list(session.ask(logprobs=True, top_logprobs=3, max_tokens=6, stream=True, **EXACT))
    told = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices and chunk.choices[0].logprobs]
    assert_probabilities([entry for logprobs in told for entry in logprobs.content or []], text_of(chunks))


@check
def a_stop_word_ends_the_answer_and_is_left_out(session):
    whole = session.ask(**EXACT).choices[0].message.content
    # A word from the middle of what the model says anyway.
    word = whole.split()[2]
    [choice] = session.ask(stop=[word], **EXACT).choices
    assert choice.finish_reason == "stop", choice
    assert word not in choice.message.content and whole.startswith(choice.message.content), choice


@check
def one_token_is_an_answer_cut_by_length(session):
    answer = session.ask(max_tokens=1)
    assert answer.choices[0].finish_reason == "length", answer
    assert answer.usage.completion_tokens == 1, answer.usage


@check
def two_answers_are_given_when_two_are_asked_for(session):
    answer = session.ask(n=2, max_tokens=4)
    assert sorted(choice.index for choice in answer.choices) == [0, 1], answer
    assert all(choice.message.content for choice in answer.choices), answer


@check
def any_api_key_is_accepted(session):
    for key in ("<API_KEY>", "sk-of-somewhere-else"):
        assert session.client_with_key(key).models.list().data, key


@check
def an_unknown_model_is_not_found(session):
    for stream in (False, True):
        error = session.refusal(openai.NotFoundError, model=ABSENT_MODEL, stream=stream)
        assert error.code == "model_not_found", error.body
        assert ABSENT_MODEL in error.message, error.message


@check
def a_wrong_value_is_refused_with_its_name(session):
    cases = [
        ("temperature", {"temperature": 3}),
        ("max_tokens", {"max_tokens": 0}),
        ("messages", {"messages": []}),
        ("messages[0].role", {"messages": [{"role": "wizard", "content": "hi"}]}),
    ]
    for param, options in cases:
        for stream in (False, True):
            error = session.refusal(openai.BadRequestError, stream=stream, **options)
            assert (error.type, error.param) == ("invalid_request_error", param), error.body


@check
def concurrent_streams_do_not_mix(session):
    async def one_stream(client, number):
        messages = [{"role": "user", "content": f"Write a line about the number {number}."}]
        request = session.request({"messages": messages, "stream": True})
        return [chunk async for chunk in await client.chat.completions.create(**request)]

    async def all_streams():
        async with AsyncOpenAI(base_url=session.base_url, api_key="placeholder", max_retries=0, timeout=60) as client:
            return await asyncio.gather(*(one_stream(client, number) for number in range(CONCURRENT_STREAMS)))

    answers = asyncio.run(all_streams())
    for chunks in answers:
        assert_chunks_are_one_answer(chunks)
        assert text_of(chunks).strip(), "an answer is empty"
    assert len({chunks[0].id for chunks in answers}) == CONCURRENT_STREAMS, "two streams share an id"


@check
def a_stream_closed_early_leaves_the_server_ready(session):
    stream = session.ask(stream=True, max_tokens=512, extra_body={"ignore_eos": True})
    for chunk in stream:
        if text_of([chunk]):
            break
    stream.close()
    assert session.ask(**EXACT).choices[0].message.content.strip()


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


@embedding_check
def a_text_becomes_a_vector(session):
    # Without a word about the encoding the client asks for base64 and decodes it.
    answer = session.client.embeddings.create(model=session.model, input="A man is eating food.")
    assert (answer.object, answer.model) == ("list", session.model), answer
    [datum] = answer.data
    assert (datum.object, datum.index) == ("embedding", 0), datum
    assert abs(dot(datum.embedding, datum.embedding) - 1) < 1e-3, "it has length one"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0, answer.usage


@embedding_check
def base64_and_floats_are_the_same_numbers(session):
    packed = session.client.embeddings.create(model=session.model, input="hello").data[0].embedding
    plain = session.client.embeddings.create(model=session.model, input="hello", encoding_format="float").data[0].embedding
    assert len(packed) == len(plain) > 0
    assert all(abs(a - b) < 1e-6 for a, b in zip(packed, plain, strict=True))


@embedding_check
def texts_alike_are_near_each_other(session):
    texts = ["A man is eating food.", "Someone has a meal.", "Share prices fell on Monday."]
    answer = session.client.embeddings.create(model=session.model, input=texts)
    assert [datum.index for datum in answer.data] == [0, 1, 2]
    man, meal, prices = (datum.embedding for datum in answer.data)
    assert dot(man, meal) > dot(man, prices) + 0.2, (dot(man, meal), dot(man, prices))


@embedding_check
def several_hundred_texts_at_once_are_taken(session):
    texts = [f"Sentence number {number}." for number in range(300)]
    answer = session.client.embeddings.create(model=session.model, input=texts)
    assert len(answer.data) == 300 and len({tuple(datum.embedding) for datum in answer.data}) == 300


@embedding_check
def tokens_are_embedded_as_texts_are(session):
    answer = session.client.embeddings.create(model=session.model, input=[[7592], [2088, 2003]])
    assert [datum.index for datum in answer.data] == [0, 1], answer
    for datum in answer.data:
        assert abs(dot(datum.embedding, datum.embedding) - 1) < 1e-3, "it has length one"


@embedding_check
def what_cannot_be_embedded_is_refused_by_name(session):
    for param, options in [
        ("input", {"input": []}),
        ("input[0]", {"input": ""}),
        ("input", {"input": "word " * 600}),
        ("dimensions", {"input": "a", "dimensions": 7}),
    ]:
        try:
            answer = session.client.embeddings.create(model=session.model, **options)
        except openai.BadRequestError as error:
            assert (error.type, error.param) == ("invalid_request_error", param), error.body
            continue
        raise AssertionError(f"{options} gave {answer!r}")


@embedding_check
def a_text_that_is_too_long_is_told_both_lengths(session):
    try:
        session.client.embeddings.create(model=session.model, input="word " * 600)
    except openai.BadRequestError as error:
        assert "602" in error.message and "512" in error.message, error.message
        return
    raise AssertionError("a text beyond the context was taken")


@embedding_check
def it_does_not_chat(session):
    error = session.refusal(openai.BadRequestError)
    assert "embedding model" in error.message, error.message


def run(checks, session):
    """Runs them all, so that one look at the output shows everything that is wrong; true when all passed."""
    failed = []
    for function in checks:
        name = function.__name__.replace("_", " ")
        began = time.monotonic()
        try:
            function(session)
        except Exception:
            failed.append(name)
            print(f"FAILED {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        else:
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(checks) - len(failed)} of {len(checks)} checks passed", flush=True)
    return not failed


def main(arguments):
    if len(arguments) < 2:
        sys.exit("usage: openai_client.py BASE_URL MODEL [CHECK...], such as: openai_client.py http://127.0.0.1:8000/v1 m")
    base_url, model, *wanted = arguments
    known = {function.__name__: [function] for function in [*CHECKS, *EMBEDDING_CHECKS]}
    known["embeddings"] = EMBEDDING_CHECKS
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no check named {', '.join(unknown)}; there is: {', '.join(known)}")
    checks = [function for name in wanted for function in known[name]] or CHECKS
    sys.exit(0 if run(checks, Session(base_url, model)) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
