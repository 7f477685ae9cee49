"""Streamed chats against one server: tokens per second, with prompts and without, and the time to the first token, at several widths.

    streams.py URL MODEL OUT.json [--tokens 128] [--widths 1,8,32] [--rounds 3] [--words 40]

Every stream has a process of its own, which reads bytes and looks at little more than the last event, so that the client is no limit
for a graphics card. Needs nothing but the standard library.
"""

import argparse
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


def stream(address, body, start, results):
    """Asks once `start` is set, and puts (tokens, seconds to the first one, end of the answer, error) into `results`."""
    host, port = address
    text = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    connection = socket.create_connection(address, timeout=300)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start.wait()
    began = time.monotonic()
    connection.sendall(head.encode() + text)
    first, tail, whole = None, b"", b""
    while True:
        data = connection.recv(1 << 16)
        if not data:
            break
        if first is None:
            whole += data
            if TEXT.search(whole):
                first = time.monotonic() - began
        tail = (tail + data)[-4096:]
    ended = time.monotonic()
    found = USAGE.findall(tail)
    error = None if found and first is not None else (whole[:300] or tail[:300]).decode(errors="replace")
    results.put((int(found[-1]) if found else 0, first or 0.0, ended, error))


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
    errors = [error for _, _, _, error in answers if error]
    seconds = max(ended for _, _, ended, _ in answers) - began
    return {
        "tokens_per_second": sum(tokens for tokens, _, _, _ in answers) / seconds,
        # Without prompts: what llama.cpp's batch benchmark measures.
        "writing_per_second": sum((tokens - 1) / (ended - began - first) for tokens, first, ended, error in answers if not error),
        "first_token_ms": 1000 * statistics.median(first for _, first, _, _ in answers),
        "tokens": sum(tokens for tokens, _, _, _ in answers),
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
        print(f"{width:3} streams: {figures[width]['tokens_per_second']:8.1f} tokens/s, {figures[width]['writing_per_second']:8.1f} after the first, first token {figures[width]['first_token_ms']:7.1f} ms, "
              f"rounds {[round(one['tokens_per_second']) for one in rounds]} {[one['errors'] for one in rounds if one['errors']][:1] or ''}", flush=True)
    with open(options.out, "w") as file:
        json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
