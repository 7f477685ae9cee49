#!/usr/bin/env bash
# image.sh TREE DIRECTORY: builds the container image of a staged tree with podman, as an archive in DIRECTORY, and prints its path.
#
#   podman load -i hob-0.1.0-x86_64-image.tar
#
# The image is that of packaging/Containerfile, with a program that is already built: no registry and no network are needed.
set -euo pipefail
umask 022

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=packaging/target.sh
. "$here/target.sh"
tree=$1 out=$2

if [ "$machine" != "$(uname -m)" ]; then
    echo "!! the image for $machine takes the system's libraries, so build it on such a machine." >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image=$work/image
version=$(version_of "$tree/bin/hob")

mkdir -p "$image/usr/bin" "$image/usr/lib" "$work/home"
cp "$tree/bin/hob" "$image/usr/bin/hob"
if [ -d "$tree/lib/hob" ]; then cp -R "$tree/lib/hob" "$image/usr/lib/hob"; fi
mark_installed_by "$image/usr" container
# Everything that the program needs: its libraries, CA certificates, name lookup, and a directory for temporary files.
mapfile -t binaries < <(binaries_in "$image/usr")
ldd "${binaries[@]}" | grep -o '/[^ :)]*' | grep -v "^$work" | sort -u | xargs -I '{}' cp --dereference --parents '{}' "$image"
install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/ca-certificates.crt"
echo 'hosts: files dns' >"$image/etc/nsswitch.conf"
echo 'hob:x:10001:10001:Hob:/var/lib/hob:/sbin/nologin' >"$image/etc/passwd"
echo 'hob:x:10001:' >"$image/etc/group"
install -d -m 1777 "$image/tmp"

# The last part of the Containerfile, from these directories instead of a build.
sed -n '/^FROM scratch/,$p' "$here/Containerfile" |
    sed -e 's|^COPY --from=build /image /|COPY image /|' -e 's|^COPY --from=build --chown=10001:10001 /home-of-hob |COPY --chown=10001:10001 home |' >"$work/Containerfile"
name=localhost/hob:$version
podman build --quiet --format docker --tag "$name" --file "$work/Containerfile" "$work" >&2
archive=$out/hob-$version-$machine-image.tar
rm -f "$archive"
podman save --quiet --format docker-archive --output "$archive" "$name"
echo "$archive"
