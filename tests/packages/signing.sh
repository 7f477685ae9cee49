#!/usr/bin/env bash
# signing.sh: makes a key, signs the files of a small release with packaging/sign.sh, and checks that a changed byte, a foreign key and a missing
# signature are noticed. Ends with 1 at the first thing that is not as it should be.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
sign=$root/packaging/sign.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    printf '!! %s\n' "$*" >&2
    exit 1
}

sums() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

# release: fresh files of a release, in a directory with a space in its name.
release() {
    rm -rf "$work/a release"
    mkdir "$work/a release"
    printf 'archive\n' >"$work/a release/hob.tar.gz"
    printf '{"bomFormat": "CycloneDX"}\n' >"$work/a release/sbom.cdx.json"
    (cd "$work/a release" && sums hob.tar.gz sbom.cdx.json >SHA256SUMS)
}

# accept WHAT: the check succeeds.
accept() {
    "$sign" --verify "$work/a release" "$work/allowed_signers" 2>"$work/said" || fail "$1: $(cat "$work/said")"
    echo "ok $1"
}

# refuse WHAT WORDS: the check fails, and says these words.
refuse() {
    if "$sign" --verify "$work/a release" "$work/allowed_signers" 2>"$work/said"; then fail "$1: accepted"; fi
    grep -q "$2" "$work/said" || fail "$1: $(cat "$work/said")"
    echo "ok $1"
}

for name in ours foreign; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/$name"; done
printf 'hob namespaces="hob-release" %s\n' "$(cat "$work/ours.pub")" >"$work/allowed_signers"
export HOB_SIGNING_KEY=$work/ours

release
env -u HOB_SIGNING_KEY "$sign" "$work/a release" 2>"$work/said"
[ ! -e "$work/a release/SHA256SUMS.sig" ] || fail 'signed without a key'
refuse 'a release without signatures' 'is not signed'

"$sign" "$work/a release" 2>/dev/null
accept 'a signed release'
"$sign" "$work/a release" 2>/dev/null
accept 'a release that was signed twice'

printf 'archivE\n' >"$work/a release/hob.tar.gz"
refuse 'a changed byte in the archive' 'differs from its checksum'
(cd "$work/a release" && sums hob.tar.gz sbom.cdx.json >SHA256SUMS)
refuse 'a changed byte with a new checksum' 'the signature of SHA256SUMS is not valid'

release
"$sign" "$work/a release" 2>/dev/null
printf '{"bomFormat": "CycloneDx"}\n' >"$work/a release/sbom.cdx.json"
refuse 'a changed byte in the bill of materials' 'the signature of sbom.cdx.json is not valid'

if "$sign" "$work/a release" 2>/dev/null; then fail 'signed files that differ from their checksums'; fi
echo 'ok files that differ from their checksums are not signed'

release
HOB_SIGNING_KEY=$work/foreign "$sign" "$work/a release" 2>/dev/null
refuse 'a foreign key' 'the signature of SHA256SUMS is not valid'

# A signature for another purpose, such as a commit, is not one for a release.
release
for file in SHA256SUMS sbom.cdx.json; do ssh-keygen -q -Y sign -f "$work/ours" -n git "$work/a release/$file" 2>/dev/null; done
refuse 'a signature for another purpose' 'the signature of SHA256SUMS is not valid'

if HOB_SIGNING_KEY=$work/nowhere "$sign" "$work/a release" 2>/dev/null; then fail 'signed with a key that is missing'; fi
echo 'ok a key that cannot be read is an error'
