"""Streamed chats against one server: tokens per second, of the whole and while all streams write, and the time to the first token, at several widths.

    streams.py URL MODEL OUT.json [--tokens 128] [--widths 1,8,32] [--rounds 3] [--words 40]

Every stream has a process of its own, which reads bytes and only counts events, so that the client is no limit for a graphics card. Needs
nothing but the standard library.
"""

import argparse
import collections
import json
import multiprocessing
import random
import re
import socket
import statistics
import time
from urllib.parse import urlparse

WORDS = (
    "the of and to in is you that it he was for on are as with his they be at one have this from or had by hot word but what some we can out "
    "other were all there when up use your how said an each she which do their time if will way about many then them write would like so these"
).split()

# The first event with text; the last event has the usage.
TEXT = re.compile(rb'"content":\s*"[^"]')
USAGE = re.compile(rb'"completion_tokens":\s*(\d+)')


# Times are those of the clock that all processes share. `events` are (time, number of events) of each read.
Answer = collections.namedtuple("Answer", "tokens began first ended events error")


def stream(address, body, start, results):
    """Asks once `start` is set, and puts an Answer into `results`."""
    host, port = address
    text = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    connection = socket.create_connection(address, timeout=300)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start.wait()
    began = time.monotonic()
    connection.sendall(head.encode() + text)
    first, tail, whole, events = None, b"", b"", []
    while True:
        data = connection.recv(1 << 16)
        if not data:
            break
        now = time.monotonic()
        if first is None:
            whole += data
            if TEXT.search(whole):
                first = now
        events.append((now, data.count(b"data:")))
        tail = (tail + data)[-4096:]
    ended = time.monotonic()
    found = USAGE.findall(tail)
    error = None if found and first is not None else (whole[:300] or tail[:300]).decode(errors="replace")
    results.put(Answer(int(found[-1]) if found else 0, began, first or ended, ended, events, error))


def tokens_between(answer, start, end):
    """The tokens of an answer in this time. Some tokens have no event of their own, so events are scaled to tokens."""
    total = sum(count for _, count in answer.events)
    return answer.tokens / total * sum(count for now, count in answer.events if start < now <= end)


def measure(url, model, width, options, seed):
    address = (url.hostname, url.port)
    start, results = multiprocessing.Event(), multiprocessing.Queue()
    processes = []
    for number in range(width):
        chooser = random.Random(seed * 1000 + number)
        question = " ".join(chooser.choice(WORDS) for _ in range(options.words))
        body = {
            "model": model, "agent": "none", "stream": True, "temperature": 0.7, "seed": number, "max_tokens": options.tokens,
            "ignore_eos": True, "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": question}],
        }
        processes.append(multiprocessing.Process(target=stream, args=(address, body, start, results)))
    for process in processes:
        process.start()
    time.sleep(0.3)  # All are connected and wait for the start.
    began = time.monotonic()
    start.set()
    answers = [results.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    errors = [answer.error for answer in answers if answer.error]
    seconds = max(answer.ended for answer in answers) - began
    # All streams write from the last first token to the first end: what llama.cpp's batch benchmark measures.
    start, end = max(answer.first for answer in answers), min(answer.ended for answer in answers)
    writing = sum(tokens_between(answer, start, end) for answer in answers) / (end - start) if end > start and not errors else 0.0
    return {
        "tokens_per_second": sum(answer.tokens for answer in answers) / seconds,
        "writing_per_second": writing,
        "first_token_ms": 1000 * statistics.median(answer.first - answer.began for answer in answers),
        "tokens": sum(answer.tokens for answer in answers),
        "errors": errors[:2],
    }


def main():
    parser = argparse.ArgumentParser(description="Measure streams of one server.")
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--widths", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", type=int, default=40)
    options = parser.parse_args()
    url = urlparse(options.url)
    figures = {}
    measure(url, options.model, 1, options, 99)  # The first answer loads the model.
    for width in map(int, options.widths.split(",")):
        rounds = [measure(url, options.model, width, options, 100 * width + number) for number in range(options.rounds)]
        figures[width] = {
            "tokens_per_second": statistics.median(one["tokens_per_second"] for one in rounds),
            "writing_per_second": statistics.median(one["writing_per_second"] for one in rounds),
            "first_token_ms": statistics.median(one["first_token_ms"] for one in rounds),
            "rounds": rounds,
        }
        print(f"{width:3} streams: {figures[width]['tokens_per_second']:8.1f} tokens/s, {figures[width]['writing_per_second']:8.1f} while all write, first token {figures[width]['first_token_ms']:7.1f} ms, "
              f"rounds {[round(one['tokens_per_second']) for one in rounds]} {[one['errors'] for one in rounds if one['errors']][:1] or ''}", flush=True)
    with open(options.out, "w") as file:
        json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
