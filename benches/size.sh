#!/usr/bin/env bash
# the binary: how large the release is, with the embedded engine and without it
#
#   ./dev bench size               two release builds, which take a while the first time
#
# Figures are also written as JSON into $HOB_CACHE/bench.
set -euo pipefail

out=${HOB_CACHE:-$HOME/.cache/hob}/bench
mkdir -p "$out"
binary=${CARGO_TARGET_DIR:-target}/release/hob

# size_of FEATURE...: builds with these features only, and prints the bytes of what came of it.
size_of() {
    cargo build --quiet --release -p hob --bin hob --no-default-features --features "$1" >&2
    wc -c <"$binary" | tr -d ' '
}

in_mb() { awk -v bytes="$1" 'BEGIN { printf "%.1f MB", bytes / 1000000 }'; }

# The usual one last, so that it is what stays there.
without=$(size_of server,cloud)
with=$(size_of server,cloud,embedded)
printf '%-24s %10s\n' 'with embedded' "$(in_mb "$with")" 'without embedded' "$(in_mb "$without")"
printf '{"with_embedded": %s, "without_embedded": %s}\n' "$with" "$without" >"$out/size.json"
echo "figures: $out/size.json"
