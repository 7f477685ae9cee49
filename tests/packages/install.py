"""Installs every file of a release in a place of its own, as its users do, and runs the hob that this gives.

    install.py RELEASE

RELEASE is what packaging/release.sh wrote. Nothing outside of a temporary directory is changed, and nothing is downloaded. Needs the
standard library, and npm (or $HOB_TEST_NODE), dpkg-deb and pip for their packages; uv is used if it is installed. Ends with 1 at the
first thing that is not as it should be. Knows nothing of how the files were made.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path


def fail(message):
    sys.exit(f"!! {message}")


def require(condition, message):
    if not condition:
        fail(message)


def run(*command, **options):
    """The output of a command that must succeed."""
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options
    )
    if ran.returncode != 0:
        fail(f"{command} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class Release:
    def __init__(self, directory, work):
        self.directory = directory
        self.work = work
        self.latest = json.loads((directory / "latest.json").read_text())
        self.version = self.latest["version"]

    def file(self, pattern):
        found = sorted(self.directory.glob(pattern))
        require(len(found) == 1, f"{pattern}: {found}")
        return found[0]

    def place(self, name):
        """An empty directory, with a space in its path, because paths of users have them too."""
        place = self.work / f"{name} here"
        place.mkdir()
        return place

    def expect_hob(self, hob, method):
        """The program runs, and knows how it was installed."""
        home = Path(tempfile.mkdtemp(dir=self.work))
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "HOB_HOME": str(home)}
        require(run(hob, "--version", env=environment) == f"hob {self.version}\n", f"{hob} is another version")
        ran = subprocess.run([hob, "update", "--json"], capture_output=True, text=True, env=environment)
        told = json.loads(ran.stdout)
        require(told["version"] == self.version and told["method"] == method, f"{hob}: {told}")
        return told


def check_sums(release):
    listed = {}
    for line in (release.directory / "SHA256SUMS").read_text().splitlines():
        digest, name = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line).groups()
        listed[name] = digest
    for name, digest in listed.items():
        found = hashlib.sha256((release.directory / name).read_bytes()).hexdigest()
        require(found == digest, f"SHA256SUMS: {name}")
    kinds = [".tar.gz", ".whl", ".tgz", "hob.rb", "install.sh", "latest.json", "sbom.cdx.json"]
    for kind in kinds:
        require(any(name.endswith(kind) for name in listed), f"SHA256SUMS has no {kind}")
    require(set(release.latest["files"]) == set(listed) - {"latest.json"}, "latest.json lists other files")


def check_latest(release):
    require(re.fullmatch(r"\d{4}-\d\d-\d\d", release.latest["date"]), release.latest["date"])
    require(release.latest["notes"].strip(), "latest.json has no notes")


def check_archive(release):
    place = release.place("archive")
    archive = release.file("hob-*-linux.tar.gz")
    run("tar", "-xzf", archive, "-C", place)
    require([path.name for path in place.iterdir()] == [archive.name.removesuffix(".tar.gz")], "the archive has one directory")
    tree = place / archive.name.removesuffix(".tar.gz")
    release.expect_hob(tree / "bin/hob", "archive")
    for name in ["README.md", "LICENSE", "CHANGELOG.md", "config.example.toml", "third-party-licences.txt",
                 "share/man/man1/hob.1.gz", "share/man/man1/hob-serve.1.gz", "lib/systemd/system/hob.service",
                 "share/bash-completion/completions/hob", "share/zsh/vendor-completions/_hob",
                 "share/fish/vendor_completions.d/hob.fish"]:
        require((tree / name).stat().st_size > 0, f"the archive has no {name}")


def check_script(release):
    prefix = release.place("script")
    environment = {"PATH": os.environ["PATH"], "HOME": str(prefix), "HOB_INSTALL_URL": str(release.directory)}
    # Twice: the second time is an update.
    for _ in range(2):
        run("sh", release.directory / "install.sh", env=environment)
    told = release.expect_hob(prefix / ".local/bin/hob", "install.sh")
    require(told["latest"]["version"] == release.version and told["is_newer"] is False, f"hob update: {told}")
    left = [path for path in (prefix / ".local").rglob("*") if path.name.endswith((".new", ".old"))]
    require(not left, f"install.sh left {left}")
    # With the address that release.sh wrote into it.
    del environment["HOB_INSTALL_URL"]
    run("sh", release.directory / "install.sh", "--prefix", prefix / "a prefix", env=environment)
    release.expect_hob(prefix / "a prefix/bin/hob", "install.sh")


def pip():
    """A pip that installs into other environments. Debian's python3-venv has one only for new environments."""
    return [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else None


def check_wheel(release):
    wheel = release.file("*.whl")
    place = release.place("wheel")
    own = pip()
    venv.create(place, with_pip=own is None)
    python = place / "bin/python"
    command = [*own, "--python", python] if own else [python, "-m", "pip"]
    run(*command, "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", wheel)
    release.expect_hob(place / "bin/hob", "pip")
    require((place / "share/man/man1/hob.1.gz").exists(), "the wheel has no manual pages")
    run(*command, "uninstall", "--quiet", "--disable-pip-version-check", "--yes", "hob")
    require(not (place / "bin/hob").exists() and not (place / "share/hob").exists(), "pip left files")


def check_uv(release):
    beside = Path(sys.executable).with_name("uv")
    uv = beside if beside.exists() else shutil.which("uv")
    if not uv:
        print("-- uv is not installed, so it is not tried")
        return
    place = release.place("uv")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "UV_TOOL_DIR": str(place / "tools"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
        "UV_CACHE_DIR": str(place / "cache"),
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON": sys.executable,
    }
    wheel = release.file("*.whl").resolve()
    run(uv, "tool", "install", "--quiet", wheel, env=environment)
    release.expect_hob(place / "bin/hob", "uv")
    told = run(uv, "tool", "run", "--quiet", "--from", wheel, "hob", "--version", env=environment)
    require(told == f"hob {release.version}\n", f"uvx: {told}")


def npm():
    """As tests/parts/install.py finds it."""
    if shutil.which("npm"):
        return [shutil.which("npm")]
    node = Path(os.environ.get("HOB_TEST_NODE", "node"))
    return [node, node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"]


def check_npm(release):
    place = release.place("npm")
    environment = {**os.environ, "HOME": str(place), "npm_config_cache": str(place / "cache"), "npm_config_update_notifier": "false"}
    flags = ["--prefix", place, "--offline", "--no-audit", "--no-fund", "--loglevel", "error"]
    run(*npm(), "install", "--global", *flags, release.file("*.tgz").resolve(), env=environment, cwd=place)
    release.expect_hob(place / "bin/hob", "npm")
    run(*npm(), "uninstall", "--global", *flags, "hob", env=environment, cwd=place)
    require(not (place / "bin/hob").exists(), "npm left the command")


def check_debian(release):
    if not shutil.which("dpkg-deb"):
        print("-- dpkg-deb is not installed, so there is no Debian package to try")
        return
    place = release.place("debian")
    run("dpkg-deb", "--extract", release.file("*.deb"), place)
    release.expect_hob(place / "usr/bin/hob", "deb")


def check_formula(release):
    """Homebrew itself is too large for a test. What it would download is checked, and Ruby reads the text if it is installed."""
    text = release.file("hob.rb").read_text()
    require(not re.search(r"@[A-Z]+@", text), "the formula has placeholders")
    found = re.findall(r'url "(.*)/(\S+)"\n\s+sha256 "([0-9a-f]{64})"', text)
    require(found, "the formula has no archive")
    for _, name, digest in found:
        require(hashlib.sha256((release.directory / name).read_bytes()).hexdigest() == digest, f"the formula: {name}")
    if shutil.which("ruby"):
        run("ruby", "-c", release.file("hob.rb"))


CHECKS = [check_sums, check_latest, check_archive, check_script, check_wheel, check_uv, check_npm, check_debian, check_formula]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        release = Release(Path(sys.argv[1]).resolve(), Path(work))
        for check in CHECKS:
            check(release)
            print(f"ok {check.__name__.removeprefix('check_')}", flush=True)


main()
