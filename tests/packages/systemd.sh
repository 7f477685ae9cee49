#!/usr/bin/env bash
# systemd.sh HOB DIRECTORY: installs the Debian package of a built hob where a real systemd runs, and checks what the documentation says of the service.
#
# This is a container with a small Debian, which is made once and kept in DIRECTORY. Making it takes root and the network; the checks
# take root only: the service answers with the model $HOB_TEST_MODEL. Ends with 1 at the first thing that is not as it should be.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
hob=$1 directory=$2
system=$directory/debian-with-systemd-and-libgomp.tar
name=hob-test-systemd-$$
image=localhost/$name

fail() {
    printf '!! %s\n' "$*" >&2
    inside journalctl --unit hob --no-pager --output cat --lines 20 >&2 || true
    exit 1
}

# The usual runtime, crun, fails on machines with two versions of cgroups at once; and some machines cannot raise these limits.
podman() { command podman --runtime runc "$@"; }
limits=(--ulimit nofile=16384:16384 --ulimit nproc=4096:4096)
inside() { podman exec "$name" "$@"; }

# expect WORDS WANTED COMMAND...: the command, inside, prints what is wanted, however it ends.
expect() {
    local words=$1 wanted=$2 got
    shift 2
    got=$(inside "$@" 2>&1) || true
    [ "$got" = "$wanted" ] || fail "$words: '$got', not '$wanted'"
    echo "ok $words"
}

# succeed WORDS COMMAND... and refuse WORDS COMMAND...: how the command ends, inside.
succeed() {
    local words=$1
    shift
    inside "$@" >/dev/null 2>&1 || fail "$words: '$*' failed"
    echo "ok $words"
}
refuse() {
    local words=$1
    shift
    if inside "$@" >/dev/null 2>&1; then fail "$words: '$*' did not fail"; fi
    echo "ok $words"
}

work=$(mktemp -d)
trap clear_away EXIT
clear_away() {
    podman rm --force --time 0 "$name" >/dev/null 2>&1 || true
    podman rmi "$image" >/dev/null 2>&1 || true
    rm -rf "$work"
}

mkdir -p "$directory"
if [ ! -e "$system" ]; then
    mmdebstrap --quiet --variant=minbase --include=systemd-sysv,dbus,curl,ca-certificates,libgomp1 bookworm "$system.part.tar"
    mv "$system.part.tar" "$system"
fi
podman import --quiet "$system" "$image" >/dev/null
package=/given/$(basename "$(HOB_DEB_COMPRESSION=none "$root/packaging/deb.sh" "$hob" "$work" 2>/dev/null)")
cp "$HOB_TEST_MODEL" "$work/model.gguf"
podman run --detach --name "$name" --systemd=always --privileged --network none "${limits[@]}" --volume "$work:/given:ro" "$image" /sbin/init >/dev/null
inside systemctl is-system-running --wait >/dev/null || true

health=(curl --silent --fail --retry 30 --retry-delay 1 --retry-all-errors http://127.0.0.1:8000/health)

succeed 'the package installs' dpkg --install "$package"
succeed 'the program finds its libraries' hob --version
expect 'the service waits to be started' inactive systemctl is-active hob
expect 'only root and the service can read its settings' 'root:hob 750' stat --format '%U:%G %a' /etc/hob
succeed 'systemd understands the unit' systemd-analyze verify --man=no hob.service
refuse 'a start without an engine fails' systemctl start hob
inside systemctl stop hob
inside install -D --owner hob --mode 0600 /given/model.gguf /var/lib/hob/models/smollm2-135m-instruct.gguf
inside chown hob:hob /var/lib/hob/models
succeed 'it starts' systemctl enable --now hob
# Without waiting: a service that has started answers.
expect 'it answers as soon as it has started' '{"status":"ok"}' curl --silent http://127.0.0.1:8000/health
expect 'only the service can read its home' 'hob:hob 700' stat --format '%U:%G %a' /var/lib/hob
expect 'it has no capabilities' CapBnd:0000000000000000 sh -c "grep CapBnd /proc/\$(systemctl show --property MainPID --value hob)/status | tr -d '\\t'"
succeed 'systemd rates it as well protected' systemd-analyze security --threshold=15 hob
inside systemctl kill --signal KILL hob
expect 'it comes back after a crash' '{"status":"ok"}' "${health[@]}"

inside sh -c 'cp /etc/hob/config.toml /root/; echo "x = [" >>/etc/hob/config.toml'
refuse 'settings that cannot be read are reported at once' systemctl restart hob
inside sh -c 'cat /root/config.toml >/etc/hob/config.toml; systemctl restart hob'
expect 'with correct settings it starts again' '{"status":"ok"}' "${health[@]}"
inside rm /etc/hob/config.toml
succeed 'an upgrade works although the settings are gone' dpkg --install "$package"
inside sh -c 'install --group hob --mode 0640 /root/config.toml /etc/hob/; systemctl restart hob'
succeed 'it stops' systemctl stop hob
expect 'and ends without an error' success systemctl show --property Result --value hob

inside systemctl start hob
succeed 'the package is removed while it runs' dpkg --remove hob
succeed 'the data stays' test -e /var/lib/hob/hob.db
succeed 'the package is purged' dpkg --purge hob
refuse 'nothing stays' sh -c 'ls -d /var/lib/hob /etc/hob || getent passwd hob'
