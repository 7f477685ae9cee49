#!/usr/bin/env bash
# the embedded engine beside llama.cpp's own server: tokens per second at 1, 8 and 32 streams, first token, prompt rate
#
#   ./dev bench embedded                            the test model, all cores, three rounds
#   ./dev bench embedded --threads 2,4,8            each number of threads
#   ./dev bench embedded --shape 1b                 a model of this shape with random weights: 135m, 1b, 8b
#   ./dev bench embedded --rounds 1 --tokens 16 --streams 1,8     a quick look
#   ./dev bench embedded --draft 0.05               Hob with and without a draft model, at 1, 2, 4 and 8 streams
#
# --draft compares Hob with itself. The test model is the draft of a model with eight times its layers, whose added layers are copies
# that change the text by this part: with 0, all guesses are right. --model and --draft-model name a real pair instead.
#
# Same file, threads, prompts and compiler flags, over HTTP on both sides, one engine at a time, in turns. llama.cpp's server is
# built once, from the sources that Hob has. Figures are also written as JSON into $HOB_CACHE/bench.
#
# For a machine without a compiler or a network: HOB_BENCH_BINARY names a hob that is built already, --llama-server a server,
# --model a GGUF file. Then it needs nothing but python3.
set -euo pipefail

cache=${HOB_CACHE:-$HOME/.cache/hob}
python=${HOB_BENCH_PYTHON:-python3}
mkdir -p "$cache/bench"

server='' model='' shape='' noise='' draft='' rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --llama-server) server=$2 && shift 2 ;;
    --model) model=$2 && shift 2 ;;
    --shape) shape=$2 && shift 2 ;;
    --draft) noise=$2 && shift 2 ;;
    --draft-model) draft=$2 && shift 2 ;;
    *) rest+=("$1") && shift ;;
    esac
done

hob=${HOB_BENCH_BINARY:-}
if [ -z "$hob" ]; then
    cargo build --quiet --release -p hob --bin hob
    hob=${CARGO_TARGET_DIR:-target}/release/hob
fi
if [ -n "$noise$draft" ]; then
    if [ -z "$draft" ]; then
        draft=$("$python" tests/parts/install.py "$cache/parts" | sed -n 2p)
        model=$cache/bench/large-$noise.gguf
        if [ ! -e "$model" ]; then
            "$python" -B benches/embedded/draft_pair.py "$draft" "$model.part" --noise "$noise"
            mv "$model.part" "$model"
        fi
    fi
    exec "$python" -B benches/embedded/drafts.py --hob "$hob" --model "$model" --draft-model "$draft" \
        --out "$cache/bench/drafts.json" "${rest[@]}"
fi
if [ -z "$server" ]; then
    server=$("$python" benches/embedded/build_server.py "$cache/parts" "$(dirname "$hob")")
fi
if [ -z "$model" ]; then
    model=$("$python" tests/parts/install.py "$cache/parts" | sed -n 2p)
fi
if [ -n "$shape" ]; then
    random=$cache/bench/random-$shape.gguf
    if [ ! -e "$random" ]; then
        "$python" benches/embedded/random_model.py vocabulary "$model" "$cache/bench/vocabulary.bin"
        "$python" benches/embedded/random_model.py model "$cache/bench/vocabulary.bin" "$random.part" "$shape"
        mv "$random.part" "$random"
    fi
    model=$random
fi

exec "$python" benches/embedded/compare.py --hob "$hob" --llama-server "$server" --model "$model" \
    --out "$cache/bench/embedded.json" "${rest[@]}"
