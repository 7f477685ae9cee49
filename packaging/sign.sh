#!/usr/bin/env bash
# sign.sh DIRECTORY: signs the checksums and the bill of materials of a release with the SSH key in HOB_SIGNING_KEY. Without a key it does nothing.
#
#   HOB_SIGNING_KEY=~/.ssh/hob_release packaging/sign.sh dist
#   packaging/sign.sh --verify dist allowed_signers     check the signatures and all checksums
#
# The key is a private key, or a public key whose private key an SSH agent has, such as one on a security token. The signatures are
# SHA256SUMS.sig and sbom.cdx.json.sig. 'allowed_signers' has a line 'hob namespaces="hob-release" ssh-ed25519 AAAA...' for each key that may sign.
set -euo pipefail

readonly namespace=hob-release signer=hob
readonly signed='SHA256SUMS sbom.cdx.json'

fail() {
    printf '!! %s\n' "$@" >&2
    exit 1
}

check_sums() {
    if command -v sha256sum >/dev/null; then
        sha256sum --check --quiet SHA256SUMS >&2
    else
        shasum -a 256 --check --quiet SHA256SUMS >&2
    fi
}

have_ssh_keygen() {
    command -v ssh-keygen >/dev/null || fail "ssh-keygen is missing. It is in the package 'openssh-client'."
}

# verify DIRECTORY ALLOWED_SIGNERS
verify() {
    local signers file
    [ -r "$2" ] || fail "cannot read '$2', the file with the keys that may sign"
    signers=$(CDPATH='' cd -- "$(dirname -- "$2")" && pwd)/$(basename -- "$2")
    cd "$1"
    for file in $signed; do
        [ -e "$file.sig" ] || fail "$file is not signed: $file.sig is missing"
        ssh-keygen -Y verify -f "$signers" -I "$signer" -n "$namespace" -s "$file.sig" <"$file" >&2 ||
            fail "the signature of $file is not valid: do not use this release"
    done
    check_sums || fail 'a file of the release differs from its checksum: do not use this release'
    echo "$1 is signed and complete" >&2
}

# sign DIRECTORY
sign() {
    local file
    cd "$1"
    # A signature says that these files are the release.
    check_sums || fail 'the files of the release differ from SHA256SUMS, so they are not signed'
    for file in $signed; do
        rm -f "$file.sig"
        ssh-keygen -Y sign -f "$HOB_SIGNING_KEY" -n "$namespace" "$file" >&2 || fail "cannot sign $file with $HOB_SIGNING_KEY"
    done
}

case ${1:-} in
--verify)
    [ $# -eq 3 ] || fail 'usage: sign.sh --verify DIRECTORY ALLOWED_SIGNERS'
    have_ssh_keygen
    verify "$2" "$3"
    ;;
'' | -*)
    fail 'usage: sign.sh DIRECTORY, or sign.sh --verify DIRECTORY ALLOWED_SIGNERS'
    ;;
*)
    if [ -z "${HOB_SIGNING_KEY:-}" ]; then
        echo '== the release is not signed: HOB_SIGNING_KEY is not set' >&2
        exit 0
    fi
    [ -r "$HOB_SIGNING_KEY" ] || fail "cannot read the key in HOB_SIGNING_KEY: $HOB_SIGNING_KEY"
    HOB_SIGNING_KEY=$(CDPATH='' cd -- "$(dirname -- "$HOB_SIGNING_KEY")" && pwd)/$(basename -- "$HOB_SIGNING_KEY")
    have_ssh_keygen
    sign "$1"
    ;;
esac
