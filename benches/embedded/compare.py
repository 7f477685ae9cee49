"""Hob's embedded engine and llama.cpp's own server, side by side on this machine. Run it with './dev bench embedded'.

Each round starts one of the two, measures it over HTTP and stops it, and then does the same with the other: two engines that
run at once would only measure each other. Prompts differ from round to round, so that nothing is remembered, and are the same
for both. Needs nothing but the standard library.
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# Tokens of one conversation. Both share one cache of twice as many among all of them, which is enough for 32 of this bench.
CONTEXT = 4096
CELLS = 2 * CONTEXT
PROSE = "The quick brown fox jumps over the lazy dog and wonders what the dog will say when it wakes up. "
WORDS = ("time people way water word number day part sound place year name line house picture play spell air page letter "
         "mother answer study world high every near food between country plant school father tree city earth light").split()
START_SECONDS = 120
ANSWER_SECONDS = 600


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare the embedded engine with llama.cpp's own server.")
    parser.add_argument("--hob", required=True, help="the program hob, built in release")
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--out", required=True, help="where the figures go, as JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=96, help="tokens of an answer")
    parser.add_argument("--prompt", type=int, default=1000, help="tokens of the long prompt, about")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--threads", type=numbers, default=[physical_cores()], help="such as 2,4,8")
    parser.add_argument("--streams", type=numbers, default=[1, 8, 32], help="such as 1,8,32")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.tokens < 2:
        sys.exit("at least one round, and at least two tokens")
    return arguments


def numbers(text):
    return [int(number) for number in text.split(",")]


def physical_cores():
    try:
        with open("/proc/cpuinfo") as file:
            blocks = file.read().split("\n\n")
    except OSError:
        return max(1, (os.cpu_count() or 2) // 2)
    cores = set()
    for block in blocks:
        fields = dict(line.replace("\t", "").split(":", 1) for line in block.splitlines() if ":" in line)
        if "core id" in fields:
            cores.add((fields.get("physical id"), fields["core id"]))
    allowed = len(os.sched_getaffinity(0))
    return max(1, min(len(cores) or allowed, allowed))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def running(command, environment, port, log):
    """A server from its first healthy answer to its end."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                sys.exit(f"{command[0]} does not start:\n{log.read().decode(errors='replace')}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def start_hob(arguments, threads, directory, log):
    home = tempfile.mkdtemp(dir=directory)
    os.makedirs(os.path.join(home, "models"))
    os.symlink(arguments.model, os.path.join(home, "models", "bench.gguf"))
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write(
            '[engine]\ndefault = "embedded"\n'
            f"[engine.embedded]\nthreads = {threads}\ncontext = {CONTEXT}\nparallel = {max(arguments.streams)}\n"
        )
    port = free_port()
    command = [arguments.hob, "serve", "--host", "127.0.0.1", "--port", str(port), "-e", "embedded", "-a", "none"]
    return port, running(command, dict(os.environ, HOB_HOME=home), port, log)


def start_llama_server(arguments, threads, _directory, log):
    port = free_port()
    slots = max(arguments.streams)
    command = [arguments.llama_server, "--host", "127.0.0.1", "--port", str(port), "-m", arguments.model, "-a", "bench",
               "-t", str(threads), "-np", str(slots), "-c", str(CELLS), "-kvu"]
    return port, running(command, dict(os.environ), port, log)


ENGINES = {"hob": start_hob, "llama.cpp": start_llama_server}


def ask(port, arguments, text, tokens):
    """Streams one answer: seconds to the first token, seconds to the last, tokens of prompt and answer."""
    body = {
        "model": "bench", "messages": [{"role": "user", "content": text}], "temperature": arguments.temperature, "seed": 1,
        "max_tokens": tokens, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    payload = json.dumps(body)
    began = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", payload, {"content-type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        sys.exit(f"port {port} answered {response.status}: {response.read().decode(errors='replace')}")
    first = last = usage = None
    for line in response:
        # Searched, because this client shares the processor with the server that it measures.
        if b'"content":"' in line:
            last = time.perf_counter()
            first = first or last
        if b'"usage":{' in line:
            usage = json.loads(line[6:])["usage"]
    connection.close()
    if first is None or usage is None:
        sys.exit(f"port {port}: a stream without text or without usage")
    return first - began, last - began, usage["prompt_tokens"], usage["completion_tokens"]


def question(seed):
    """Words that no other question begins with."""
    words = random.Random(seed)
    return " ".join(words.choice(WORDS) for _ in range(40))


def at_once(port, streams, work):
    """What `work` gives for the number of each stream, all at once, and the seconds that they took together."""
    results = [None] * streams

    def stream(index):
        results[index] = work(index)

    threads = [threading.Thread(target=stream, args=(index,)) for index in range(streams)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    if None in results:
        sys.exit(f"port {port}: one of {streams} streams failed")
    return results, took


def together(port, arguments, streams, number):
    """The tokens per second of all streams together, and the milliseconds to the first token."""
    def one_answer(index):
        return ask(port, arguments, question(f"{number} {streams} {index}"), arguments.tokens)

    results, took = at_once(port, streams, one_answer)
    return sum(result[3] for result in results) / took, statistics.median(result[0] for result in results) * 1000


def measure(port, arguments, number):
    ask(port, arguments, "Hello.", 4)  # The first answer pays for what is loaded lazily.
    figures = {}
    for streams in arguments.streams:
        rate, first = together(port, arguments, streams, number)
        figures[f"{streams} streams"] = rate
        figures[f"first token, {streams} streams"] = first
    repeats = max(1, arguments.prompt // 21)
    read, _, prompt_tokens, _ = ask(port, arguments, f"Text {number}. " + PROSE * repeats, 1)
    figures["prompt"] = prompt_tokens / read
    return figures


def measures(arguments):
    """The name, the unit, whether more is better, and the wanted ratio."""
    for streams in arguments.streams:
        yield f"{streams} streams", "tokens/s", True, 1.0 if streams == 1 else 1.2
    for streams in arguments.streams:
        yield f"first token, {streams} streams", "ms", False, 0.8
    yield "prompt", "tokens/s", True, 1.0


def compare(arguments, threads, directory):
    rounds = {name: [] for name in ENGINES}
    for number in range(arguments.rounds):
        # The first one may find the machine cooler, so they take turns at that too.
        for name in list(ENGINES)[:: 1 if number % 2 == 0 else -1]:
            with tempfile.TemporaryFile(dir=directory) as log:
                port, server = ENGINES[name](arguments, threads, directory, log)
                with server:
                    rounds[name].append(measure(port, arguments, number))
    return rounds


def table(arguments, threads, rounds):
    rows = []
    for name, unit, more_is_better, wanted in measures(arguments):
        ours, theirs = (statistics.median(result[name] for result in rounds[engine]) for engine in ENGINES)
        ratio = ours / theirs
        reached = ratio >= wanted if more_is_better else ratio <= wanted
        rows.append({"threads": threads, "measure": name, "unit": unit, "hob": ours, "llama.cpp": theirs, "ratio": ratio,
                     "wanted": wanted, "reached": reached})
        print(f"{threads:<8} {name:<24} {ours:>9.1f} {theirs:>10.1f} {unit:<9} {ratio:>6.2f}  "
              f"{'at least' if more_is_better else 'at most'} {wanted} {'reached' if reached else 'MISSED'}", flush=True)
    return rows


def version(program):
    """The file beside a program that this bench built says what it was built from; others are asked."""
    notes = f"{program}.version"
    if os.path.exists(notes):
        with open(notes) as file:
            return file.read().strip()
    asked = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return asked.stdout.strip().replace("\n", "; ")


def main():
    arguments = parse_arguments()
    arguments.model = os.path.realpath(arguments.model)
    versions = {"hob": version(arguments.hob), "llama.cpp": version(arguments.llama_server)}
    report = {"machine": platform.platform(), "cores": os.cpu_count(), "model": os.path.basename(arguments.model),
              "versions": versions, "rounds": arguments.rounds, "tokens": arguments.tokens,
              "temperature": arguments.temperature, "rows": [], "raw": {}}
    for name, built in versions.items():
        print(f"{name}: {built}")
    print(f"{report['model']}, {report['cores']} cores, {arguments.rounds} rounds of {arguments.tokens} tokens, median of each")
    print(f"{'threads':<8} {'':<24} {'hob':>9} {'llama.cpp':>10} {'':<9} {'ratio':>6}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for threads in arguments.threads:
            rounds = compare(arguments, threads, directory)
            report["raw"][threads] = rounds
            report["rows"] += table(arguments, threads, rounds)
            # After each, so that a run that is cut short leaves its figures.
            with open(arguments.out, "w") as file:
                json.dump(report, file, indent=1)
    print(f"figures: {arguments.out}")


if __name__ == "__main__":
    main()
