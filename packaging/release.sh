#!/usr/bin/env bash
# release.sh [DIRECTORY]: everything that a release has, for machines like this one but not only for this one.
#
#   packaging/release.sh                         into dist/
#   HOB_CPU=x86-64 packaging/release.sh          for any x86-64, slower; see docs/embedded.md
#   HOB_BINARY=.../hob packaging/release.sh      of a hob that is built already, to try the script
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
    echo "!! a release is packed on Linux. Elsewhere 'cargo install --path crates/cli' builds hob for this machine." >&2
    exit 1
fi

machine=$(uname -m)
case $machine in
x86_64) cpu=${HOB_CPU:-x86-64-v3} ;;
*) cpu=${HOB_CPU:-generic} ;;
esac

# The moment of the last commit stands for the moment of the build: the same sources give the same archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

if [ -z "${HOB_BINARY:-}" ]; then
    say "building for $cpu"
    # Replaces 'target-cpu=native' of .cargo/config.toml, for Rust and for llama.cpp: a release is for other machines.
    # Paths of this machine have no place in the program.
    # Encoded, as a path may have spaces.
    flags=$(printf '%s\037' -C "target-cpu=$cpu" "--remap-path-prefix=$PWD=." \
        "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
    # The complaints of llama.cpp name its files. Its build knows no paths with spaces, which stay as they are.
    case ${CARGO_HOME:-$HOME/.cargo} in
    *' '*) map='' ;;
    *) map=-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=cargo ;;
    esac
    CFLAGS="${CFLAGS:-} $map" CXXFLAGS="${CXXFLAGS:-} $map" CARGO_ENCODED_RUSTFLAGS=${flags%?} \
        cargo build --release --locked -p hob --bin hob
    HOB_BINARY=${CARGO_TARGET_DIR:-target}/release/hob
fi

say 'writing down what it is made of'
target=$(rustc -vV | sed -n 's/^host: //p')
python3 packaging/inventory.py "$out" --target "$target" >&2

version=$("$HOB_BINARY" --version | cut -d ' ' -f 2)
name=hob-$version-$machine-linux
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "packing $name.tar.gz"
packaging/stage.sh "$HOB_BINARY" "$work/$name"
cp README.md LICENSE CHANGELOG.md config.example.toml "$out/third-party-licences.txt" "$work/$name/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

files=("$name.tar.gz" sbom.cdx.json third-party-licences.txt)
if command -v dpkg-deb >/dev/null; then
    say 'packing for Debian'
    package=$(HOB_CPU=$cpu packaging/deb.sh "$HOB_BINARY" "$out" "$out/sbom.cdx.json" "$out/third-party-licences.txt")
    files+=("$(basename "$package")")
else
    say 'no dpkg-deb here, so no Debian package'
fi

# Of this release's files, whatever else lies there.
(cd "$out" && sha256sum "${files[@]}" >SHA256SUMS)
say "done: $out"
cat "$out/SHA256SUMS"
