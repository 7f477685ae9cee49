"""Writes the figures of the last runs into docs/reliability.md.

    fill.py [DIRECTORY [PAGE]]

DIRECTORY (target/reliability) has the *.jsonl that the commands of the page leave there, one line for each run; the last line of a
figure counts. Of runs whose size the caller chooses, the largest counts, because a short one does not make it less true; of nearly equal
ones the last. If the last run of all failed, the row says so too. A row is a line such as
'| words | value | date, commit | <!-- figure: NAME --> `command` |'. A row of which DIRECTORY has no run stays as it is. A run that was
recorded without a date and a commit leaves that cell empty.

The runs of fuzz targets add up over months and machines. So without PAGE, those in DIRECTORY are added to fuzz_targets.jsonl beside
this script, which is part of the repository, and all runs of that file count.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZED = Path(__file__).resolve().parent / "fuzz_targets.jsonl"
ROW = re.compile(r"^\| (?P<words>[^|\n]+?) \| [^|\n]* \| [^|\n]* \| <!-- figure: (?P<name>\S+) -->", re.MULTILINE)


# How much work a run did, for the suites that run longer on demand.
SIZES = {"fuzz": "executions", "interleavings": "orders", "simulation": "seeds", "soak": "minutes"}
# Runs of at least this share of the most work are equal: the same command does not always do exactly the same.
NEARLY_ALL = 0.9


def figures(directory, fuzzed):
    """The value of each figure and when it was measured, by its name. `fuzzed` is the file with the runs of fuzz targets."""
    runs = {}
    fuzzed = [json.loads(line) for line in lines(fuzzed)]
    for path in sorted(directory.glob("*.jsonl")):
        if path.name == FUZZED.name:
            continue
        for run in map(json.loads, lines(path)):
            for name, value in OF_SUITE[run["suite"]](run).items():
                runs.setdefault(name, []).append((run, value))
    found = {name: chosen(name, of_figure) for name, of_figure in runs.items()}
    if fuzzed:
        found["fuzz.all"] = of_all_fuzzing(fuzzed), over(fuzzed)
    return found


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def keep_fuzzing(found):
    """Adds the runs of fuzz targets in a file to those in the repository."""
    kept = lines(FUZZED)
    new = [line for line in lines(found) if line not in kept]
    FUZZED.write_text("".join(f"{line}\n" for line in [*kept, *new]))


def chosen(name, runs):
    """The value of a figure and when it was measured, from its runs and their values in the order of time."""
    most = max(size(run) for run, _ in runs)
    run, value = [each for each in runs if size(each[0]) >= NEARLY_ALL * most][-1]
    last, _ = runs[-1]
    if last is not run and name in WITH_FAILURES and failures(last):
        unit = SIZES[last["suite"]]
        when = ", ".join(filter(None, [f"{size(last):,.0f} {unit}", measured(last)]))
        value += f"; a later run ({when}) failed"
    return value, measured(run)


def size(run):
    return run.get(SIZES.get(run["suite"]), 0)


# The figures that say whether a run failed.
WITH_FAILURES = {"fuzz", "interleavings", "simulation", "soak.load"}


def failures(run):
    return run.get("failures", 0) + run.get("findings", 0) + len(run.get("grown", []))


def over(runs):
    """When several runs were measured."""
    if len({measured(run) for run in runs}) == 1:
        return measured(runs[0])
    dates = sorted({run["date"] for run in runs if "date" in run})
    return " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else ""


def measured(run):
    """The date and the commit of a run, as far as they are recorded."""
    return ", ".join(run[field] for field in ["date", "commit"] if field in run)


def lasted(seconds):
    if seconds < 180:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 3 * 3600 else f"{seconds / 3600:.0f} hours"


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


def of_all_fuzzing(runs):
    """The runs of single targets, however they were started."""
    executions, seconds, findings = (sum(run[field] for run in runs) for field in ["executions", "seconds", "findings"])
    targets = len({run["target"] for run in runs})
    words = f"{targets} targets, {executions:,} executions in {lasted(seconds)} of processor time"
    return f"{words}, findings in {findings} of {len(runs):,} runs of a target"


def of_faults(run):
    return {f"faults.{run['name']}": f"{run['count']:,} {run['unit']}, {run['failures']} failures"}


def of_soak(run):
    words = f"{run['minutes']:.0f} minutes, {run['operations']} operations, {run['failures']} failures"
    if "grown" in run:
        words += f", {', '.join(run['grown']) or 'nothing'} over its bound"
    found = {"soak.load": words}
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
    fuzzed = directory / FUZZED.name
    if len(sys.argv) <= 2:
        keep_fuzzing(fuzzed)
        fuzzed = FUZZED
    found = figures(directory, fuzzed)

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
