"""Writes the figures of the last runs into docs/reliability.md.

    fill.py [DIRECTORY [PAGE]]

DIRECTORY (target/reliability) has the *.jsonl that the commands of the page leave there, one line for each run; the last line of a
figure counts. A row is a line such as '| words | value | date, commit | <!-- figure: NAME --> `command` |'. A row of which
DIRECTORY has no run stays as it is. A run that was recorded without a date and a commit leaves that cell empty.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?P<words>[^|\n]+?) \| [^|\n]* \| [^|\n]* \| <!-- figure: (?P<name>\S+) -->", re.MULTILINE)


def figures(directory):
    """The last value of each figure and when it was measured, by its name."""
    found = {}
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            run = json.loads(line)
            for name, value in OF_SUITE[run["suite"]](run).items():
                found[name] = (value, measured(run))
    return found


def measured(run):
    """The date and the commit of a run, as far as they are recorded."""
    return ", ".join(run[field] for field in ["date", "commit"] if field in run)


def lasted(seconds):
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} minutes"


def of_tests(run):
    words = f"{run['tests']:,} tests"
    for each in ["orders", "seeds"]:
        if each in run:
            words += f", {run[each]:,} {each} each"
    words += f", in {lasted(run['seconds'])}, {run['failures']} failures"
    if run["suite"] == "tests":
        words += f", {run['retries']} retries"
    return {run["suite"]: words}


def of_fuzz(run):
    words = f"{run['targets']} targets, {run['executions']:,} executions in {lasted(run['seconds'])}, {run['findings']} findings"
    return {"fuzz": words, "fuzz.edges": f"{run['edges']:,}"}


def of_faults(run):
    return {f"faults.{run['name']}": f"{run['count']:,} {run['unit']}, {run['failures']} failures"}


def of_soak(run):
    found = {"soak.load": f"{run['minutes']:.0f} minutes, {run['operations']} operations, {run['failures']} failures"}
    for figure in run["figures"]:
        name = figure["name"].split(" ")[0]
        if figure["slope"] is not None:
            between = f"{figure['low']:.2f} to {figure['high']:.2f}"
            found[f"soak.{name}"] = f"{figure['slope']:+.2f} an hour ({between}), mean {figure['mean']:.1f}"
    return found


def of_mutants(run):
    noticed = run["caught"] + run["timeout"]
    return {"mutants": f"{noticed} of {noticed + run['missed']} noticed, {run['not_accepted']} without a reason"}


def of_libraries(run):
    with_reason = run["libraries"] - run["without_reason"]
    return {
        "libraries.packages": f"{run['packages']}",
        "libraries.direct": f"{run['libraries']}, {with_reason} with a reason",
    }


def of_advisories(run):
    return {"advisories": f"{run['known']}"}


def of_reproducible(run):
    if run["different"]:
        return {"reproducible": f"no, {run['different']} of {run['files']} files differ"}
    return {"reproducible": f"yes, {run['files']} files are equal"}


OF_SUITE = {
    "tests": of_tests,
    "interleavings": of_tests,
    "simulation": of_tests,
    "fuzz": of_fuzz,
    "faults": of_faults,
    "soak": of_soak,
    "mutants": of_mutants,
    "libraries": of_libraries,
    "advisories": of_advisories,
    "reproducible": of_reproducible,
}


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/reliability"
    page = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs/reliability.md"
    found = figures(directory)

    def filled(match):
        if match["name"] not in found:
            return match[0]
        value, when = found[match["name"]]
        return f"| {match['words']} | {value} | {when} | <!-- figure: {match['name']} -->"

    text = page.read_text()
    page.write_text(ROW.sub(filled, text))
    print(f"{len(found)} figures in {page}")
    without_row = found.keys() - {match["name"] for match in ROW.finditer(text)}
    if without_row:
        sys.exit(f"{page} has no row for {', '.join(sorted(without_row))}")


if __name__ == "__main__":
    main()
