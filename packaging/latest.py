#!/usr/bin/env python3
"""latest.py --version VERSION OUT FILE...: writes OUT/latest.json, which 'hob update' reads: version, date, notes and names of the files.

The notes are the section of CHANGELOG.md for this version, or the one for what is unreleased.
"""

import argparse
import datetime
import json
import os
import re
import time
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parent.parent / "CHANGELOG.md"

# 'hob update' reads no more than 256 KiB.
LONGEST_NOTES = 64 * 1024


def notes(changelog, version):
    """The text below '## 0.1.0', '## [0.1.0] - 2026-11-20' or '## Unreleased'."""
    sections = {}
    for part in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        sections[title.split()[0].strip("[]").lower()] = text.strip()
    found = sections.get(version.lower(), sections.get("unreleased"))
    if found is None:
        raise SystemExit(f"latest.py: CHANGELOG.md has no section '## {version}' and none '## Unreleased'")
    return found if len(found) <= LONGEST_NOTES else found[:LONGEST_NOTES].rsplit("\n", 1)[0] + "\n…"


def date():
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%d")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    latest = {
        "version": arguments.version,
        "date": date(),
        "notes": notes(CHANGELOG.read_text(), arguments.version),
        "files": arguments.files,
    }
    (arguments.out / "latest.json").write_text(json.dumps(latest, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
