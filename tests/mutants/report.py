"""Compares the mutants that no test noticed with those in accepted.md, and records how many there were.

report.py DIRECTORY OUT, where DIRECTORY has a mutants.out of cargo-mutants for each file, and OUT is where the figures go.
"""

import pathlib
import re
import subprocess
import sys

RECORD = pathlib.Path(__file__).parents[1] / "reliability/record.py"


def names(text):
    """The mutants of a list, without their places, which change with every edit."""
    return [re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", line) for line in text.splitlines() if line]


def accepted():
    """The mutants in accepted.md."""
    text = pathlib.Path(__file__).with_name("accepted.md").read_text()
    # The example is in a block.
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return set(re.findall(r"^- `([^`]+)`: \S", text, flags=re.M))


def main():
    directory, out = map(pathlib.Path, sys.argv[1:])
    known = accepted()
    counts = dict.fromkeys(["caught", "missed", "timeout", "unviable"], 0)
    new = []
    for found in sorted(directory.glob("*/mutants.out")):
        for kind in counts:
            path = found / f"{kind}.txt"
            listed = names(path.read_text()) if path.exists() else []
            counts[kind] += len(listed)
            if kind == "missed":
                new += [name for name in listed if name not in known]
    if not any(counts.values()):
        sys.exit(f"there are no results in {directory}")
    numbers = [f"{kind}={count}" for kind, count in counts.items()]
    subprocess.run([sys.executable, RECORD, out, "mutants", *numbers, f"not_accepted={len(new)}"], check=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    for name in new:
        print(f"no test notices: {name}")
    if new:
        sys.exit("Write a test for each, or add it with its reason to tests/mutants/accepted.md.")


main()
