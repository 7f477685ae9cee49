#!/usr/bin/env bash
# release.sh [DIRECTORY]: builds all files of a release, for machines with the same architecture as this one.
#
#   packaging/release.sh                         into dist/
#   HOB_BINARY=.../hob packaging/release.sh      use an existing binary, to test the script
#   packaging/cross.sh                           the same for 64-bit Arm, on x86-64
#
# hob-VERSION-MACHINE-linux.tar.gz, the Debian package, the Python wheel, the npm package, the container image, the Homebrew formula,
# install.sh, latest.json, the bill of materials, the licences, and SHA256SUMS over all of them. All come from one tree of files.
#
# $HOB_RELEASE_URL: where the files will be, for the formula and install.sh; by default this directory. $HOB_COMPRESSION_LEVEL: 1 is fast.
# $HOB_IMAGE: 'yes' also builds the container image, with podman. Files of the same version for other machines that already are in the
# directory become part of the formula, of latest.json and of SHA256SUMS.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$here/../dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
# Without links, because the compilers write that path into the program.
cd -P "$here/.."

say() { printf '== %s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ]; then
    echo "!! a release can be built only on Linux. On other systems, 'cargo install --locked --path crates/cli' builds hob for this machine." >&2
    exit 1
fi
# shellcheck source=packaging/target.sh
. packaging/target.sh

# Uses the time of the last commit as the build time, so that the same sources give the same archives.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# The scripts share a module, whose compiled form does not belong into the checkout.
export PYTHONDONTWRITEBYTECODE=1
level=${HOB_COMPRESSION_LEVEL:-9}
url=${HOB_RELEASE_URL:-file://$out}

if [ -z "${HOB_BINARY:-}" ]; then
    say 'building, with a library for every kind of processor'
    # Replaces 'target-cpu=native' of .cargo/config.toml, for Rust and for llama.cpp, because a release is for other machines: the program
    # runs on any processor, and loads the library for it. Removes the paths of this machine from the program, so that a build in
    # another directory gives the same one. The directory of the build comes last, because it may lie in one of the others.
    maps=("$PWD=." "${CARGO_HOME:-$HOME/.cargo}=cargo" "$(realpath -ms "${CARGO_TARGET_DIR:-target}")=./target")
    # Encoded, because a path may contain spaces.
    flags=$(printf -- '--remap-path-prefix=%s\037' "${maps[@]}")
    # Messages of llama.cpp contain the names of its files and of the changed copies. Its build does not support paths with spaces, so
    # those stay unchanged.
    c_flags=''
    for map in "${maps[@]}"; do
        case $map in *' '*) ;; *) c_flags="$c_flags -ffile-prefix-map=$map" ;; esac
    done
    # Cargo puts the files of a named target into a directory of its own.
    named=()
    if [ -n "${CARGO_BUILD_TARGET:-}" ]; then named=(--target "$CARGO_BUILD_TARGET"); fi
    CFLAGS="${CFLAGS:-}$c_flags" CXXFLAGS="${CXXFLAGS:-}$c_flags" CARGO_ENCODED_RUSTFLAGS=${flags%?} \
        cargo build --release --locked -p hob --bin hob --features dynamic-backends "${named[@]}"
    HOB_BINARY=${CARGO_TARGET_DIR:-target}/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release/hob
fi

say 'writing the bill of materials'
target=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
python3 packaging/inventory.py "$out" --target "$target" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say 'laying out the files'
packaging/stage.sh "$HOB_BINARY" "$work/tree"
version=$(version_of "$work/tree/bin/hob")
name=hob-$version-$machine-linux
files=("$name.tar.gz" sbom.cdx.json third-party-licences.txt)

if command -v dpkg-deb >/dev/null; then
    say 'packing for Debian'
    package=$(packaging/deb.sh "$work/tree" "$out" "$out/sbom.cdx.json" "$out/third-party-licences.txt")
    files+=("$(basename "$package")")
else
    say 'no dpkg-deb here, so no Debian package'
fi

# Small systems do not have this library. Only a Debian package can ask for it; the others contain it.
if [ -d "$work/tree/lib/hob" ]; then cp -L "$("${tools}gcc" -print-file-name=libgomp.so.1)" "$work/tree/lib/hob/"; fi

say 'packing for Python and npm'
mapfile -t binaries < <(binaries_in "$work/tree")
glibc=$(newest_symbol GLIBC "${binaries[@]}")
wheel=$(python3 packaging/wheel.py "$work/tree" "$out" --version "$version" --platform "manylinux_$(cut -d . -f 1,2 <<<"$glibc" | tr . _)_$machine")
npm=$(python3 packaging/npm.py "$work/tree" "$out" --version "$version" --cpu "$npm_cpu")
files+=("$(basename "$wheel")" "$(basename "$npm")")

if [ "${HOB_IMAGE:-}" = yes ]; then
    say 'building the container image'
    image=$(packaging/image.sh "$work/tree" "$out")
    files+=("$(basename "$image")")
fi

say "packing $name.tar.gz"
mv "$work/tree" "$work/$name"
cp README.md LICENSE CHANGELOG.md config.example.toml "$out/third-party-licences.txt" "$work/$name/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --mode=u+rw,go=rX --owner=0 --group=0 --numeric-owner -C "$work" -cf - "$name" | gzip "-$level" -n >"$out/$name.tar.gz"
# Files of the same version for other machines, from earlier runs. Python writes the version of a pre-release in another form.
wheel_version=$(basename "$wheel" | cut -d - -f 2)
for other in "$out"/hob-"$version"-*-{linux,macos}.tar.gz "$out"/hob_"$version"_*.deb "$out"/hob-"$wheel_version"-py3-*.whl "$out"/hob-"$version"-linux-*.tgz; do
    case " ${files[*]} " in *" $(basename "$other") "*) continue ;; esac
    if [ -e "$other" ]; then files+=("$(basename "$other")"); fi
done

say 'writing the formula, install.sh and latest.json'
python3 packaging/formula.py "$out" --version "$version" --url "$url"
# Written as a quoted word of the shell.
quoted=$(printf '%s' "$url" | sed "s/'/'\\\\''/g")
awk -v line="release_url='$(printf '%s' "$quoted" | sed 's/\\/\\\\/g')'" '/^release_url=/ { print line; next } { print }' packaging/install.sh >"$out/install.sh"
chmod 0755 "$out/install.sh"
files+=(hob.rb install.sh)
python3 packaging/latest.py --version "$version" "$out" "${files[@]}"
files+=(latest.json)

# Only the files of this release, not others in the directory.
(cd "$out" && sha256sum "${files[@]}" >SHA256SUMS)
packaging/sign.sh "$out"
say "done: $out"
cat "$out/SHA256SUMS"
