"""Builds the fuzz targets in fuzz/ and runs them.

    run.py DIRECTORY [TARGET...] [--seconds N | --runs N] [--jobs N] [--keep] [--without-llama]
    run.py DIRECTORY TARGET --replay FILE

DIRECTORY keeps the build, the logs, what long runs found worth keeping, and the findings. Without names, all targets run. Prints a
table and ends with 1 if any target has a finding. For docs/reliability.md, each target is recorded when it ends, so that the work of a
run that is stopped counts, and a run of all targets once more at its end. The targets, their limits and their dictionaries are those
that the program lists; this script knows none by name.

The build uses the stable toolchain: LLVM's coverage instrumentation is a pass of code generation, and libFuzzer is a library.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "fuzz"
RECORD = ROOT / "tests" / "reliability" / "record.py"
RELIABILITY = ROOT / "target" / "reliability"

RUSTFLAGS = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
]

SECONDS = 60  # for all targets together
LONGEST_INPUT = 8192  # bytes
PATIENCE = 300  # seconds that a target may take beyond its time
STATUS = re.compile(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
TELLING = re.compile(r"panicked at|ERROR: libFuzzer|SUMMARY|has overflowed its stack")


@dataclass
class Target:
    name: str
    dictionary: str
    seconds: int
    megabytes: int
    stack: int

    def arguments(self, findings):
        limits = [
            f"-timeout={self.seconds}",
            f"-rss_limit_mb={self.megabytes}",
            f"-max_len={LONGEST_INPUT}",
            f"-artifact_prefix={findings}/",
            "-detect_leaks=0",
        ]
        if self.dictionary != "-":
            limits.append(f"-dict={FUZZ / 'dictionaries' / self.dictionary}.dict")
        return limits

    def environment(self):
        return {**os.environ, "HOB_FUZZ_TARGET": self.name, "RUST_BACKTRACE": "1"}

    def limit(self):
        """Gives the process the stack of a server's thread, so that deep recursion is found."""
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (self.stack << 20, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Outcome:
    target: Target
    status: int
    executed: int
    seconds: float
    edges: int
    features: int
    inputs: int
    findings: list
    log: Path


def main():
    options = parse(sys.argv[1:])
    directory = options.directory.resolve()
    program = build(directory, options.llama)
    targets = listed(program)
    unknown = [name for name in options.targets if name not in targets]
    if unknown:
        sys.exit(f"no fuzz target named {', '.join(unknown)}; there is: {', '.join(targets)}")
    chosen = [target for name, target in targets.items() if not options.targets or name in options.targets]
    if options.replay:
        sys.exit(replay(program, chosen, options.replay))
    programs = {target.name: program for target in chosen}
    if is_long(options):
        programs = build_for_each(chosen, directory, options.llama)
    began = time.monotonic()
    outcomes = run_all(programs, chosen, directory, options)
    seconds = time.monotonic() - began
    print_table(outcomes)
    if is_complete(options):
        record_all(outcomes, seconds)
    failed = [outcome for outcome in outcomes if outcome.status != 0]
    for outcome in failed:
        explain(outcome)
    # After the findings, because it can fail.
    not_kept = [target for target in chosen if options.keep and not keep(programs[target.name], target, directory)]
    sys.exit(1 if failed or not_kept else 0)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Builds the fuzz targets and runs them.")
    parser.add_argument("directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="the targets to run (all)")
    duration = parser.add_mutually_exclusive_group()
    duration.add_argument("--seconds", type=int, metavar="N", help=f"the time for all targets together ({SECONDS})")
    duration.add_argument("--runs", type=int, metavar="N", help="the number of inputs for each target, however long it takes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="targets at a time (one for each processor)")
    parser.add_argument("--keep", action="store_true", help="add inputs that reach new code to fuzz/corpus")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one target with one input")
    parser.add_argument("--without-llama", dest="llama", action="store_false", help="skip the targets that need llama.cpp")
    options = parser.parse_args(arguments)
    if options.replay and len(options.targets) != 1:
        parser.error("--replay needs one target")
    for name in ["seconds", "runs", "jobs"]:
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    return options


def is_complete(options):
    """Whether all targets run. The figures of some of them are not recorded."""
    return not options.targets and options.llama


def is_long(options):
    """Whether a run begins with the inputs of earlier ones. Others begin with the corpus in the repository alone, so that they take the
    same time everywhere."""
    return bool(options.runs or options.keep)


def build(directory, llama, only=None):
    """The program with all targets, or with the code of one, in which libFuzzer has fewer counters to read after each input."""
    copy_lock()
    target_dir = directory / "target"
    forget_other_checkout(target_dir)
    described = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    triple = re.search(r"^host: (.+)$", described, re.MULTILINE).group(1)
    environment = {**os.environ, "RUSTFLAGS": " ".join(RUSTFLAGS), "CARGO_TARGET_DIR": str(target_dir)}
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "HOB_FUZZ_ONLY"]:
        environment.pop(name, None)
    if only:
        environment["HOB_FUZZ_ONLY"] = only
    # With a named target, the flags apply to the program only, and not to build scripts and macros.
    command = ["cargo", "build", "--release", "--target", triple]
    if not llama:
        command.append("--no-default-features")
    if subprocess.run(command, cwd=FUZZ, env=environment).returncode != 0:
        sys.exit("the fuzz targets could not be built (see above)")
    return target_dir / triple / "release" / "hob-fuzz"


def build_for_each(targets, directory, llama):
    """A program for each target, by the target's name. Only their last step is repeated."""
    programs = {}
    for target in targets:
        programs[target.name] = directory / "programs" / target.name
        programs[target.name].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build(directory, llama, only=target.name), programs[target.name])
        programs[target.name].chmod(0o755)
    return programs


def copy_lock():
    """The targets use the versions of libraries that Hob uses. Cargo adds those that only the targets need."""
    hob, own = ROOT / "Cargo.lock", FUZZ / "Cargo.lock"
    if not own.exists() or own.stat().st_mtime < hob.stat().st_mtime:
        shutil.copyfile(hob, own)


def forget_other_checkout(target_dir):
    """Cargo compares the dates of the targets' own files only, so it could reuse those of another checkout."""
    stamp = target_dir / "checkout"
    if stamp.exists() and stamp.read_text() == str(ROOT):
        return
    for fingerprint in target_dir.glob("*/release/.fingerprint/hob-fuzz-*"):
        shutil.rmtree(fingerprint)
    target_dir.mkdir(parents=True, exist_ok=True)
    stamp.write_text(str(ROOT))


def listed(program):
    """The targets by name, as the program lists them."""
    environment = {name: value for name, value in os.environ.items() if name != "HOB_FUZZ_TARGET"}
    lines = subprocess.run([program], env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
    targets = {}
    for line in lines:
        name, dictionary, seconds, megabytes, stack = line.split()
        targets[name] = Target(name, dictionary, int(seconds), int(megabytes), int(stack))
    return targets


def run_all(programs, targets, directory, options):
    jobs = min(options.jobs, len(targets))
    if options.runs:
        lasts = [f"-runs={options.runs}"]
        patience = None
    else:
        total = options.seconds or SECONDS
        each = max(1, min(total, total * jobs // len(targets)))
        lasts = [f"-max_total_time={each}"]
        patience = each + PATIENCE
    with ThreadPoolExecutor(jobs) as pool:
        work = [
            pool.submit(run, programs[target.name], target, directory, lasts, patience, is_long(options)) for target in targets
        ]
        return [done.result() for done in work]


def run(program, target, directory, lasts, patience, grows):
    corpus = directory / ("corpus" if grows else "short") / target.name
    findings, log = directory / "findings" / target.name, directory / "logs" / f"{target.name}.log"
    if not grows:
        shutil.rmtree(corpus, ignore_errors=True)
    for folder in [corpus, findings, log.parent]:
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    command = [program, *target.arguments(findings), "-print_final_stats=1", *lasts, corpus, FUZZ / "corpus" / target.name]
    began = time.monotonic()
    with log.open("w") as out:
        try:
            status = subprocess.run(
                command, env=target.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=patience,
                preexec_fn=target.limit,
            ).returncode
        except subprocess.TimeoutExpired:
            status = 124
    seconds = time.monotonic() - began
    text = log.read_text(errors="replace")
    if status == 0 and "inline 8-bit counters" not in text:
        sys.exit(f"{target.name} ran without coverage: see {log}")
    shown = STATUS.findall(text)
    last, edges, features, inputs = map(int, shown[-1]) if shown else (0, 0, 0, 0)
    counted = EXECUTED.findall(text)
    executed = int(counted[-1]) if counted else last
    new = sorted(set(findings.iterdir()) - before)
    record(
        "fuzz_targets", target=target.name, executions=executed, seconds=round(seconds), edges=edges,
        findings=int(status != 0),
    )
    return Outcome(target, status, executed, seconds, edges, features, inputs, new, log)


def print_table(outcomes):
    form = "{:<20} {:>13} {:>9} {:>8} {:>9} {:>8} {:>9}"
    print(form.format("target", "executions", "per s", "edges", "features", "inputs", "findings"))
    for outcome in outcomes:
        rate = outcome.executed / max(outcome.seconds, 0.001)
        found = "yes" if outcome.status else "0"
        print(form.format(
            outcome.target.name, f"{outcome.executed:,}", f"{rate:,.0f}", f"{outcome.edges:,}", f"{outcome.features:,}",
            f"{outcome.inputs:,}", found,
        ))
    total = sum(outcome.executed for outcome in outcomes)
    failed = sum(1 for outcome in outcomes if outcome.status)
    print(form.format(f"{len(outcomes)} targets", f"{total:,}", "", "", "", "", str(failed)), flush=True)


def record_all(outcomes, seconds):
    """Adds the figures of a run of all targets."""
    record(
        "fuzz",
        targets=len(outcomes),
        executions=sum(outcome.executed for outcome in outcomes),
        seconds=round(seconds),
        edges=sum(outcome.edges for outcome in outcomes),
        findings=sum(1 for outcome in outcomes if outcome.status),
    )


def record(suite, **figures):
    """Adds a line for docs/reliability.md. A run does not fail because it cannot be recorded; the script says why."""
    arguments = [f"{name}={value}" for name, value in figures.items()]
    subprocess.run([sys.executable, RECORD, RELIABILITY, suite, *arguments], check=False)


def explain(outcome):
    """Says what was found, and how to see it again."""
    lines = outcome.log.read_text(errors="replace").splitlines()
    print(f"\n!! {outcome.target.name}: ended with {outcome.status}; see {outcome.log}", file=sys.stderr)
    for number, line in enumerate(lines):
        if TELLING.search(line):
            # The message of a panic is on the line after its place.
            for told in lines[number : number + (2 if "panicked at" in line else 1)]:
                print(f"   {told[:500]}", file=sys.stderr)
    for finding in outcome.findings:
        print(f"   again: ./dev fuzz {outcome.target.name} --replay {finding}", file=sys.stderr)


def replay(program, targets, file):
    (target,) = targets
    command = [program, *target.arguments(file.resolve().parent), file]
    return subprocess.run(command, env=target.environment(), preexec_fn=target.limit).returncode


def keep(program, target, directory):
    """Adds the inputs of long runs that reach code which the corpus in the repository does not reach. Whether that succeeded."""
    found = directory / "corpus" / target.name
    findings = directory / "findings" / target.name
    log = directory / "logs" / f"{target.name}.merge.log"
    command = [program, *target.arguments(findings), "-merge=1", FUZZ / "corpus" / target.name, found]
    with log.open("w") as out:
        status = subprocess.run(command, env=target.environment(), stdout=out, stderr=out, preexec_fn=target.limit).returncode
    if status != 0:
        print(f"!! the new inputs of {target.name} are not kept; see {log}", file=sys.stderr)
    return status == 0


if __name__ == "__main__":
    main()
