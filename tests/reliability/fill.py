"""Writes the figures of the last runs into docs/reliability.md.

fill.py [DIRECTORY], where DIRECTORY has the *.jsonl of './dev test --faults', './dev soak' and './dev mutants' (target/reliability).
A row is a line such as '| words | value | <!-- figure: NAME --> `command` |'. A row without a run says 'not run'.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def figures(directory):
    """The last value of each figure, by its name."""
    found = {}
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            found.update(of_run(json.loads(line)))
    return found


def of_run(run):
    if run["suite"] == "faults":
        words = f"{run['count']} {run['unit']}, {run['failures']} failures"
        return {f"faults.{run['name']}": words}
    if run["suite"] == "mutants":
        tested = run["caught"] + run["timeout"] + run["missed"]
        words = f"{run['caught'] + run['timeout']} of {tested} noticed, {run['not_accepted']} without a reason"
        return {"mutants": words}
    words = f"{run['minutes']:.0f} minutes, {run['operations']} operations, {run['failures']} failures"
    found = {"soak.load": words}
    for figure in run["figures"]:
        name = figure["name"].split(" ")[0]
        if figure["slope"] is not None:
            between = f"{figure['low']:.2f} to {figure['high']:.2f}"
            found[f"soak.{name}"] = f"{figure['slope']:+.2f} an hour ({between}), mean {figure['mean']:.1f}"
    return found


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/reliability"
    page = ROOT / "docs/reliability.md"
    found = figures(directory)

    def filled(match):
        return f"| {match['words']} | {found.get(match['name'], 'not run')} | <!-- figure: {match['name']} -->"

    row = r"^\| (?P<words>[^|]+?) \| [^|]* \| <!-- figure: (?P<name>\S+) -->"
    page.write_text(re.sub(row, filled, page.read_text(), flags=re.M))
    print(f"{len(found)} figures in {page.relative_to(ROOT)}")


main()
