#!/usr/bin/env bash
# stage.sh BINARY DIRECTORY: writes the files of every package to DIRECTORY: the program, its libraries, manual pages, completions, the systemd unit.
#
# The program itself writes the manual pages and completions, so that they match its version.
set -euo pipefail
umask 022

if [ "$(uname -s)" != Linux ]; then
    echo '!! packages can be built only on Linux, with GNU tools.' >&2
    exit 1
fi

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=packaging/target.sh
. "$here/target.sh"
binary=$1 root=$2

install -D -m 0755 "$binary" "$root/bin/hob"
# Removes debug information, which is most of the file. A release build has none.
"${tools}strip" --strip-unneeded "$root/bin/hob"

# The libraries of a build with 'dynamic-backends' lie beside the program: those that it is linked with, one for every kind of processor,
# and those of graphics cards that were built too.
if "${tools}objdump" -p "$binary" | grep 'NEEDED.*libllama' >/dev/null; then
    beside=$(dirname "$binary")
    mkdir -p "$root/lib/hob"
    for library in "$beside"/lib*.so.0 "$beside"/libggml-{cpu*,cuda,hip,vulkan}.so; do
        [ -e "$library" ] || continue # a pattern that matched nothing
        install -m 0644 "$library" "$root/lib/hob/"
        "${tools}strip" --strip-unneeded "$root/lib/hob/$(basename "$library")"
    done
fi

mkdir -p "$root/share/man/man1"
run_hob "$root/bin/hob" man "$root/share/man/man1"
gzip -9n "$root"/share/man/man1/*.1

# complete SHELL FILE
complete() {
    mkdir -p "$(dirname "$root/share/$2")"
    run_hob "$root/bin/hob" completions "$1" >"$root/share/$2"
}
complete bash bash-completion/completions/hob
complete zsh zsh/vendor-completions/_hob
complete fish fish/vendor_completions.d/hob.fish

install -D -m 0644 "$here/hob.service" "$root/lib/systemd/system/hob.service"
install -D -m 0644 "$here/hob.sysusers" "$root/lib/sysusers.d/hob.conf"
mark_installed_by "$root" archive
