#!/usr/bin/env python3
"""npm.py TREE OUT --version VERSION --cpu CPU: packs a staged tree as an npm package, and prints its path.

    npm install -g ./hob-0.1.0-linux-x64.tgz

The package is for one platform, and npm refuses it on others. Its command is the program itself: npm links it, and no Node.js runs
between the terminal and Hob.
"""

import argparse
import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import staged_files

ROOT = Path(__file__).resolve().parent.parent


def manifest(version, cpu):
    return {
        "name": "hob",
        "version": version,
        "description": "One address for the models on your machine",
        "license": "Apache-2.0",
        "bin": {"hob": "bin/hob"},
        "os": ["linux"],
        "cpu": [cpu],
        "libc": ["glibc"],
        # The program is made for one platform, so it does not belong into a registry under this name.
        "private": True,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--cpu", required=True, choices=["x64", "arm64"])
    arguments = parser.parse_args()
    members = [
        ("package.json", json.dumps(manifest(arguments.version, arguments.cpu), indent=2).encode() + b"\n", 0o644),
        ("README.md", staged_files.readme().encode(), 0o644),
        ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        *staged_files.files(arguments.tree, "npm"),
    ]
    path = arguments.out / f"hob-{arguments.version}-linux-{arguments.cpu}.tgz"
    level = int(os.environ.get("HOB_COMPRESSION_LEVEL", "9"))
    # Without a name and a time in its head, the same files always give the same package.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", level, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name, contents, mode in members:
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size, entry.mode, entry.mtime = len(contents), mode, staged_files.build_time()
                archive.addfile(entry, io.BytesIO(contents))
    print(path)


if __name__ == "__main__":
    main()
