"""Compares the mutants that no test noticed with those in accepted.md, and records how many there were.

    report.py OUT [WANTED]

The results are those in results.jsonl, from any machine. One counts while its file is the same. Fails if a file with WANTED in its path
has no result, or a mutant that was not noticed and is not accepted. When all files have a result, the figures go to OUT.
"""

import collections
import os
import re
import subprocess
import sys

from run import fingerprint, read_results
from workspace import HERE, ROOT

RECORD = ROOT / "tests/reliability/record.py"
KINDS = ["caught", "missed", "timeout", "unviable"]


def files():
    """The paths of files.txt."""
    return [line.split()[0] for line in (HERE / "files.txt").read_text().splitlines() if line]


def accepted():
    """How often each mutant is in accepted.md, by its name and the line of code that it changes."""
    text = (HERE / "accepted.md").read_text()
    # The example is in a block.
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return collections.Counter(re.findall(r"^- `([^`]+)`, at `([^`]+)`: \S", text, flags=re.M))


def named(line, source):
    """A mutant by its name without its place, which changes with every edit, and by the line of code that it changes."""
    file, number, name = re.match(r"([^:]+):(\d+):\d+: (.*)", line).groups()
    # The text of accepted.md has backticks around it.
    return f"{file}: {name}".replace("`", "'"), source[int(number) - 1].strip().replace("`", "'")


def not_accepted(found, known):
    """The missed mutants of these results that are not in accepted.md. An entry accepts one mutant."""
    missed = collections.Counter()
    for file, result in found.items():
        source = (ROOT / file).read_text().splitlines()
        missed.update(named(line, source) for line in result["missed"])
    return missed - known


def counts_of(found):
    """How many mutants there are of each kind."""
    return {
        kind: sum(len(result[kind]) if kind == "missed" else result[kind] for result in found.values()) for kind in KINDS
    }


def record(found, known, out):
    counts = counts_of(found)
    counts["not_accepted"] = not_accepted(found, known).total()
    # Of every part.
    commits = " ".join(dict.fromkeys(result["commit"] for result in found.values() if "commit" in result))
    environment = {**os.environ, "HOB_TEST_COMMIT": commits} if commits else os.environ
    numbers = [f"{kind}={count}" for kind, count in counts.items()]
    subprocess.run([sys.executable, RECORD, out, "mutants", *numbers], env=environment, check=True)


def main():
    out = sys.argv[1]
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    asked = [file for file in files() if wanted in file]
    if not asked:
        sys.exit(f"no file of tests/mutants/files.txt has '{wanted}' in its path")
    known, results = accepted(), read_results()
    found = {
        file: results[file]
        for file in files()
        if file in results and results[file]["source"] == fingerprint((ROOT / file).read_bytes())
    }
    here = {file: found[file] for file in asked if file in found}
    print(", ".join(f"{count} {kind}" for kind, count in counts_of(here).items()))
    if len(found) == len(files()):
        record(found, known, out)
    without = [file for file in asked if file not in found]
    for file in without:
        print(f"no result: {file}")
    new = not_accepted(here, known)
    for (name, code), count in new.items():
        print(f"no test notices{f', {count} times' if count > 1 else ''}: `{name}`, at `{code}`")
    if new:
        print("Write a test for each, or add it with its reason to tests/mutants/accepted.md.")
    if without or new:
        sys.exit(1)


main()
