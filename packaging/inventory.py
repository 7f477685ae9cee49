#!/usr/bin/env python3
"""inventory.py OUT [--target TRIPLE]: what a release of hob is made of.

Writes OUT/sbom.cdx.json, a bill of materials in CycloneDX 1.6 with every library that is linked in or helps to build it, and
OUT/third-party-licences.txt, the texts that their licences ask to pass on. Both come from what cargo resolved and fetched;
the standard library of Python is all it needs.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Libraries in other languages that crates bring along, by the crate: where their sources say which version they are, and where
# their licence lies. A file that moved is an error, because a missing entry would not be noticed.
INSIDE = {
    "llama-cpp-sys-2": {
        "name": "ggml",  # llama.cpp's own library, which has a version where llama.cpp has none
        "license": "MIT",
        "version": ("llama.cpp/ggml/CMakeLists.txt", r"VERSION_MAJOR (\d+)\)\s+\S+VERSION_MINOR (\d+)\)\s+\S+VERSION_PATCH (\d+)"),
        "texts": ["llama.cpp/LICENSE"],
    },
    "libsqlite3-sys": {
        "name": "sqlite",
        "license": "blessing",
        "version": ("sqlite3/sqlite3.h", r'SQLITE_VERSION +"([0-9.]+)"'),
        "texts": [],
    },
    "libmimalloc-sys": {
        "name": "mimalloc",
        "license": "MIT",
        "version": ("c_src/mimalloc/v3/include/mimalloc.h", r"MI_MALLOC_VERSION (\d)(\d\d)(\d\d)"),
        "texts": ["c_src/mimalloc/v3/LICENSE"],
    },
}


def metadata(target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    if target:
        command += ["--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def built(target):
    """Names and versions of what a build of hob compiles: cargo's metadata also has what the tests' features would add."""
    command = ["cargo", "tree", "--locked", "-p", "hob", "-e", "no-dev", "--prefix", "none", "--format", "{p}"]
    if target:
        command += ["--target", target]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {tuple(line.split()[:2]) for line in lines if line}


def linked(found, compiled):
    """Ids of all packages that hob is built from, without those that only tests use, and who needs whom."""
    names = {p["id"]: (p["name"], f"v{p['version']}") for p in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    root = next(p["id"] for p in found["packages"] if p["name"] == "hob" and p["source"] is None)
    needs, waiting = {}, [root]
    while waiting:
        package = waiting.pop()
        if package in needs:
            continue
        needs[package] = sorted(
            dependency["pkg"]
            for dependency in nodes[package]["deps"]
            if names[dependency["pkg"]] in compiled
            and any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"])
        )
        waiting += needs[package]
    return root, needs


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def checksums():
    """SHA-256 of the packages, from Cargo.lock, which is TOML of one simple shape."""
    sums, name, version = {}, None, None
    for line in (ROOT / "Cargo.lock").read_text().splitlines():
        key, _, value = line.partition(" = ")
        if key == "name":
            name = value.strip('"')
        elif key == "version":
            version = value.strip('"')
        elif key == "checksum":
            sums[name, version] = value.strip('"')
    return sums


def licence(package):
    if package["license"]:
        # An older spelling of OR.
        return [{"expression": package["license"].replace("/", " OR ")}]
    return [{"license": {"name": "see third-party-licences.txt"}}]


def component(package, sums):
    entry = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
        "licenses": licence(package),
    }
    digest = sums.get((package["name"], package["version"]))
    if digest:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    if package["name"] in INSIDE:
        inside = INSIDE[package["name"]]
        version = version_inside(package, *inside["version"])
        entry["components"] = [
            {
                "type": "library",
                "bom-ref": f"{reference(package)}#{inside['name']}",
                "name": inside["name"],
                "version": version,
                "purl": f"pkg:generic/{inside['name']}@{version}",
                "licenses": [{"license": {"id": inside["license"]}}],
            }
        ]
    return entry


def version_inside(package, file, pattern):
    """The version that a library's own sources give it; parts such as 02 are numbers."""
    text = (sources(package) / file).read_text(errors="replace")
    found = re.search(pattern, text)
    if not found:
        raise SystemExit(f"inventory.py: {file} of {package['name']} {package['version']} no longer says its version")
    return ".".join(str(int(part)) for group in found.groups() for part in group.split("."))


def sources(package):
    return pathlib.Path(package["manifest_path"]).parent


def timestamp():
    """Now, or the moment that a reproducible build is said to have happened."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = (
        datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
        if epoch
        else datetime.datetime.now(datetime.timezone.utc)
    )
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def bill(packages, root, needs):
    hob = packages[root]
    when = timestamp()
    others = sorted((packages[i] for i in needs if i != root), key=lambda p: (p["name"], p["version"]))
    sums = checksums()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, f"hob {hob['version']} {when}")),
        "version": 1,
        "metadata": {
            "timestamp": when,
            "component": {
                "type": "application",
                "bom-ref": reference(hob),
                "name": "hob",
                "version": hob["version"],
                "description": hob["description"],
                "licenses": licence(hob),
            },
        },
        "components": [component(package, sums) for package in others],
        "dependencies": [
            {"ref": reference(packages[i]), "dependsOn": [reference(packages[n]) for n in needs[i]]}
            for i in sorted(needs, key=lambda i: reference(packages[i]))
        ],
    }


def licence_files(package):
    directory = sources(package)
    named = [directory / package["license_file"]] if package.get("license_file") else []
    beginnings = ("licen", "copying", "notice", "unlicense", "copyright")
    usual = [file for file in sorted(directory.iterdir()) if file.name.lower().startswith(beginnings) and file.is_file()]
    inside = [directory / text for text in INSIDE.get(package["name"], {}).get("texts", [])]
    return list(dict.fromkeys(file.resolve(strict=True) for file in named + usual + inside))


def texts(packages, root, needs):
    """Each text once, with the packages it belongs to."""
    owners = {}
    bare = []
    for package in sorted((packages[i] for i in needs if i != root), key=lambda p: (p["name"], p["version"])):
        if package["source"] is None:
            continue
        title = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        files = licence_files(package)
        if not files:
            bare.append(title)
        for file in files:
            owners.setdefault(file.read_text(errors="replace").strip(), []).append(title)
    parts = ["Hob is made with the work of others. Their licences:\n"]
    for text, titles in owners.items():
        parts.append("\n".join(["=" * 100, *dict.fromkeys(titles), "=" * 100, "", text, ""]))
    if bare:
        parts.append("\n".join(["=" * 100, "These packages carry no text of their licence:", *bare, ""]))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--target", help="only what is built for this platform, such as x86_64-unknown-linux-gnu")
    arguments = parser.parse_args()
    found = metadata(arguments.target)
    packages = {package["id"]: package for package in found["packages"]}
    root, needs = linked(found, built(arguments.target))
    arguments.out.mkdir(parents=True, exist_ok=True)
    sbom = json.dumps(bill(packages, root, needs), indent=1)
    (arguments.out / "sbom.cdx.json").write_text(sbom + "\n")
    (arguments.out / "third-party-licences.txt").write_text(texts(packages, root, needs))
    print(f"{len(needs) - 1} packages")


if __name__ == "__main__":
    main()
