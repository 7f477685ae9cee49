#!/usr/bin/env bash
# what telemetry, metrics and logs cost a request, and how long reports over a million calls take
#
#   ./dev bench telemetry              both, about four minutes
#   ./dev bench telemetry cost [SECONDS]       processor time of a request with all of them on and all of them off; SECONDS is the
#                                              length of each of 36 loads instead of 3 s, and 1 is enough for a first look
#   ./dev bench telemetry reports [ROWS]       'hob telemetry stats' and GET /v1/savings with so many calls on record instead of
#                                              1,000,000: the middle, and what 99 of 100 stay below
#
# Ends with 1 when a request takes 5 % more, 'stats' a second or the savings 10 ms. Figures are also written as JSON into
# $HOB_CACHE/bench. $HOB_BENCH_BINARY names another hob than the one that is built here.
set -euo pipefail

out=${HOB_CACHE:-$HOME/.cache/hob}/bench
mkdir -p "$out"

part=both
case ${1:-} in
cost | reports)
    part=$1
    shift
    ;;
esac

# With optimisation: times are what this is about. Without the embedded engine, which has no part in it and takes long to build.
hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --profile measure -p hob --no-default-features --features server
    hob=${CARGO_TARGET_DIR:-target}/measure/hob
fi
example() { # PACKAGE NAME ARGS...
    local package=$1 name=$2
    shift 2
    cargo run --quiet --profile measure -p "$package" --example "$name" -- "$@"
}

cost() { # SECONDS
    example hob-testkit proxy_bench watching --hob "$hob" --seconds "$1" --json "$out/telemetry.json"
}

reports() { # ROWS
    local directory
    directory=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory of now is meant
    trap "rm -rf '$directory'" EXIT
    example hob-telemetry telemetry_bench fill "$directory/hob.db" "$1" || return
    example hob-testkit proxy_bench reports --hob "$hob" --record "$directory/hob.db" --json "$out/telemetry-reports.json"
}

case $part in
cost) cost "${1:-3}" ;;
reports) reports "${1:-1000000}" ;;
both)
    failed=0
    # One that fails does not keep the other from being measured.
    cost "${1:-3}" || failed=1
    reports 1000000 || failed=1
    exit "$failed"
    ;;
esac
