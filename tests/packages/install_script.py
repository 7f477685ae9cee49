"""Tries packaging/install.sh with releases that are damaged, incomplete or hostile, and in odd places.

    install_script.py

The releases are made here: an archive with a small script in place of the program. Whatever goes wrong, install.sh says so, ends with 1
and installs nothing. Needs the standard library, sh and the usual tools. Ends with 1 at the first thing that is not as it should be.
"""

import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "install.sh"
SYSTEM = {"Linux": "linux", "Darwin": "macos"}[platform.system()]
MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}[platform.machine()]
NAME = f"hob-9.8.7-{MACHINE}-{SYSTEM}"
PROGRAM = b'#!/bin/sh\necho "hob 9.8.7"\n'


def require(condition, message):
    if not condition:
        sys.exit(f"!! {message}")


def archive(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name, contents in members.items():
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size, entry.mode = len(contents), 0o755
            file.addfile(entry, io.BytesIO(contents))
    return packed.getvalue()


class Case:
    """A release in a directory, and a place to install to."""

    def __init__(self, work, name, program=PROGRAM):
        self.release = work / name / "a release"
        self.home = work / name / "a home"
        self.release.mkdir(parents=True)
        self.home.mkdir()
        self.name = name
        self.archive = self.release / f"{NAME}.tar.gz"
        members = {"bin/hob": program, "lib/hob/libx.so": b"x", "share/hob/installed-by": b"method=archive\n"}
        self.archive.write_bytes(archive(members))
        self.list_sums()

    def list_sums(self, *more):
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        lines = [f"{digest}  {self.archive.name}", *more]
        (self.release / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))

    def install(self, *arguments, script=SCRIPT, **environment):
        base = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HOB_INSTALL_URL": str(self.release)}
        return subprocess.run(
            ["sh", str(script), *arguments],
            env={**base, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.home,
            timeout=60,
        )

    def refused(self, ran, words):
        require(ran.returncode != 0, f"{self.name}: it did not fail: {ran.stderr}")
        require(words in ran.stderr, f"{self.name}: '{words}' is not in:\n{ran.stderr}")
        left = [path for path in self.home.rglob("*") if path.is_file()]
        require(not left, f"{self.name}: it left {left}")
        print(f"ok {self.name}: {ran.stderr.strip().splitlines()[-1]}")

    def installed(self, ran, prefix):
        require(ran.returncode == 0, f"{self.name}: {ran.stderr}")
        told = subprocess.run([prefix / "bin/hob", "--version"], capture_output=True, text=True).stdout
        require(told == "hob 9.8.7\n", f"{self.name}: {told}")
        require((prefix / "lib/hob/libx.so").read_bytes() == b"x", f"{self.name}: no libraries")
        marker = (prefix / "share/hob/installed-by").read_text()
        require(marker.startswith("method=install.sh\nurl="), f"{self.name}: {marker}")
        print(f"ok {self.name}")
        return marker


def fake_curl(case, text):
    """A directory with a curl that does as `text` says; $output is where it should write, $address what it should read."""
    directory = case.home.parent / "fake programs"
    directory.mkdir()
    curl = directory / "curl"
    curl.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 1 ]; do case $1 in --output) output=$2; shift ;; esac; shift; done\naddress=$1\n'
        f"release='{case.release}'\n{text}\n"
    )
    curl.chmod(0o755)
    return {"PATH": f"{directory}:{os.environ['PATH']}", "HOB_INSTALL_URL": "https://example.org/hob"}


def good_ones(work):
    case = Case(work, "a release in a directory, for a home with a space")
    marker = case.installed(case.install(), case.home / ".local")
    require(marker.endswith(f"url=file://{case.release}\n"), marker)
    case.installed(case.install(), case.home / ".local")

    case = Case(work, "a file: address and a relative prefix")
    ran = case.install("--prefix", "my tools", HOB_INSTALL_URL=f"file://{case.release}/")
    case.installed(ran, case.home / "my tools")
    require("is not on your PATH" in ran.stderr, ran.stderr)

    case = Case(work, "an https address")
    ran = case.install(**fake_curl(case, 'cp "$release/${address##*/}" "$output"'))
    marker = case.installed(ran, case.home / ".local")
    require(marker.endswith("url=https://example.org/hob\n"), marker)


def damaged_ones(work):
    case = Case(work, "a wrong checksum")
    case.archive.write_bytes(case.archive.read_bytes() + b"!")
    case.refused(case.install(), "the download is damaged or was changed. Nothing was installed.")

    case = Case(work, "a truncated archive")
    case.archive.write_bytes(case.archive.read_bytes()[:100])
    case.refused(case.install(), "Nothing was installed.")

    case = Case(work, "a download that ends early, without an error")
    ran = case.install(**fake_curl(case, 'head -c 150 "$release/${address##*/}" >"$output"'))
    case.refused(ran, "Nothing was installed.")

    case = Case(work, "a download that breaks off")
    ran = case.install(**fake_curl(case, 'head -c 9 "$release/${address##*/}" >"$output"; exit 18'))
    case.refused(ran, "SHA256SUMS cannot be downloaded from https://example.org/hob.")

    case = Case(work, "a missing archive")
    case.archive.unlink()
    case.refused(case.install(), "cannot be downloaded from")

    case = Case(work, "a missing list of checksums")
    (case.release / "SHA256SUMS").unlink()
    case.refused(case.install(), "SHA256SUMS cannot be downloaded from")

    case = Case(work, "an archive that is none, with its checksum")
    case.archive.write_bytes(b"<html>")
    case.list_sums()
    case.refused(case.install(), "cannot be unpacked. Nothing was installed.")

    case = Case(work, "a program that does not run here", program=b"#!/bin/sh\nexit 1\n")
    case.refused(case.install(), "does not run on this system. Nothing was installed.")


def hostile_ones(work):
    case = Case(work, "an archive for another machine only")
    sums = case.release / "SHA256SUMS"
    sums.write_text(sums.read_text().replace(MACHINE, "riscv64"))
    case.refused(case.install(), "has no archive for")

    case = Case(work, "two archives for this machine")
    case.list_sums(f"{'0' * 64}  hob-9.9.9-{MACHINE}-{SYSTEM}.tar.gz")
    case.refused(case.install(), "has several archives for")

    case = Case(work, "a name that leaves the directory")
    sums = case.release / "SHA256SUMS"
    sums.write_text(f"{'0' * 64}  hob-/../../x-{MACHINE}-{SYSTEM}.tar.gz\n")
    case.refused(case.install(), "has no archive for")

    case = Case(work, "an address without encryption")
    case.refused(case.install(HOB_INSTALL_URL="http://example.org/hob"), "must be an https address or a directory")

    case = Case(work, "no address")
    case.refused(case.install(HOB_INSTALL_URL=""), "set HOB_INSTALL_URL")

    case = Case(work, "a directory that does not exist")
    case.refused(case.install(HOB_INSTALL_URL="/no/such/directory"), "there is no directory /no/such/directory")

    case = Case(work, "an unknown argument")
    case.refused(case.install("--upgrade"), "unknown argument '--upgrade'")

    case = Case(work, "a prefix that is a file")
    blocked = case.home.parent / "file"
    blocked.write_text("")
    case.refused(case.install("--prefix", str(blocked / "x")), "Hob cannot be installed to")


def half_a_script(work):
    """Cut anywhere, the script installs nothing."""
    text = SCRIPT.read_text()
    case = Case(work, "a script that was downloaded in part")
    cut = case.home.parent / "cut.sh"
    for length in range(200, len(text) - len('main "$@"\n'), 400):
        cut.write_text(text[:length])
        case.install(script=cut)
        left = [path for path in case.home.rglob("*") if path.is_file()]
        require(not left, f"{case.name}: the first {length} characters left {left}")
    print(f"ok {case.name}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory).resolve()
        good_ones(work)
        damaged_ones(work)
        hostile_ones(work)
        half_a_script(work)


main()
