#!/usr/bin/env bash
# what telemetry, metrics and logs cost: processor time of a request with all of them on and with all of them off
#
#   ./dev bench telemetry              two minutes of load
#   ./dev bench telemetry SECONDS      so long for each of 36 loads instead of 3 s; 1 is enough for a first look
#
# Ends with 1 when a request takes 5 % more. Figures are also written as JSON into $HOB_CACHE/bench. $HOB_BENCH_BINARY names another
# hob than the one that is built here.
set -euo pipefail

out=${HOB_CACHE:-$HOME/.cache/hob}/bench
mkdir -p "$out"

# With optimisation: times are what this is about. Without the embedded engine, which has no part in it and takes long to build.
hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --profile measure -p hob --no-default-features --features server
    hob=${CARGO_TARGET_DIR:-target}/measure/hob
fi
exec cargo run --quiet --profile measure -p hob-testkit --example proxy_bench -- \
    watching --hob "$hob" --seconds "${1:-3}" --json "$out/telemetry.json"
