#!/usr/bin/env bash
# what Hob costs beside nginx as a plain proxy: processor time, requests per second, time to first word, memory
#
#   ./dev bench proxy              about two minutes
#   ./dev bench proxy SECONDS      so long for each load instead of 5 s
#   ./dev bench proxy --peers      LiteLLM and Portkey beside them, installed from their registries; some minutes more
#   ./dev bench proxy --cpu        only processor time of a request, of a stream with one event per read, and of a stream at once,
#                                  in turns with nginx; the steadiest figures. Takes --peer
#   ./dev bench proxy --api all    what the other APIs cost beside chat completions (chat, completions, responses, messages, ollama);
#                                  fails above 1.2 times
#   ./dev bench proxy --keys       what a named key costs beside no keys, without limits and with limits per minute, of requests at once and
#                                  budgets: processor time of a request and of streams, in turns; the middle of the rounds and their
#                                  spread; fails above 1.1 times
#   ./dev bench proxy 5 --peer 'mine=my-gateway --port {port} --engine {engine}'     another gateway
#
# A stand-in engine that answers at once, one gateway at a time, everything on this machine and in one run: only the ratios
# count. Figures are also written as JSON into $HOB_CACHE/bench. $HOB_BENCH_BINARY names another hob than the release built here.
set -euo pipefail

if [ "$(uname -s)" != Linux ]; then
    echo '!! this bench reads processor time and memory from /proc, which only Linux has.' >&2
    exit 1
fi

cache=${HOB_CACHE:-$HOME/.cache/hob}
out=$cache/bench
mkdir -p "$out"

hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --release -p hob --bin hob
    hob=${CARGO_TARGET_DIR:-target}/release/hob
fi
if [ "${1:-}" = --api ] || [ "${2:-}" = --api ]; then
    # For many rounds, so each is short.
    seconds=1
    if [ "$1" != --api ]; then
        seconds=$1
        shift
    fi
    exec cargo run --quiet --release -p hob-testkit --example proxy_bench -- apis \
        --hob "$hob" --seconds "$seconds" --json "$out/apis.json" "$@"
fi
if [ "${1:-}" = --keys ] || [ "${2:-}" = --keys ]; then
    # For many rounds, so each is short.
    seconds=1
    if [ "$1" != --keys ]; then
        seconds=$1
        shift
    fi
    shift
    exec cargo run --quiet --release -p hob-testkit --example proxy_bench -- keys \
        --hob "$hob" --seconds "$seconds" --json "$out/keys.json" "$@"
fi
# Debian keeps it where ordinary users do not look.
nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx)
# Both versions are pinned, so that figures of different days compare.
litellm=$cache/parts/litellm-1.106.2
portkey=$cache/parts/portkey-1.15.2

install_peers() {
    if [ ! -e "$litellm/complete" ]; then
        "${HOB_BENCH_PYTHON:-python3}" -m venv "$litellm"
        "$litellm/bin/pip" install --quiet --disable-pip-version-check 'litellm[proxy]==1.106.2' >&2
        touch "$litellm/complete"
    fi
    if [ ! -e "$portkey/complete" ]; then
        npm install --silent --prefix "$portkey" @portkey-ai/gateway@1.15.2 >&2
        touch "$portkey/complete"
    fi
}

seconds=5
case ${1:-} in
'' | -*) ;;
*)
    seconds=$1
    shift
    ;;
esac
mode=''
if [ "${1:-}" = --cpu ]; then
    shift
    mode=turns
    # For many rounds, so each is short.
    seconds=1
fi
if [ "${1:-}" = --peers ]; then
    shift
    install_peers
    set -- --peer "litellm='$PWD/benches/peers/litellm.sh' '$litellm' {port} {engine}" \
        --peer "portkey='$PWD/benches/peers/portkey.sh' '$portkey' {port}" "$@"
fi
exec cargo run --quiet --release -p hob-testkit --example proxy_bench -- ${mode:+"$mode"} \
    --hob "$hob" --nginx "$nginx" --seconds "$seconds" --json "$out/proxy${mode:+-cpu}.json" "$@"
