"""A copy of the workspace in which the files of files.txt contain all their mutants, and the programs of its tests.

A build has all mutants that compile. The compiler says which do not: its errors name lines, and the rewriting program says which mutant
a line belongs to.
"""

import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What the copy has as files of its own. Everything else at the top of the repository is a link.
COPIED = ["crates", "Cargo.toml", "Cargo.lock"]
NOT_NEEDED = [".git", "target", "dist", ".cache"]
# A few are enough in practice: each round finds the errors that those before hid.
MOST_ROUNDS = 30


@dataclass
class Mutant:
    number: int
    name: str
    file: str
    function: str
    span: dict
    replacement: str

    def for_rewriting(self):
        return {field: getattr(self, field) for field in ["number", "file", "span", "replacement"]}


@dataclass
class Program:
    """A program of tests."""

    package: str
    path: Path
    directory: Path


class Workspace:
    def __init__(self, directory, files):
        self.directory = directory
        self.files = files
        self.at = directory / "workspace"
        self.target = directory / "target"
        # The files as they were when the run began, because a checkout may change during a long run.
        self.originals = directory / "originals"
        self.sources = {file: (ROOT / file).read_bytes() for file in files}
        self.mutants = list_mutants(files)
        self.unviable = set()
        self.not_switchable = set()

    def build(self, packages):
        """Builds the tests of these packages with all mutants."""
        self.packages = packages
        self.copy_sources()
        if not self.target.exists():
            self.take_libraries()
        self.rewriter = self.build_rewriter()
        self.state = self.hash_of_sources()
        self.unviable = self.known_unviable()
        mutated = sorted({package_of(ROOT / file) for file in self.files})
        names = [word for package in mutated for word in ["-p", package]]
        self.build_without_errors(["build", "--lib", "--keep-going", *names])
        messages = self.build_without_errors(tests_of(packages))
        return [
            Program(package_of(Path(message["manifest_path"])), Path(message["executable"]), Path(message["manifest_path"]).parent)
            for message in messages
            if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]
        ]

    def copy_sources(self):
        """Copies what changed. A file that is equal keeps its date, so that it is not compiled again."""
        self.at.mkdir(parents=True, exist_ok=True)
        for entry in ROOT.iterdir():
            link = self.at / entry.name
            if entry.name in COPIED + NOT_NEEDED or (link.is_symlink() and link.readlink() == entry):
                continue
            # It may be that of another checkout.
            link.unlink(missing_ok=True)
            link.symlink_to(entry)
        for name in COPIED[1:]:
            copy_if_changed(ROOT / name, self.at / name)
        roots = {root_of(file) for file in self.files}
        found = set()
        for folder, _, names in os.walk(ROOT / "crates"):
            inside = Path(folder).relative_to(ROOT)
            (self.at / inside).mkdir(parents=True, exist_ok=True)
            found.update(str(inside / name) for name in names)
        for name in found - roots - self.sources.keys():
            copy_if_changed(ROOT / name, self.at / name)
        shutil.rmtree(self.originals, ignore_errors=True)
        for name in roots | self.sources.keys():
            (self.originals / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.originals / name)
        if any((self.originals / file).read_bytes() != source for file, source in self.sources.items()):
            sys.exit("a file of files.txt has just changed; run this again")
        for folder, _, names in os.walk(self.at / "crates"):
            for name in names:
                path = Path(folder) / name
                if str(path.relative_to(self.at)) not in found:
                    path.unlink()

    def take_libraries(self):
        """Begins with the libraries that other builds have compiled, but not with crates of Hob."""
        compiled = Path(os.environ["CARGO_TARGET_DIR"]) / "debug"
        print("copying compiled libraries", flush=True)
        for part in ["deps", "build", ".fingerprint"]:
            for folder, folders, names in os.walk(compiled / part):
                folders[:] = [name for name in folders if not name.startswith("hob-")]
                inside = self.target / "debug" / Path(folder).relative_to(compiled)
                inside.mkdir(parents=True, exist_ok=True)
                for name in names:
                    if part == "deps" and not is_library(name):
                        continue
                    source, target = Path(folder) / name, inside / name
                    try:
                        # Cargo and build scripts write into other files, but replace these.
                        if name.endswith((".rlib", ".rmeta", ".so")):
                            os.link(source, target)
                        else:
                            shutil.copy2(source, target, follow_symlinks=False)
                    except FileNotFoundError:
                        # Another build has just replaced it. What is missing is compiled again.
                        continue

    def build_rewriter(self):
        target = self.directory / "rewrite"
        manifest = HERE / "rewrite" / "Cargo.toml"
        command = ["cargo", "build", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target]
        if subprocess.run(command, cwd=ROOT, env=environment()).returncode != 0:
            sys.exit("the program that writes mutants into files could not be built (see above)")
        return target / "debug" / "mutants-rewrite"

    def rewrite(self, applied=None):
        """Writes the files with the mutants that are not known to be unviable. Where each is: (number, file, first line, last line).
        `applied` is the number of one that cannot be chosen at run time."""
        mutants = [mutant.for_rewriting() for mutant in self.mutants if mutant.name not in self.unviable]
        request = json.dumps({"files": self.files, "mutants": mutants, "applied": applied})
        done = subprocess.run([self.rewriter, self.originals, self.at], input=request, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit("the mutants could not be written into the files (see above)")
        answer = json.loads(done.stdout)
        self.not_switchable = set(answer["not_switchable"])
        return [(each["number"], each["file"], each["first"], each["last"]) for each in answer["variants"]]

    def build_without_errors(self, arguments):
        """Builds until no mutant has an error. The messages of cargo."""
        names = {mutant.number: mutant.name for mutant in self.mutants}
        for _ in range(MOST_ROUNDS):
            variants = self.rewrite()
            succeeded, messages = self.cargo(arguments)
            if succeeded:
                return messages
            errors = errors_in(messages)
            new = {number for error in errors for number in mutants_at(error, variants)}
            print(f"{len(new)} mutants do not compile", flush=True)
            if not new:
                sys.exit("\n".join([*(each["rendered"] for each in errors), "the mutants could not be built"]))
            self.unviable.update(names[number] for number in new)
            self.keep_unviable()
        sys.exit(f"after {MOST_ROUNDS} rounds, the mutants still have errors")

    def build_applied(self, mutant):
        """Builds the tests again with a mutant that cannot be chosen at run time, or without one. Whether it compiles."""
        self.rewrite(mutant and mutant.number)
        # Of all packages, because the features of a library depend on which are built.
        succeeded, messages = self.cargo(tests_of(self.packages))
        if not succeeded and not errors_in(messages):
            sys.exit("the tests could not be built (see above)")
        return succeeded

    def cargo(self, arguments):
        """Whether a command of cargo succeeds, and its messages."""
        command = ["cargo", *arguments, "--message-format=json", "--manifest-path", self.at / "Cargo.toml"]
        env = {**environment(), "CARGO_TARGET_DIR": str(self.target)}
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        return done.returncode == 0, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def known_unviable(self):
        """The names of mutants that did not compile with these sources."""
        path = self.directory / "unviable.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        return set(known.get("names", [])) if known.get("sources") == self.state else set()

    def keep_unviable(self):
        kept = {"sources": self.state, "names": sorted(self.unviable)}
        (self.directory / "unviable.json").write_text(json.dumps(kept, indent=1))

    def hash_of_sources(self):
        """Of all code except tests in files of their own."""
        found = hashlib.sha256()
        for path in sorted((self.at / "crates").glob("*/src/**/*.rs")):
            if not path.name.endswith("tests.rs"):
                name = path.relative_to(self.at)
                original = self.originals / name
                found.update(str(name).encode() + (original if original.exists() else path).read_bytes())
        return found.hexdigest()


def tests_of(packages):
    """What cargo builds for the tests of some packages."""
    return ["test", "--no-run", "--lib", "--bins", "--tests", *(word for package in packages for word in ["-p", package])]


def list_mutants(files):
    """The mutants of these files, as cargo-mutants finds them."""
    command = ["cargo", "mutants", "--list", "--json", "--colors", "never", *(f"--file={file}" for file in files)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("cargo-mutants could not list the mutants (see above)")
    return [
        Mutant(
            number, each["name"], each["file"], (each["function"] or {}).get("function_name", ""), each["span"],
            each["replacement"],
        )
        for number, each in enumerate(json.loads(done.stdout), 1)
    ]


def errors_in(messages):
    """The errors of the compiler that have a place."""
    found = [each["message"] for each in messages if each["reason"] == "compiler-message"]
    return [each for each in found if each["level"].startswith("error") and each["spans"]]


def mutants_at(error, variants):
    """The numbers of the mutants in whose code an error is: where it is shown first, or where its reasons are."""
    def numbers(spans):
        places = [(span["file_name"], span["line_start"]) for span in spans]
        return {
            number for number, file, first, last in variants for name, line in places if name == file and first <= line <= last
        }

    def with_calls(span):
        """The place in a macro, and where the macro is called."""
        while span:
            yield span
            span = (span.get("expansion") or {}).get("span")

    spans = [each for span in error["spans"] for each in with_calls(span)]
    others = [each for child in error["children"] for span in child["spans"] for each in with_calls(span)]
    return numbers(span for span in spans if span["is_primary"]) or numbers(spans) or numbers(others)


def environment():
    """That of a build without the settings for lint."""
    return {name: value for name, value in os.environ.items() if name not in ["RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"]}


def root_of(file):
    return f"{file.split('/src/')[0]}/src/lib.rs"


def package_of(path):
    """The name of the package that has a file."""
    for folder in path.parents:
        manifest = folder / "Cargo.toml"
        if manifest.exists():
            return re.search(r'^name = "(.+)"$', manifest.read_text(), re.MULTILINE).group(1)
    raise ValueError(f"{path} is in no package")


def is_library(name):
    return name.endswith((".rlib", ".rmeta", ".so", ".d")) and not name.startswith(("hob_", "libhob_"))


def copy_if_changed(source, target):
    """The copy is new now, whatever the date of its source, because the source may be that of another checkout."""
    if not target.exists() or not filecmp.cmp(source, target, shallow=False):
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
