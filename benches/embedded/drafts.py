"""Hob's embedded engine with and without a draft model. Run it with './dev bench embedded --draft'.

Each round starts hob with one of the two, measures it over HTTP and stops it, and then the other. The questions differ from round to
round, so that nothing is remembered, and are the same for both. Needs nothing but the standard library.
"""

import argparse
import json
import os
import platform
import random
import re
import statistics
import sys
import tempfile

import compare

TOPICS = ("the sea", "bread", "the moon", "a fox", "the history of Rome", "rain", "music", "mountains", "bees", "the city of Paris",
          "winter", "trains", "the heart", "gardens", "gold", "the desert", "birds", "books", "volcanoes", "tea", "ships", "the sun",
          "horses", "glass", "rivers", "clocks", "paper", "the forest", "salt", "bridges", "whales", "dreams")
QUESTIONS = ("Tell me about {}.", "Write a short story about {}.", "Explain to a child what is special about {}.",
             "List five facts about {}.")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure the embedded engine with and without a draft model.")
    parser.add_argument("--hob", required=True, help="the program hob, built in release")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--draft-model", required=True, help="a GGUF file of a smaller model with the same vocabulary")
    parser.add_argument("--out", required=True, help="where the figures go, as JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=96, help="tokens of an answer")
    parser.add_argument("--answers", type=int, default=3, help="answers of each stream, one after the other")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=compare.physical_cores())
    parser.add_argument("--streams", type=compare.numbers, default=[1, 2, 4, 8], help="such as 1,2,4,8")
    return parser.parse_args()


def start(arguments, drafts, directory, log):
    home = tempfile.mkdtemp(dir=directory)
    models = os.path.join(home, "models")
    os.makedirs(models)
    os.symlink(arguments.model, os.path.join(models, "bench.gguf"))
    os.symlink(arguments.draft_model, os.path.join(models, "draft.gguf"))
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write(
            '[engine]\ndefault = "embedded"\n[engine.embedded]\nprefix_cache_mb = 0\n'
            f"threads = {arguments.threads}\ncontext = {compare.CONTEXT}\nparallel = {max(arguments.streams)}\n"
        )
        if drafts:
            file.write('draft_model = "draft"\n')
    port = compare.free_port()
    command = [arguments.hob, "serve", "--host", "127.0.0.1", "--port", str(port), "-e", "embedded", "-a", "none"]
    return port, compare.running(command, dict(os.environ, HOB_HOME=home, HOB_LOG="hob=info"), port, log)


def rate(arguments, port, streams, number):
    """The tokens per second of all streams together."""
    def answers(index):
        questions = random.Random(f"{number} {streams} {index}")
        texts = [questions.choice(QUESTIONS).format(questions.choice(TOPICS)) for _ in range(arguments.answers)]
        return sum(compare.ask(port, arguments, text, arguments.tokens)[3] for text in texts)

    tokens, took = compare.at_once(port, streams, answers)
    return sum(tokens) / took


def measure(arguments, drafts, number, directory):
    """The rates by the number of streams, and the guesses with those that were right. One server for each number."""
    found = {}
    for streams in arguments.streams:
        with tempfile.TemporaryFile(dir=directory) as log:
            port, server = start(arguments, drafts, directory, log)
            with server:
                compare.ask(port, arguments, "Hello.", 4)  # The first answer pays for what is loaded lazily.
                measured = rate(arguments, port, streams, number)
            log.seek(0)
            said = re.sub(r"\x1b\[[0-9;]*m", "", log.read().decode(errors="replace"))
        told = re.search(r"guessed=(\d+) right=(\d+)", said)
        if drafts and not told:
            sys.exit(f"the server did not say how many guesses were right:\n{said}")
        found[streams] = {"rate": measured, "guessed": int(told[1]) if drafts else 0, "right": int(told[2]) if drafts else 0}
    return found


def main():
    arguments = parse_arguments()
    arguments.model, arguments.draft_model = map(os.path.realpath, (arguments.model, arguments.draft_model))
    rounds = {False: [], True: []}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(arguments.rounds):
            # The first one may find the machine cooler, so they take turns at that too.
            for drafts in [False, True][:: 1 if number % 2 == 0 else -1]:
                rounds[drafts].append(measure(arguments, drafts, number, directory))
    names = [os.path.basename(path) for path in (arguments.model, arguments.draft_model)]
    print(f"{names[0]} with {names[1]}, {arguments.threads} threads, {arguments.rounds} rounds, temperature {arguments.temperature}, "
          "median of each")
    print(f"{'':<12}{'without':>9}{'with draft':>12}  {'':<10}{'ratio':>6}{'right':>8}{'of its tokens':>15}")
    rows = []
    for streams in arguments.streams:
        plain, drafted = ([result[streams] for result in rounds[drafts]] for drafts in (False, True))
        without, with_draft = (statistics.median(result["rate"] for result in results) for results in (plain, drafted))
        guessed, right = (sum(result[key] for result in drafted) for key in ("guessed", "right"))
        written = arguments.rounds * streams * arguments.answers * arguments.tokens
        rows.append({"streams": streams, "without": without, "with": with_draft, "ratio": with_draft / without, "guessed": guessed,
                     "right": right, "written": written})
        print(f"{streams} streams   {without:>9.1f}{with_draft:>12.1f}  tokens/s  {with_draft / without:>6.2f}"
              f"{right / max(1, guessed):>8.0%}{right / written:>15.0%}", flush=True)
    report = {"machine": platform.platform(), "cores": os.cpu_count(), "models": names, "temperature": arguments.temperature,
              "threads": arguments.threads, "rows": rows, "raw": [rounds[False], rounds[True]]}
    with open(arguments.out, "w") as file:
        json.dump(report, file, indent=1)
    print(f"figures: {arguments.out}")


if __name__ == "__main__":
    main()
