"""The files of a staged tree, for the scripts that pack it without its own tools. Needs only the standard library."""

import os
import re
from pathlib import Path

# What a user's own installation needs. The unit in lib/systemd is for the administrator; 'hob service' has its own.
PARTS = ["bin", "lib/hob", "share"]

MARKER = "share/hob/installed-by"


def files(tree, method):
    """(path in the tree, contents, mode) of every file, in the order of their paths; the marker names `method`."""
    found = {}
    for part in PARTS:
        for path in sorted((tree / part).rglob("*")):
            if path.is_file():
                found[path.relative_to(tree).as_posix()] = (path.read_bytes(), 0o755 if part == "bin" else 0o644)
    found[MARKER] = (f"method={method}\n".encode(), 0o644)
    return [(name, *found[name]) for name in sorted(found)]


def build_time():
    """Seconds since 1970, from SOURCE_DATE_EPOCH, so that the same files always give the same package."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def readme():
    """The readme without its images, which a package does not have."""
    text = (Path(__file__).resolve().parent.parent / "README.md").read_text()
    return re.sub(r"<picture>.*?</picture>\n*", "", text, flags=re.DOTALL)
