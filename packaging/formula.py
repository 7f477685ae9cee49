#!/usr/bin/env python3
"""formula.py OUT --version VERSION --url URL: writes OUT/hob.rb, the Homebrew formula of the archives of this version in OUT.

URL is where the files of OUT will be. The formula has a part for each archive that exists: for Linux, and for macOS if its archive was
copied to OUT.
"""

import argparse
import hashlib
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent / "homebrew" / "hob.rb.in"

SYSTEMS = [("macos", "on_macos"), ("linux", "on_linux")]
MACHINES = [("aarch64", "on_arm"), ("x86_64", "on_intel")]


def platforms(out, version, url):
    lines = []
    for system, on_system in SYSTEMS:
        inner = []
        for machine, on_machine in MACHINES:
            archive = out / f"hob-{version}-{machine}-{system}.tar.gz"
            if archive.exists():
                digest = hashlib.sha256(archive.read_bytes()).hexdigest()
                inner += [f"    {on_machine} do", f'      url "{url}/{archive.name}"', f'      sha256 "{digest}"', "    end"]
        if inner:
            lines += [f"  {on_system} do", *inner, "  end", ""]
    if not lines:
        raise SystemExit(f"formula.py: no archive of version {version} in {out}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--url", required=True)
    arguments = parser.parse_args()
    url = arguments.url.rstrip("/")
    text = TEMPLATE.read_text().replace("@URL@", url).replace("@VERSION@", arguments.version)
    text = text.replace("@PLATFORMS@", platforms(arguments.out, arguments.version, url))
    (arguments.out / "hob.rb").write_text(text)


if __name__ == "__main__":
    main()
