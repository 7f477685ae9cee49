#!/usr/bin/env bash
# PostgreSQL against SQLite: the cost of a request, claims of tasks, the memory with recall against exact search; and three Hobs against one
#
#   ./dev bench database                    all parts, which takes about 20 minutes on two cores
#   ./dev bench database cost [SECONDS]     processor time of a request; SECONDS is the length of each of 36 loads
#   ./dev bench database replicas [SECONDS] three Hobs on one PostgreSQL against one, behind nginx; SECONDS is the length of each of 30 loads
#   ./dev bench database claims [--tasks COUNT] [SCHEDULERS...]
#                                           tasks claimed and finished per second by so many schedulers
#   ./dev bench database memory [--only-postgres] [SIZE...]
#                                           indexing and search at these numbers of chunks; --only-postgres skips SQLite.
#                                           A million takes about an hour; 20 minutes with --only-postgres, as the only size, on a
#                                           server with maintenance_work_mem = 2GB
#
# The sizes, also for all parts:
#   $HOB_BENCH_SECONDS      length of a load (3)
#   $HOB_BENCH_TASKS        tasks to claim (4000)
#   $HOB_BENCH_SCHEDULERS   numbers of schedulers ("1 4 16")
#   $HOB_BENCH_CHUNKS       sizes of the memory, smallest first ("10000 100000"); "10000 100000 1000000" shows the growth to a million
#
# Each part prints Markdown tables with ratios, for docs/scale.md. 'cost' ends with 1 when a request with PostgreSQL takes more than 1.1
# times the processor time.
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

seconds=${HOB_BENCH_SECONDS:-3}

# Without the embedded engine, which has no part in it and takes long to build.
build_hob() {
    hob=${HOB_BENCH_BINARY:-}
    if [ -z "$hob" ]; then
        cargo build --quiet --profile measure -p hob --no-default-features --features server
        hob=${CARGO_TARGET_DIR:-target}/measure/hob
    fi
}

cost() { # [SECONDS]
    build_hob
    on_url example hob-testkit proxy_bench databases -- --hob "$hob" --seconds "${1:-$seconds}"
}

replicas() { # [SECONDS]
    local nginx
    nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx)
    build_hob
    on_url example hob-testkit proxy_bench replicas -- --hob "$hob" --nginx "$nginx" --seconds "${1:-$seconds}"
}

claims() { # [--tasks COUNT] [SCHEDULERS...]
    local tasks=${HOB_BENCH_TASKS:-4000}
    if [ "${1:-}" = --tasks ]; then
        tasks=$2
        shift 2
    fi
    # Unquoted on purpose: a list of numbers.
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- ${HOB_BENCH_SCHEDULERS:-1 4 16}
    on_url example hob-tasks task_claims -- --tasks "$tasks" "$@"
}

memory() { # [--only-postgres] [SIZE...]
    local only=()
    if [ "${1:-}" = --only-postgres ]; then
        only=(--only-postgres)
        shift
    fi
    # Unquoted on purpose: a list of numbers.
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- ${HOB_BENCH_CHUNKS:-10000 100000}
    on_url example hob-memory memory_databases -- "${only[@]}" "$@"
}

part=${1:-all}
[ $# -eq 0 ] || shift
case $part in
cost) cost "$@" ;;
replicas) replicas "$@" ;;
claims) claims "$@" ;;
memory) memory "$@" ;;
all)
    failed=0
    # One that fails does not keep the others from being measured.
    for one in cost replicas claims memory; do
        printf '\n### %s\n\n' "$one"
        "$one" || failed=1
    done
    exit "$failed"
    ;;
*)
    printf "!! '%s' is no part of this bench: cost, replicas, claims, memory\n" "$part" >&2
    exit 1
    ;;
esac
