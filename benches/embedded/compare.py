"""Hob's embedded engine and llama.cpp's own server, side by side on this machine. Run it with './dev bench embedded'.

Each round starts one of the two, measures it over HTTP and stops it, and then does the same with the other: two engines that
run at once would only measure each other. Prompts differ from round to round, so that nothing is remembered, and are the same
for both.
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

STREAMS = 8
CONTEXT = 4096
PROSE = "The quick brown fox jumps over the lazy dog and wonders what the dog will say when it wakes up. "
START_SECONDS = 120
ANSWER_SECONDS = 600

# name, unit, whether more is better
MEASURES = [
    ("1 stream", "tokens/s", True),
    ("8 streams", "tokens/s", True),
    ("first token", "ms", False),
    ("prompt", "tokens/s", True),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare the embedded engine with llama.cpp's own server.")
    parser.add_argument("--hob", required=True, help="the program hob, built in release")
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--model", required=True, help="a GGUF file in Q4_1")
    parser.add_argument("--out", required=True, help="where the figures go, as JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--prompt", type=int, default=1000, help="tokens of the long prompt, about")
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--forms", default="Q4_1,Q4_0", help="forms of the weights, separated by commas")
    return parser.parse_args()


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


def tuned_file(arguments, directory):
    """The same model in Q4_0, made by 'hob model tune'."""
    home = os.path.join(directory, "tuning")
    models = os.path.join(home, "models")
    os.makedirs(models)
    shutil.copy(arguments.model, os.path.join(models, "model.gguf"))
    made = subprocess.run(
        [arguments.hob, "model", "tune", "model", "--always"],
        env=dict(os.environ, HOB_HOME=home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    if made.returncode != 0:
        sys.exit(f"hob model tune failed:\n{made.stdout}")
    print(made.stdout.strip(), flush=True)
    return os.path.join(models, "tuned", "model.gguf")


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


def start_hob(arguments, model, directory, log):
    home = tempfile.mkdtemp(dir=directory)
    os.makedirs(os.path.join(home, "models"))
    os.symlink(model, os.path.join(home, "models", "bench.gguf"))
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write(
            '[engine]\ndefault = "embedded"\n'
            f"[engine.embedded]\nthreads = {arguments.threads}\ncontext = {CONTEXT}\nparallel = {STREAMS}\n"
        )
    port = free_port()
    command = [arguments.hob, "serve", "--host", "127.0.0.1", "--port", str(port), "-e", "embedded", "-a", "none"]
    return port, running(command, dict(os.environ, HOB_HOME=home), port, log)


def start_llama_server(arguments, model, _directory, log):
    port = free_port()
    # Hob gives conversations twice the context of one to share.
    command = [arguments.llama_server, "--host", "127.0.0.1", "--port", str(port), "-m", model, "-a", "bench",
               "-t", str(arguments.threads), "-np", str(STREAMS), "-c", str(2 * CONTEXT)]
    return port, running(command, dict(os.environ), port, log)


ENGINES = {"hob": start_hob, "llama.cpp": start_llama_server}


def ask(port, text, tokens):
    """Streams one answer: seconds to the first token, seconds to the last, tokens of prompt and answer."""
    body = {
        "model": "bench", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": tokens,
        "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
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
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if any(choice["delta"].get("content") for choice in event["choices"]):
            last = time.perf_counter()
            first = first or last
        usage = event.get("usage") or usage
    connection.close()
    if first is None or usage is None:
        sys.exit(f"port {port}: a stream without text or without usage")
    return first - began, last - began, usage["prompt_tokens"], usage["completion_tokens"]


def measure(port, arguments, number):
    ask(port, "Hello.", 4)  # The first answer pays for what is loaded lazily.
    first, last, _, tokens = ask(port, f"Round {number}: tell me a story.", arguments.tokens)
    alone = (tokens - 1) / (last - first)
    firsts = [first] + [ask(port, f"Question {number}.{turn}: name a colour.", 1)[0] for turn in range(4)]

    repeats = max(1, arguments.prompt // 21)
    read, _, prompt_tokens, _ = ask(port, f"Text {number}. " + PROSE * repeats, 1)

    results = [None] * STREAMS
    def stream(index):
        results[index] = ask(port, f"Story {index} of round {number}: tell it.", arguments.tokens)
    threads = [threading.Thread(target=stream, args=(index,)) for index in range(STREAMS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = time.perf_counter() - began
    if None in results:
        sys.exit(f"port {port}: one of {STREAMS} streams failed")
    return {
        "1 stream": alone,
        "8 streams": sum(result[3] for result in results) / together,
        "first token": statistics.median(firsts) * 1000,
        "prompt": prompt_tokens / read,
    }


def compare(arguments, model, directory):
    rounds = {name: [] for name in ENGINES}
    for number in range(arguments.rounds):
        # Whoever begins may find the machine cooler, so they take turns at that too.
        for name in list(ENGINES)[:: 1 if number % 2 == 0 else -1]:
            with tempfile.TemporaryFile(dir=directory) as log:
                port, server = ENGINES[name](arguments, model, directory, log)
                with server:
                    rounds[name].append(measure(port, arguments, number))
    return rounds


def table(form, rounds):
    rows = []
    for name, unit, more_is_better in MEASURES:
        ours, theirs = (statistics.median(result[name] for result in rounds[engine]) for engine in ENGINES)
        ratio = ours / theirs
        reached = ratio >= 1 if more_is_better else ratio <= 1
        rows.append({"form": form, "measure": name, "unit": unit, "hob": ours, "llama.cpp": theirs,
                     "ratio": ratio, "wanted": "at least 1" if more_is_better else "at most 1", "reached": reached})
        print(f"{form:<6} {name:<12} {ours:>9.1f} {theirs:>10.1f} {unit:<9} {ratio:>6.2f}  "
              f"{'as wanted' if reached else 'not as wanted'} ({rows[-1]['wanted']})", flush=True)
    return rows


def main():
    arguments = parse_arguments()
    arguments.model = os.path.realpath(arguments.model)
    forms = arguments.forms.split(",")
    unknown = [form for form in forms if form not in ("Q4_1", "Q4_0")]
    if unknown or arguments.rounds < 1 or arguments.tokens < 2:
        sys.exit("there are the forms Q4_1 and Q4_0, at least one round, and at least two tokens")
    report = {"machine": platform.platform(), "threads": arguments.threads, "rounds": arguments.rounds,
              "tokens": arguments.tokens, "rows": [], "raw": {}}
    with tempfile.TemporaryDirectory() as directory:
        files = {"Q4_1": arguments.model}
        if "Q4_0" in forms:
            files["Q4_0"] = tuned_file(arguments, directory)
        print(f"{arguments.threads} threads, {arguments.rounds} rounds, median of each")
        print(f"{'form':<6} {'':<12} {'hob':>9} {'llama.cpp':>10} {'':<9} {'ratio':>6}")
        for form in forms:
            rounds = compare(arguments, files[form], directory)
            report["raw"][form] = rounds
            report["rows"] += table(form, rounds)
    with open(arguments.out, "w") as file:
        json.dump(report, file, indent=1)
    print(f"figures: {arguments.out}")


if __name__ == "__main__":
    main()
