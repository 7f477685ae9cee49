#!/bin/sh
# Installs Hob from a release, for this user: downloads the archive for this machine, checks it, and copies it below a prefix.
#
#   curl -fsSL https://example.org/hob/install.sh | HOB_INSTALL_URL=https://example.org/hob sh
#   HOB_INSTALL_URL=/path/of/a/release sh install.sh --prefix "$HOME/.local"
#
# Everything is in functions that the last line calls, so that a script that was downloaded in part does nothing.
set -eu

# Where the release is; packaging/release.sh sets it if it knows the address.
release_url=''

usage() {
    cat <<'END'
Installs Hob from a release.

Usage: install.sh [--prefix DIRECTORY]

  --prefix DIRECTORY   install to DIRECTORY/bin, DIRECTORY/lib/hob and DIRECTORY/share [default: ~/.local]
  --help               show this text

Environment
  HOB_INSTALL_URL      where the release is: an https address, a file: address or a directory
END
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

say() { printf '%s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# The end of the archive's name for this machine, such as x86_64-linux.
platform() {
    case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=macos ;;
    *) fail "there is no release for $(uname -s). Build Hob from source." ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no release for the processor $(uname -m). Build Hob from source." ;;
    esac
    printf '%s-%s\n' "$machine" "$system"
}

# fetch NAME FILE: downloads a file of the release.
fetch() {
    case $url in
    https://*)
        if have curl; then
            curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --output "$2" "$url/$1"
        elif have wget; then
            wget --quiet --https-only --output-document "$2" "$url/$1"
        else
            fail 'curl or wget is needed to download the release. Install one of them.'
        fi
        ;;
    *) cp "$directory/$1" "$2" ;;
    esac || fail "$1 cannot be downloaded from $url. Check the address and the network."
}

# The SHA-256 of a file.
checksum() {
    if have sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif have shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail 'sha256sum or shasum is needed to check the download. Install one of them.'
    fi
}

# Sets $url and, for a release on this machine, $directory.
find_release() {
    url=${HOB_INSTALL_URL:-$release_url}
    url=${url%/}
    case $url in
    '') fail 'set HOB_INSTALL_URL to the address of a release: https://…, or a directory.' ;;
    https://*) ;;
    file://*) directory=${url#file://} ;;
    file:*) directory=${url#file:} ;;
    *://*) fail "HOB_INSTALL_URL must be an https address or a directory, not $url." ;;
    *) directory=$url ;;
    esac
    case $url in
    https://*) ;;
    *)
        [ -d "$directory" ] || fail "there is no directory $directory. Check HOB_INSTALL_URL."
        directory=$(CDPATH='' cd -- "$directory" && pwd)
        url=file://$directory
        ;;
    esac
}

# Sets $archive to the name of the archive for this machine, and $expected to its checksum.
choose_archive() {
    fetch SHA256SUMS "$work/SHA256SUMS"
    ending=$(platform)
    # A line is a checksum, two characters and a name. A name with anything but these characters is none of ours.
    line=$(grep -E "^[0-9a-f]{64} [ *]hob-[0-9A-Za-z.+-]+-$ending\.tar\.gz\$" "$work/SHA256SUMS" || true)
    [ -n "$line" ] || fail "the release at $url has no archive for $ending."
    [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "the release at $url has several archives for $ending."
    expected=${line%% *}
    archive=${line#*hob-}
    archive=hob-$archive
}

# install_tree FROM: replaces the files below $prefix. The program comes last, so that it always finds its libraries.
install_tree() {
    mkdir -p "$prefix/bin" "$prefix/lib" "$prefix/share"
    if [ -d "$1/lib/hob" ]; then
        rm -rf "$prefix/lib/hob.new" "$prefix/lib/hob.old"
        cp -R "$1/lib/hob" "$prefix/lib/hob.new"
        if [ -e "$prefix/lib/hob" ]; then mv "$prefix/lib/hob" "$prefix/lib/hob.old"; fi
        mv "$prefix/lib/hob.new" "$prefix/lib/hob"
        rm -rf "$prefix/lib/hob.old"
    fi
    cp -R "$1/share/." "$prefix/share/"
    printf 'method=install.sh\nurl=%s\n' "$url" >"$prefix/share/hob/installed-by"
    # A new file in place of the old one: a running program keeps its own.
    cp "$1/bin/hob" "$prefix/bin/hob.new"
    chmod 0755 "$prefix/bin/hob.new"
    mv "$prefix/bin/hob.new" "$prefix/bin/hob"
}

# At the end, however it comes about.
clean_up() {
    rm -rf "$work"
    if [ "$is_installing" = yes ]; then
        say "error: Hob cannot be installed to $prefix. Check its permissions, or use --prefix."
    fi
}

main() {
    prefix=''
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix)
            [ $# -ge 2 ] || fail '--prefix needs a directory.'
            prefix=$2
            shift
            ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --help | -h)
            usage
            exit 0
            ;;
        *) fail "unknown argument '$1'. See --help." ;;
        esac
        shift
    done
    if [ -z "$prefix" ]; then
        [ -n "${HOME:-}" ] || fail 'HOME is not set. Use --prefix DIRECTORY.'
        prefix=$HOME/.local
    fi
    case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
    esac

    work=$(mktemp -d)
    is_installing=no
    trap clean_up EXIT
    trap 'exit 1' HUP INT TERM
    find_release
    choose_archive
    say "downloading $archive from $url"
    fetch "$archive" "$work/archive.tar.gz"
    found=$(checksum "$work/archive.tar.gz")
    [ "$found" = "$expected" ] || fail "the checksum of $archive is $found, not $expected: the download is damaged or was changed. Nothing was installed."
    mkdir "$work/tree"
    tar -xzf "$work/archive.tar.gz" -C "$work/tree" || fail "$archive cannot be unpacked. Nothing was installed."
    tree=$work/tree/${archive%.tar.gz}
    # Before anything is installed, because an older system may lack what the program needs.
    version=$("$tree/bin/hob" --version) || fail "$archive does not run on this system. Nothing was installed. Build Hob from source."
    is_installing=yes
    install_tree "$tree"
    is_installing=no

    say "installed $version to $prefix/bin/hob"
    case ":${PATH:-}:" in
    *":$prefix/bin:"*) ;;
    *) say "$prefix/bin is not on your PATH. Add this line to the file that your shell reads at its start: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    say 'next:'
    say '  hob ask "Hello"        ask a first question'
    say '  hob serve              start the server'
    say '  hob service install    start the server whenever you log in'
}

main "$@"
