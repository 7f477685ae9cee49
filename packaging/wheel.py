#!/usr/bin/env python3
"""wheel.py TREE OUT --version VERSION --platform TAG: packs a staged tree as a Python wheel, and prints its path.

    uv tool install ./hob-0.1.0-py3-none-manylinux_2_36_x86_64.whl

There is no Python code in it: the program goes to the 'bin' of the environment, its libraries and manual pages beside it.
"""

import argparse
import base64
import csv
import hashlib
import io
import os
import re
import time
import zipfile
from pathlib import Path

import staged_files

LICENCE = Path(__file__).resolve().parent.parent / "LICENSE"

# The oldest time that a zip file can store.
OLDEST = 315532800


def python_version(version):
    """A pre-release such as 0.2.0-rc.1 in the form of Python's packages: 0.2.0rc1."""
    release, _, pre = version.partition("-")
    if not pre:
        return release
    found = re.fullmatch(r"(alpha|beta|rc)\.?(\d+)", pre)
    if not found:
        raise SystemExit(f"wheel.py: {version} has no form in Python's packages; use 0.2.0, 0.2.0-rc.1 or 0.2.0-beta.1")
    return release + {"alpha": "a", "beta": "b", "rc": "rc"}[found[1]] + found[2]


def place(name, data):
    """Where a file of the tree is in the wheel. Installers put 'scripts' into bin and make them executable."""
    return f"{data}/scripts/hob" if name == "bin/hob" else f"{data}/data/{name}"


def metadata(version):
    return (
        "Metadata-Version: 2.4\nName: hob\n"
        f"Version: {version}\n"
        "Summary: One address for the models on your machine\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\n"
        "Requires-Python: >=3.8\n"
        "Description-Content-Type: text/markdown\n\n" + staged_files.readme()
    )


def members(arguments, version):
    """(path in the wheel, contents, mode)"""
    name = f"hob-{version}"
    found = [
        (place(path, f"{name}.data"), contents, mode) for path, contents, mode in staged_files.files(arguments.tree, "wheel")
    ]
    wheel = f"Wheel-Version: 1.0\nGenerator: hob\nRoot-Is-Purelib: false\nTag: py3-none-{arguments.platform}\n"
    found += [
        (f"{name}.dist-info/METADATA", metadata(version).encode(), 0o644),
        (f"{name}.dist-info/WHEEL", wheel.encode(), 0o644),
        (f"{name}.dist-info/licenses/LICENSE", LICENCE.read_bytes(), 0o644),
    ]
    return [*found, (f"{name}.dist-info/RECORD", record(found, name), 0o644)]


def record(found, name):
    """The list of all files with their checksums. It has none for itself."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, contents, _ in found:
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(contents)])
    rows.writerow([f"{name}.dist-info/RECORD", "", ""])
    return text.getvalue().encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--platform", required=True, help="such as manylinux_2_36_x86_64")
    arguments = parser.parse_args()
    version = python_version(arguments.version)
    path = arguments.out / f"hob-{version}-py3-none-{arguments.platform}.whl"
    level = int(os.environ.get("HOB_COMPRESSION_LEVEL", "9"))
    moment = time.gmtime(max(staged_files.build_time(), OLDEST))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, contents, mode in members(arguments, version):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # A regular file with these rights.
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, contents, compresslevel=level)
    print(path)


if __name__ == "__main__":
    main()
