#!/usr/bin/env bash
# target.sh: sourced by the other scripts of this directory. Sets what a package is for, and the tools that read programs for it.
#
# $HOB_MACHINE: the processor, x86_64 or aarch64; by default that of this machine. $HOB_RUNNER: a command that runs programs for it here,
# such as 'qemu-aarch64 -L /usr/aarch64-linux-gnu'; packaging/cross.sh sets both.
# shellcheck disable=SC2034  # used by the scripts that source this one

machine=${HOB_MACHINE:-$(uname -m)}
case $machine in
x86_64) debian_architecture=amd64 npm_cpu=x64 ;;
aarch64) debian_architecture=arm64 npm_cpu=arm64 ;;
*)
    echo "!! there are no packages for '$machine', only for x86_64 and aarch64." >&2
    exit 1
    ;;
esac
# Debian's cross tools have the machine in their names.
tools=''
if [ "$machine" != "$(uname -m)" ]; then tools=$machine-linux-gnu-; fi

# run_hob HOB ARGUMENT...: runs a program for the target, with a home directory that does not exist, so that its output depends only on the version.
run_hob() {
    local hob=$1
    shift
    # Unquoted on purpose: these are several words, or none.
    # shellcheck disable=SC2086
    HOB_HOME=/nonexistent/hob ${HOB_RUNNER:-} "$hob" "$@"
}

# version_of HOB
version_of() { run_hob "$1" --version | cut -d ' ' -f 2; }

# newest_symbol LIBRARY FILE...: the newest version of a library's symbols that the files use, such as 2.36 for GLIBC.
newest_symbol() {
    local library=$1
    shift
    "${tools}objdump" -T "$@" | grep -o "${library}_[0-9.]*" | sed "s/${library}_//" | sort -Vu | tail -n 1
}

# binaries_in TREE: the program and its libraries, one per line, without those of graphics cards: their drivers come from elsewhere.
binaries_in() {
    local library
    printf '%s\n' "$1/bin/hob"
    for library in "$1"/lib/hob/*.so*; do
        case $library in *'*'* | *-cuda.so | *-hip.so | *-vulkan.so) ;; *) printf '%s\n' "$library" ;; esac
    done
}

# mark_installed_by TREE METHOD: 'hob update' reads this file to say how to update.
mark_installed_by() {
    mkdir -p "$1/share/hob"
    printf 'method=%s\n' "$2" >"$1/share/hob/installed-by"
}
