"""Adds the figures of a run to the file of its suite, from which fill.py makes docs/reliability.md.

    record.py DIRECTORY SUITE [NAME=VALUE...] [--tests FILE] [--status N]

The line goes to DIRECTORY/SUITE.jsonl. FILE is what 'cargo test' printed, or the JUnit report of nextest (*.xml): the numbers of tests
and of failures, and the time, come from there. N is how the command of the tests ended. If FILE has no result of a test, nothing is added.
The date and the commit are those in the environment; 'begin_figures' in scripts/dev/figures.sh sets them.
"""

import argparse
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; .*finished in ([\d.]+)s", re.MULTILINE)
# Elements of a report for attempts that failed before another one.
REPEATED = ["flakyFailure", "flakyError", "rerunFailure", "rerunError"]
# Fields of a line, and the variables that have their values.
MEASURED = {"date": "HOB_TEST_DATE", "commit": "HOB_TEST_COMMIT"}


def printed_tests(text):
    """The tests of all programs that 'cargo test' ran."""
    results = RESULT.findall(text)
    failures = sum(int(failed) for _, failed, _ in results)
    return {
        "tests": sum(int(passed) for passed, _, _ in results) + failures,
        "seconds": round(sum(float(seconds) for _, _, seconds in results), 2),
        "failures": failures,
    }


def reported_tests(text):
    """The tests of a report of nextest."""
    report = ElementTree.fromstring(text)
    return {
        "tests": int(report.get("tests", 0)),
        "seconds": float(report.get("time", 0)),
        "failures": int(report.get("failures", 0)) + int(report.get("errors", 0)),
        "retries": sum(1 for element in report.iter() if element.tag in REPEATED),
    }


def tests_of(file, status):
    """The figures of the tests, or none if there are no results."""
    if not file.exists():
        return None
    read = reported_tests if file.suffix == ".xml" else printed_tests
    figures = read(file.read_text(errors="replace"))
    # A program that a signal ended prints no result.
    figures["failures"] = max(figures["failures"], int(status != 0))
    return figures if figures["tests"] else None


def figure(text):
    name, _, value = text.partition("=")
    return name, int(value) if value.isdecimal() else value


def main():
    parser = argparse.ArgumentParser(description="Adds the figures of a run to the file of its suite.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("suite")
    parser.add_argument("figures", nargs="*", type=figure, metavar="NAME=VALUE")
    parser.add_argument("--tests", type=Path, metavar="FILE")
    parser.add_argument("--status", type=int, default=0, metavar="N")
    options = parser.parse_args()
    run = {"suite": options.suite, **dict(options.figures)}
    if options.tests:
        figures = tests_of(options.tests, options.status)
        if figures is None:
            print(f"{options.tests} has no result of a test, so there is nothing to record", file=sys.stderr)
            return
        run.update(figures)
    run.update((field, os.environ[variable]) for field, variable in MEASURED.items() if variable in os.environ)
    options.directory.mkdir(parents=True, exist_ok=True)
    with open(options.directory / f"{options.suite}.jsonl", "a") as file:
        file.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    main()
