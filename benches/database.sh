#!/usr/bin/env bash
# PostgreSQL against SQLite: indexing and search of the memory, with recall against exact search
#
#   ./dev bench database memory [SIZE...]   at 10,000 and 100,000 chunks, or at these sizes; a million takes about an hour
#
# $HOB_BENCH_DATABASE_URL names an empty database of a PostgreSQL server with pgvector. Without it, the server of the tests is started,
# which does not wait for the disk.
set -euo pipefail

use_test_server() {
    local parts found
    parts=${HOB_CACHE:-$HOME/.cache/hob}/parts
    found=$("$HOB_BENCH_PYTHON" tests/parts/install.py "$parts")
    HOB_TEST_PYTHON=$(sed -n 1p <<<"$found")
    HOB_TEST_POSTGRES=$(sed -n 6p <<<"$found")
    export HOB_TEST_PYTHON HOB_TEST_POSTGRES
}

memory() { # SIZE...
    if [ -n "${HOB_BENCH_DATABASE_URL:-}" ]; then
        set -- --url "$HOB_BENCH_DATABASE_URL" "$@"
    else
        use_test_server
    fi
    # With optimisation: times are what this is about.
    cargo run --quiet --profile measure -p hob-memory --example memory_databases -- "$@"
}

part=${1:-memory}
[ $# -eq 0 ] || shift
case $part in
memory) memory "$@" ;;
*)
    printf "!! '%s' is no part of this bench: memory\n" "$part" >&2
    exit 1
    ;;
esac
