#!/usr/bin/env bash
# the memory: indexing rate, memory of the process and search times at 10k, 100k and 1M chunks; recall and MRR of the three backends
#
#   ./dev bench memory                 both parts, about a quarter of an hour
#   ./dev bench memory scale [SIZE...] only the first part, at these sizes
#   ./dev bench memory quality         only the second; the figures of docs/memory.md
#
# Figures are also written as JSON into $HOB_CACHE/bench.
set -euo pipefail

out=${HOB_CACHE:-$HOME/.cache/hob}/bench
mkdir -p "$out"

scale() {
    # With optimisation: times are what this is about.
    cargo run --quiet --profile measure -p hob-memory --example memory_scale -- --out "$out/memory_scale.json" "$@"
}

quality() {
    # Without: what is found does not depend on how fast. The embedding model is fetched once.
    cargo run --quiet -p hob-app --features embedded,cloud --example memory_quality -- \
        benches/memory "$out/home" --out "$out/memory_quality.json"
}

part=${1:-all}
[ $# -eq 0 ] || shift
case $part in
scale) scale "$@" ;;
quality) quality ;;
all)
    scale
    quality
    ;;
*)
    printf "!! '%s' is no part of this bench: scale, quality or nothing\n" "$part" >&2
    exit 1
    ;;
esac
