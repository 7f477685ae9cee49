#!/usr/bin/env bash
# what Hob costs beside nginx as a plain proxy: processor time, requests per second, time to first word, memory
#
#   ./dev bench proxy              about two minutes
#   ./dev bench proxy SECONDS      so long for each load instead of 5 s
#   ./dev bench proxy 5 --peer 'litellm=litellm --port {port} --config ...'     another gateway beside them
#
# A stand-in engine that answers at once, one gateway at a time, everything on this machine and in one run: only the ratios
# count. Figures are also written as JSON into $HOB_CACHE/bench. $HOB_BENCH_BINARY names another hob than the release built here.
set -euo pipefail

out=${HOB_CACHE:-$HOME/.cache/hob}/bench
mkdir -p "$out"

hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --release -p hob --bin hob
    hob=${CARGO_TARGET_DIR:-target}/release/hob
fi
# Debian keeps it where ordinary users do not look.
nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx)
seconds=5
if [ $# -gt 0 ]; then
    seconds=$1
    shift
fi
exec cargo run --quiet --release -p hob-testkit --example proxy_bench -- \
    --hob "$hob" --nginx "$nginx" --seconds "$seconds" --json "$out/proxy.json" "$@"
