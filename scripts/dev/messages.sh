#!/usr/bin/env bash
# Progress messages of ./dev. They go to stderr: stdout belongs to the program that is run.
# Sourced by ./dev.

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf '!! %s\n' "$@" >&2
    exit 1
}

# step WORDS COMMAND...: runs the command and prints how long it took; ends the script if the command fails.
step() {
    local words=$1 began=$SECONDS
    shift
    say "$words"
    "$@" || fail "$words: failed after $((SECONDS - began)) s"
    say "$words: done in $((SECONDS - began)) s"
}

have() { command -v "$1" >/dev/null 2>&1; }
