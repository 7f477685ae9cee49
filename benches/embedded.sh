#!/usr/bin/env bash
# the embedded engine beside the real llama.cpp server: tokens per second at 1 and 8 streams, time to first token, prompt rate
#
#   ./dev bench embedded                  Q4_1 and Q4_0, five rounds each, about ten minutes
#   ./dev bench embedded --rounds 1 --tokens 16 --forms Q4_1     a quick look
#
# Same file, same threads, same prompts, over HTTP on both sides, one engine at a time, in turns. Figures are also written as
# JSON into $HOB_CACHE/bench. HOB_BENCH_BINARY names a hob that is built already.
set -euo pipefail

cache=${HOB_CACHE:-$HOME/.cache/hob}
mkdir -p "$cache/bench"

found=$("${HOB_BENCH_PYTHON:-python3}" tests/parts/install.py "$cache/parts")
HOB_TEST_PYTHON=$(sed -n 1p <<<"$found")
export HOB_TEST_PYTHON

hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --release -p hob --bin hob
    hob=${CARGO_TARGET_DIR:-target}/release/hob
fi

exec "$HOB_TEST_PYTHON" benches/embedded/compare.py --hob "$hob" --llama-server tests/parts/llama-server \
    --model "$(sed -n 2p <<<"$found")" --out "$cache/bench/embedded.json" "$@"
