#!/usr/bin/env bash
# PostgreSQL against SQLite: the cost of a request, claims of tasks, and the memory with recall against exact search
#
#   ./dev bench database                    all parts
#   ./dev bench database cost [SECONDS]     processor time of a request; SECONDS is the length of each of 36 loads instead of 3 s
#   ./dev bench database claims [--tasks COUNT] [SCHEDULERS...]
#                                           tasks claimed and finished per second by 1, 4 and 16 schedulers, or by so many
#   ./dev bench database memory [SIZE...]   at 10,000 and 100,000 chunks, or at these sizes; a million takes about an hour
#
# 'cost' ends with 1 when a request with PostgreSQL takes more than 1.1 times the processor time.
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

example() { # PACKAGE NAME ARGS...
    local package=$1 name=$2
    shift 2
    # With optimisation: times are what this is about.
    cargo run --quiet --profile measure -p "$package" --example "$name" -- "$@"
}

on_url() { # COMMAND... -- ARGS...: adds the URL of the database to the arguments
    local command=()
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    shift
    if [ -n "${HOB_BENCH_DATABASE_URL:-}" ]; then
        set -- --url "$HOB_BENCH_DATABASE_URL" "$@"
    else
        use_test_server
    fi
    "${command[@]}" "$@"
}

cost() { # [SECONDS]
    # Without the embedded engine, which has no part in it and takes long to build.
    local hob=${HOB_BENCH_BINARY:-}
    if [ -z "$hob" ]; then
        cargo build --quiet --profile measure -p hob --no-default-features --features server
        hob=${CARGO_TARGET_DIR:-target}/measure/hob
    fi
    on_url example hob-testkit proxy_bench databases -- --hob "$hob" --seconds "${1:-3}"
}

claims() { # [--tasks COUNT] [SCHEDULERS...]
    on_url example hob-tasks task_claims -- "$@"
}

memory() { # SIZE...
    on_url example hob-memory memory_databases -- "$@"
}

part=${1:-all}
[ $# -eq 0 ] || shift
case $part in
cost) cost "$@" ;;
claims) claims "$@" ;;
memory) memory "$@" ;;
all)
    failed=0
    # One that fails does not keep the others from being measured.
    cost || failed=1
    claims || failed=1
    memory || failed=1
    exit "$failed"
    ;;
*)
    printf "!! '%s' is no part of this bench: cost, claims, memory\n" "$part" >&2
    exit 1
    ;;
esac
