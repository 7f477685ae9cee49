#!/usr/bin/env bash
# reproducible.sh [DIRECTORY]: builds the release of the last commit twice, in different directories, and compares the files byte by byte.
#
#   packaging/reproducible.sh                  two builds in a temporary directory, which take as long as two releases
#   packaging/reproducible.sh dist             one build, compared with the release in dist/
#
# Ends with 0 if both are equal. The builds differ in what must not matter: the directory, the time zone, the language, and the time. They must have
# the same commit, the same Rust, the same C and C++ compilers, and the same system libraries; the line before the result names them. DIRECTORY has the
# files of this machine only, made with the same HOB_COMPRESSION_LEVEL, HOB_IMAGE and HOB_MAINTAINER as here.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/dev/messages.sh
. scripts/dev/messages.sh
# shellcheck source=scripts/dev/figures.sh
. scripts/dev/figures.sh

[ "$(uname -s)" = Linux ] || fail 'a release can be built only on Linux.'
git diff --quiet HEAD || fail 'the checkout has changes that are not committed, so the last commit is not what you have here.'

compared=''
if [ $# -gt 0 ]; then
    [ -r "$1/SHA256SUMS" ] || fail "there is no release in $1: SHA256SUMS is missing"
    compared=$(cd "$1" && pwd)
fi

# The address of the release is part of the formula and of install.sh. By default it is the directory, in which the builds differ.
HOB_RELEASE_URL=https://release.invalid
if [ -n "$compared" ]; then
    # A quoted word of the shell.
    HOB_RELEASE_URL=$(sed -n "s/^release_url='\(.*\)'\$/\1/p" "$compared/install.sh" | sed "s/'\\\\''/'/g")
    [ -n "$HOB_RELEASE_URL" ] || fail "$compared/install.sh does not say where the release is"
fi
export HOB_RELEASE_URL

commit=$(git rev-parse HEAD)
begin_figures
# Other files of the checkout are not built.
HOB_TEST_COMMIT=$(git rev-parse --short "$commit")
export HOB_TEST_COMMIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build COPY OUT: the release of the commit, from a copy of its files in the directory COPY. Other variables are set by the caller.
build() {
    local copy=$1 out=$2
    mkdir -p "$copy"
    git archive "$commit" | tar -x -C "$copy"
    (
        cd "$copy"
        umask 022
        unset CARGO_TARGET_DIR HOB_BINARY HOB_SIGNING_KEY RUSTC_WORKSPACE_WRAPPER
        packaging/release.sh "$out" >/dev/null
    )
}

say "building $commit"
TZ=UTC LC_ALL=C build "$work/first" "$work/out-first"
if [ -z "$compared" ]; then
    say "building $commit again, in another directory"
    compared=$work/out-second
    TZ=Asia/Tokyo LC_ALL=C.UTF-8 build "$work/a/longer/path/for/the/second" "$compared"
fi

# record DIFFERENT: notes for docs/reliability.md how many files differ.
record() {
    record_run reproducible "files=$(wc -l <"$compared/SHA256SUMS")" "different=$1"
}

say "commit $commit, $(rustc --version), $(cc --version | head -n 1), $(c++ --version | head -n 1), $(ldd --version | head -n 1)"
if diff "$work/out-first/SHA256SUMS" "$compared/SHA256SUMS" >"$work/differences"; then
    say 'both builds are equal:'
    cat "$compared/SHA256SUMS"
    record 0
    exit 0
fi
cat "$work/differences" >&2
record "$(awk '/^[<>]/ { print $3 }' "$work/differences" | sort -u | wc -l)"
if command -v diffoscope >/dev/null; then
    while read -r _ name; do
        cmp --silent "$work/out-first/$name" "$compared/$name" || diffoscope --max-report-size 20000 "$work/out-first/$name" "$compared/$name" >&2 || true
    done <"$compared/SHA256SUMS"
    fail 'the builds differ (see above).'
fi
fail 'the builds differ. Install diffoscope and run this again to see where.'
