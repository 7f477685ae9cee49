"""Compares the mutants that no test noticed with those in accepted.md, and records how many there were.

    report.py DIRECTORY OUT [WANTED]

DIRECTORY has a folder for each file of files.txt that was changed: 'source', the file as it was, the mutants.out of cargo-mutants, and
'commit' if the work is complete. A result counts while the file is the same. Fails if a file with WANTED in its path has no result, or a
mutant that was not noticed and is not accepted. When all files have a result, the figures go to OUT.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
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


def result(directory, file):
    """The lists of cargo-mutants for a file, and the commit; None if the work is not complete, or the file is another one now."""
    at = directory / file.replace("/", "-")
    if not (at / "commit").exists() or (at / "source").read_bytes() != (ROOT / file).read_bytes():
        return None
    lists = {}
    for kind in KINDS:
        path = at / "mutants.out" / f"{kind}.txt"
        lists[kind] = path.read_text().splitlines() if path.exists() else []
    return lists, (at / "commit").read_text().strip()


def named(line, source):
    """A mutant by its name without its place, which changes with every edit, and by the line of code that it changes."""
    file, number, name = re.match(r"([^:]+):(\d+):\d+: (.*)", line).groups()
    # The text of accepted.md has backticks around it.
    return f"{file}: {name}", source[int(number) - 1].strip().replace("`", "'")


def not_accepted(found, known):
    """The missed mutants of these results that are not in accepted.md. An entry accepts one mutant."""
    missed = collections.Counter()
    for file, (lists, _) in found.items():
        source = (ROOT / file).read_text().splitlines()
        missed.update(named(line, source) for line in lists["missed"])
    return missed - known


def record(found, known, out):
    counts = {kind: sum(len(lists[kind]) for lists, _ in found.values()) for kind in KINDS}
    counts["not_accepted"] = not_accepted(found, known).total()
    # Of every part.
    commits = " ".join(dict.fromkeys(commit for _, commit in found.values() if commit))
    environment = {**os.environ, "HOB_TEST_COMMIT": commits} if commits else os.environ
    numbers = [f"{kind}={count}" for kind, count in counts.items()]
    subprocess.run([sys.executable, RECORD, out, "mutants", *numbers], env=environment, check=True)


def main():
    directory, out = map(pathlib.Path, sys.argv[1:3])
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    asked = [file for file in files() if wanted in file]
    if not asked:
        sys.exit(f"no file of tests/mutants/files.txt has '{wanted}' in its path")
    known = accepted()
    found = {file: read for file in files() if (read := result(directory, file))}
    here = {file: found[file] for file in asked if file in found}
    print(", ".join(f"{sum(len(lists[kind]) for lists, _ in here.values())} {kind}" for kind in KINDS))
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
