#!/usr/bin/env bash
# release.sh [DIRECTORY]: builds all files of a release, for machines with the same architecture as this one.
#
#   packaging/release.sh                         into dist/
#   HOB_BINARY=.../hob packaging/release.sh      use an existing binary, to test the script
#
# hob-VERSION-MACHINE-linux.tar.gz, the Debian package, the bill of materials, the licences, and SHA256SUMS over all of them.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$here/../dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here/.."

say() { printf '== %s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ]; then
    echo "!! a release can be built only on Linux. On other systems, 'cargo install --locked --path crates/cli' builds hob for this machine." >&2
    exit 1
fi

machine=$(uname -m)

# Uses the time of the last commit as the build time, so that the same sources give the same archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

if [ -z "${HOB_BINARY:-}" ]; then
    say 'building, with a library for every kind of processor'
    # Replaces 'target-cpu=native' of .cargo/config.toml, for Rust and for llama.cpp, because a release is for other machines: the program
    # runs on any processor, and loads the library for it. Removes the paths of this machine from the program. Encoded, because a path
    # may contain spaces.
    flags=$(printf '%s\037' "--remap-path-prefix=$PWD=." "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
    # Messages of llama.cpp contain file names. Its build does not support paths with spaces, so those stay unchanged.
    case ${CARGO_HOME:-$HOME/.cargo} in
    *' '*) map='' ;;
    *) map=-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=cargo ;;
    esac
    CFLAGS="${CFLAGS:-} $map" CXXFLAGS="${CXXFLAGS:-} $map" CARGO_ENCODED_RUSTFLAGS=${flags%?} \
        cargo build --release --locked -p hob --bin hob --features dynamic-backends
    HOB_BINARY=${CARGO_TARGET_DIR:-target}/release/hob
fi

say 'writing the bill of materials'
target=$(rustc -vV | sed -n 's/^host: //p')
python3 packaging/inventory.py "$out" --target "$target" >&2

version=$("$HOB_BINARY" --version | cut -d ' ' -f 2)
name=hob-$version-$machine-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "packing $name.tar.gz"
packaging/stage.sh "$HOB_BINARY" "$work/$name"
# Small systems do not have this library, and an archive cannot ask for it.
if [ -d "$work/$name/lib/hob" ]; then cp -L "$(cc -print-file-name=libgomp.so.1)" "$work/$name/lib/hob/"; fi
cp README.md LICENSE CHANGELOG.md config.example.toml "$out/third-party-licences.txt" "$work/$name/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

files=("$name.tar.gz" sbom.cdx.json third-party-licences.txt)
if command -v dpkg-deb >/dev/null; then
    say 'packing for Debian'
    package=$(packaging/deb.sh "$HOB_BINARY" "$out" "$out/sbom.cdx.json" "$out/third-party-licences.txt")
    files+=("$(basename "$package")")
else
    say 'no dpkg-deb here, so no Debian package'
fi

# Only the files of this release, not others in the directory.
(cd "$out" && sha256sum "${files[@]}" >SHA256SUMS)
packaging/sign.sh "$out"
say "done: $out"
cat "$out/SHA256SUMS"
