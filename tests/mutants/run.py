"""Changes the code that decides, one change after the other, and checks that a test notices each.

    run.py DIRECTORY [WANTED] [--jobs N]

cargo-mutants says which changes there are. DIRECTORY keeps one build that has all of them; workspace.py makes it. The variable HOB_MUTANT
chooses one at run time. First all tests run once without a change, and each records which changes it reaches. Then only these tests run
with the change, until one fails.

The files of files.txt with WANTED in their path are tried, each with the tests of the packages beside it. Each has a line in
results.jsonl: the numbers of its mutants, and those that no test notices. A line counts while the file is the same; report.py reads them.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from workspace import HERE, Workspace

try:
    import resource
except ImportError:
    resource = None

RESULTS = HERE / "results.jsonl"
# A browser takes minutes, and no decision is made in a page.
SKIPPED = [("hob-server", "pages::browser::")]
# A test may take so many times as long as without a change, and at least so many seconds. What takes longer does not end.
SLOWER, SHORTEST_LIMIT = 10, 20
# Without a change.
LONGEST = 600
# Bytes of memory that a test may have, because a change can make a loop that allocates.
MOST_MEMORY = 8 << 30
# Fields of a result, and the variables that have their values.
MEASURED = {"date": "HOB_TEST_DATE", "commit": "HOB_TEST_COMMIT"}
PASSED, FAILED, TIMEOUT = "passed", "failed", "timeout"


@dataclass(eq=False)
class Test:
    program: object
    name: str
    seconds: float = 0
    reached: set = field(default_factory=set)
    # How many mutants it noticed, by function.
    noticed: Counter = field(default_factory=Counter)

    def run(self, limit, out=subprocess.DEVNULL, **variables):
        """How the test ends. Every test is a process of its own."""
        environment = {
            **os.environ, **variables, "CARGO_MANIFEST_DIR": str(self.program.directory), "INSTA_UPDATE": "no",
            "INSTA_WORKSPACE_ROOT": str(self.program.directory.parents[1]), "RUST_BACKTRACE": "0",
            # The functions have the variables of all their mutants on the stack.
            "RUST_MIN_STACK": str(32 << 20),
        }
        process = subprocess.Popen(
            [self.program.path, "--exact", self.name, "--nocapture"], cwd=self.program.directory, env=environment,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )
        if hasattr(resource, "prlimit"):
            try:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            except ProcessLookupError:
                pass
        try:
            return PASSED if process.wait(limit) == 0 else FAILED
        except subprocess.TimeoutExpired:
            # With the processes that it started.
            os.killpg(process.pid, 9)
            process.wait()
            return TIMEOUT


def main():
    options = parse(sys.argv[1:])
    lines = [line.split() for line in (HERE / "files.txt").read_text().splitlines() if line]
    packages = {file: names for file, *names in lines}
    wanted = [file for file in packages if options.wanted in file]
    if not wanted:
        sys.exit(f"no file of tests/mutants/files.txt has '{options.wanted}' in its path")
    began = time.monotonic()
    workspace = Workspace(options.directory.resolve(), list(packages))
    programs = workspace.build(sorted({name for file in wanted for name in packages[file]}))
    tests = [test for program in programs for test in tests_of(program)]
    print(f"built in {time.monotonic() - began:.0f} s: {len(workspace.mutants)} mutants, {len(tests)} tests", flush=True)
    tests = record_reached(tests, workspace.directory, options.jobs)
    print(f"all tests have run after {time.monotonic() - began:.0f} s", flush=True)
    for file in wanted:
        of_file = [test for test in tests if test.program.package in packages[file]]
        outcomes = try_file(file, workspace, of_file, options.jobs)
        outcomes.update(try_constants(file, workspace, of_file))
        keep_outcomes(file, workspace, outcomes)
    print(f"all mutants have run after {time.monotonic() - began:.0f} s", flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev mutants", description="Checks that tests notice changes.")
    parser.add_argument("directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("wanted", nargs="?", default="", metavar="FILE", help="only the files with this in their path")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="mutants at a time (one for each processor)"
    )
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    return options


def tests_of(program):
    """The tests of a program that run without being asked for."""
    def listed(*more):
        command = [program.path, "--list", "--format", "terse", *more]
        text = subprocess.run(command, cwd=program.directory, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [line.removesuffix(": test") for line in text.splitlines() if line.endswith(": test")]

    ignored = set(listed("--ignored"))
    skipped = tuple(prefix for package, prefix in SKIPPED if package == program.package)
    return [Test(program, name) for name in listed() if name not in ignored and not name.startswith(skipped)]


def record_reached(tests, directory, jobs):
    """Runs each test without a change. Those that pass, with the mutants that they reach."""
    reached = directory / "reached"
    shutil.rmtree(reached, ignore_errors=True)

    def record(numbered):
        number, test = numbered
        at = reached / str(number)
        at.mkdir(parents=True)
        with open(at / "output", "w") as out:
            began = time.monotonic()
            outcome = test.run(LONGEST, out, HOB_MUTANT_REACHED=str(at))
        test.seconds = time.monotonic() - began
        for path in at.iterdir():
            if path.name != "output":
                test.reached.update(int(line) for line in path.read_text().split())
        return outcome

    # Many tests wait for sockets and processes, so that one for each core leaves cores idle.
    with ThreadPoolExecutor(jobs + (jobs + 1) // 2) as pool:
        outcomes = list(pool.map(record, enumerate(tests)))
    for (number, test), outcome in zip(enumerate(tests), outcomes):
        if outcome != PASSED:
            print(f"not used, because it {outcome} without a change: {test.name} (see {reached / str(number) / 'output'})")
    return [test for test, outcome in zip(tests, outcomes) if outcome == PASSED]


def try_file(file, workspace, tests, jobs):
    """Tries the mutants of a file that can be chosen at run time. How the test ends that notices each, by its name."""
    began = time.monotonic()
    lock = threading.Lock()
    mutants = [
        mutant for mutant in workspace.mutants
        if mutant.file == file and mutant.name not in workspace.unviable and mutant.number not in workspace.not_switchable
    ]

    def attempt(mutant):
        reaching = [test for test in tests if mutant.number in test.reached]
        return said(mutant, outcome_of(mutant, reaching, lock, HOB_MUTANT=str(mutant.number)))

    with ThreadPoolExecutor(jobs) as pool:
        outcomes = dict(zip([mutant.name for mutant in mutants], pool.map(attempt, mutants)))
    print(f"{file}: {len(mutants)} mutants in {time.monotonic() - began:.0f} s", flush=True)
    return outcomes


def try_constants(file, workspace, tests):
    """Tries the mutants of a file that are constants: each takes a build. The same answer."""
    outcomes = {}
    mutants = [mutant for mutant in workspace.mutants if mutant.file == file]
    numbers = {mutant.number for mutant in mutants}
    tests = [test for test in tests if not numbers.isdisjoint(test.reached)]
    for mutant in mutants:
        if mutant.number in workspace.not_switchable and mutant.name not in workspace.unviable:
            if workspace.build_applied(mutant):
                outcomes[mutant.name] = said(mutant, outcome_of(mutant, tests, threading.Lock()))
            else:
                workspace.unviable.add(mutant.name)
    if outcomes:
        workspace.build_applied(None)
    return outcomes


def said(mutant, outcome):
    if outcome == PASSED:
        print(f"no test notices: {mutant.name}", flush=True)
    return outcome


def keep_outcomes(file, workspace, outcomes):
    """Writes the line of a file."""
    counts = Counter(outcomes.values())
    measured = {field: os.environ[name] for field, name in MEASURED.items() if name in os.environ}
    keep({
        "file": file,
        "source": fingerprint(workspace.sources[file]),
        **measured,
        "caught": counts[FAILED],
        "timeout": counts[TIMEOUT],
        "unviable": sum(1 for mutant in workspace.mutants if mutant.file == file and mutant.name in workspace.unviable),
        "missed": sorted(name for name, outcome in outcomes.items() if outcome == PASSED),
    })


def outcome_of(mutant, tests, lock, **variables):
    """How the first test ends that notices a mutant, or PASSED. First those that noticed others in the same function, then those that
    reach few mutants, because they are about this code."""
    with lock:
        tests = sorted(tests, key=lambda test: (-test.noticed[mutant.function], len(test.reached), test.seconds))
    for test in tests:
        limit = max(SHORTEST_LIMIT, SLOWER * test.seconds)
        if test.run(limit, **variables) == PASSED:
            continue
        # Twice, because a test may fail for another reason once in a while.
        outcome = test.run(limit, **variables)
        if outcome != PASSED:
            with lock:
                test.noticed[mutant.function] += 1
            return outcome
    return PASSED


def fingerprint(source):
    """Of the bytes of a file."""
    return hashlib.sha256(source).hexdigest()[:16]


def read_results():
    """The result of each file, by its path."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {result["file"]: result for result in map(json.loads, lines)}


def keep(result):
    """Replaces the line of a file."""
    results = {**read_results(), result["file"]: result}
    RESULTS.write_text("".join(f"{json.dumps(results[file])}\n" for file in sorted(results)))


if __name__ == "__main__":
    main()
