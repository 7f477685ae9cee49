#!/usr/bin/env bash
# clean_root.sh HOB DIRECTORY: makes a release of a built hob, and installs every file of it in a small Debian without a network.
#
# That Debian has Python, npm and what the packages ask for. It is made once and kept in DIRECTORY, which takes the network. There, a new
# user's first commands are timed, with the model $HOB_TEST_MODEL. The container image of the release is run, too. Needs root, podman and
# mmdebstrap. Ends with 1 at the first thing that is not as it should be.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
hob=$1 directory=$2
system=$directory/debian-with-python-and-npm.tar
name=hob-test-clean-root-$$
image=localhost/$name

fail() {
    printf '!! %s\n' "$*" >&2
    exit 1
}

# The usual runtime, crun, fails on machines with two versions of cgroups at once; and some machines cannot raise these limits.
podman() { command podman --runtime runc "$@"; }
inside=(run --rm --network none --no-healthcheck --ulimit nofile=16384:16384 --ulimit nproc=4096:4096)

work=$(mktemp -d)
trap clear_away EXIT
clear_away() {
    podman rmi "$image" >/dev/null 2>&1 || true
    if [ -n "${built:-}" ]; then podman rmi "$built" >/dev/null 2>&1 || true; fi
    rm -rf "$work"
}

mkdir -p "$directory"
if [ ! -e "$system" ]; then
    mmdebstrap --quiet --variant=minbase --include=python3-venv,nodejs,npm,ca-certificates,libgomp1,libstdc++6 bookworm "$system.part.tar"
    mv "$system.part.tar" "$system"
fi
podman import --quiet "$system" "$image" >/dev/null

HOB_BINARY=$hob HOB_IMAGE=yes HOB_COMPRESSION_LEVEL=1 HOB_DEB_COMPRESSION=none "$root/packaging/release.sh" "$work/release" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail 'the release cannot be built'; }

# At the same path as here, because install.sh contains it.
mounts=(--volume "$work/release:$work/release:ro" --volume "$root/tests/packages:/checks:ro")
podman "${inside[@]}" "${mounts[@]}" "$image" python3 -B /checks/install.py "$work/release"

told=$(podman "${inside[@]}" "${mounts[@]}" "$image" sh -c "dpkg --install '$work'/release/*.deb >&2 && hob update --json")
case $told in *'"method":"deb"'*) echo 'ok the Debian package, installed' ;; *) fail "the Debian package: $told" ;; esac

podman "${inside[@]}" "${mounts[@]}" --volume "$HOB_TEST_MODEL:/given/model.gguf:ro" "$image" \
    sh -c "exec python3 -B /checks/first_day.py '$work'/release/*.deb /given/model.gguf"

version=$("$hob" --version | cut -d ' ' -f 2)
built=localhost/hob:$version
podman load --quiet --input "$work/release/hob-$version-$(uname -m)-image.tar" >/dev/null
told=$(podman "${inside[@]}" "$built" update --json)
case $told in *'"method":"container"'*) echo 'ok the container image' ;; *) fail "the container image: $told" ;; esac
