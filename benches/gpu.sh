#!/usr/bin/env bash
# the embedded engine on an NVIDIA card beside llama.cpp's own programs: tokens per second at 1, 8 and 32 streams, first token, energy
#
#   ./dev bench gpu                       an 8B-shaped model with random weights (4.6 GB)
#   ./dev bench gpu --shape 1b
#
# Needs CUDA's compiler. Builds the CUDA backend, llama.cpp's server and its batch benchmark from one source tree, and both servers load
# the same library. HOB_GPU_HOB names a hob that was built with 'dynamic-backends' and HOB_GPU_SOURCES an archive of the source tree, for
# machines without Rust or network. HOB_GPU_OUT is the directory of the results.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${HOB_CACHE:-$HOME/.cache/hob}
work=$cache/bench/gpu
out=${HOB_GPU_OUT:-$work/results}
python=${HOB_BENCH_PYTHON:-python3}
shape=8b
if [ "${1:-}" = --shape ]; then shape=$2; fi
mkdir -p "$work" "$out"

began=$SECONDS
say() { printf '== %4d s  %s\n' "$((SECONDS - began))" "$*" | tee -a "$out/log.txt" >&2; }

export PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "!! no nvcc on PATH or in /usr/local/cuda/bin: this bench needs CUDA's compiler" >&2; exit 1; }
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv >"$out/machine.txt"
{ nvcc --version | tail -n 2; lscpu | sed -n 's/^Model name: *//p'; nproc; } >>"$out/machine.txt"

# --- programs ------------------------------------------------------------------------------------------------------
hob=${HOB_GPU_HOB:-}
if [ -z "$hob" ]; then
    cargo build --release -p hob --bin hob --features dynamic-backends
    hob=${CARGO_TARGET_DIR:-target}/release/hob
fi
sources=$work/llama.cpp
if [ -n "${HOB_GPU_SOURCES:-}" ]; then
    rm -rf "$sources"
    tar -xf "$HOB_GPU_SOURCES" -C "$work"
elif [ ! -e "$sources/CMakeLists.txt" ]; then
    crate=$(cargo metadata --format-version 1 --locked | "$python" -c \
        'import json, os, sys; print([os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == "llama-cpp-sys-2"][0])')
    "$python" -m pip download --quiet --no-deps --no-binary llama-cpp-python -d "$work" llama-cpp-python==0.3.36
    tar -xzf "$work"/llama_cpp_python-0.3.36.tar.gz -C "$work"
    "$here/gpu/sources.sh" "$crate" "$work/llama_cpp_python-0.3.36" "$sources"
fi

# The model is made while the compilers run.
vocabulary=${HOB_GPU_VOCABULARY:-$work/vocabulary.bin}
model=$work/random-$shape.gguf
random_model=${HOB_GPU_RANDOM_MODEL:-$here/embedded/random_model.py}
if [ ! -e "$vocabulary" ]; then "$python" "$random_model" vocabulary "$HOB_TEST_MODEL" "$vocabulary"; fi
if [ ! -e "$model" ]; then "$python" "$random_model" model "$vocabulary" "$model.part" "$shape" && mv "$model.part" "$model"; fi &
making=$!

say 'building the CUDA backend, llama-server and llama-batched-bench'
# Both servers load this library.
cuda=$work/cuda
if [ ! -e "$cuda/libggml-cuda.so" ]; then "$here/../packaging/cuda.sh" "$sources" "$cuda"; fi &
building=$!
generator=''
if command -v ninja >/dev/null; then generator='-G Ninja'; fi
build=$work/build
# run COMMAND...: ends the bench with the last lines of its log if the command fails.
run() { "$@" >>"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log"; return 1; }; }
: >"$work/build.log"
# Unquoted on purpose: these are two words, or none.
# shellcheck disable=SC2086
run cmake $generator -S "$sources" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_NATIVE=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_TOOLS=ON \
    -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF
run cmake --build "$build" --target ggml-cpu llama-batched-bench --parallel "$(nproc)"
say 'llama-batched-bench is built'
has_server=yes
run cmake --build "$build" --target llama-server --parallel "$(nproc)" || has_server=''
say "llama-server is built: ${has_server:-no}"
wait "$making"
wait "$building"
cp "$cuda/libggml-cuda.so" "$build/bin/"
say "the CUDA backend is built: $(du -m "$cuda/libggml-cuda.so" | cut -f 1) MB"

# --- llama.cpp's own programs --------------------------------------------------------------------------------------
memory_used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | paste -sd + - | sed 's/$/ MiB of device memory/'; }
stop() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
# answers URL: waits until the server answers.
answers() {
    local tries
    for tries in $(seq 240); do
        if curl --silent --fail --max-time 2 "$1" >/dev/null; then return; fi
        sleep 0.25
    done
    say "no answer from $1 after $tries attempts"
    return 1
}

# Once with a part of the cache for each sequence, and once with one cache for all, which both servers have.
for cache_mode in '' -kvu; do
    say "llama-batched-bench $cache_mode"
    # Unquoted on purpose: one word, or none.
    # shellcheck disable=SC2086
    "$build/bin/llama-batched-bench" -m "$model" -ngl 99 -fa on -c 16384 -npp 128 -ntg 128 -npl 1,8,32 $cache_mode 2>"$work/batched.log" | grep '|' |
        tee "$out/batched-bench$cache_mode.txt" || tail -n 5 "$work/batched.log"
done

measure() { "$python" "$here/gpu/streams.py" "$1" "$2" "$3" --widths 1,8,32 --rounds "${HOB_GPU_ROUNDS:-3}" 2>&1 | tee -a "$out/streams.txt"; }

if [ -n "$has_server" ]; then
    say 'llama-server'
    "$build/bin/llama-server" -m "$model" -ngl 99 -fa on -c 16384 -np 32 -kvu --jinja --host 127.0.0.1 --port 18080 >"$work/llama-server.log" 2>&1 &
    server=$!
    if answers http://127.0.0.1:18080/health; then
        { echo 'llama-server'; memory_used; } >>"$out/streams.txt"
        measure http://127.0.0.1:18080 random "$work/llama-server.json"
    else
        tail -n 20 "$work/llama-server.log" >>"$out/log.txt"
    fi
    stop "$server"
fi

# --- hob -----------------------------------------------------------------------------------------------------------
# With its own libllama, which has Hob's changes (crates/llama/native/patches.cmake), and the CUDA backend of llama-server.
export HOB_HOME=$work/home HOB_BACKENDS=$cuda
rm -rf "$HOB_HOME"
mkdir -p "$HOB_HOME/models"
ln -f "$model" "$HOB_HOME/models/random.gguf" 2>/dev/null || cp "$model" "$HOB_HOME/models/random.gguf"
# configure LINES: the settings of the embedded engine.
configure() { printf '[engine]\ndefault = "embedded"\n[engine.embedded]\n%s\n[server]\nmodel = "random"\n' "$1" >"$HOB_HOME/config.toml"; }
configure "${HOB_GPU_SETTINGS:-parallel = 32}"
{
    "$hob" doctor || true
    echo
    "$hob" model info random || true
} >"$out/doctor.txt" 2>&1

say 'hob'
"$hob" -v serve --host 127.0.0.1 --port 18081 >"$work/hob.log" 2>&1 &
server=$!
if answers http://127.0.0.1:18081/health; then
    { echo 'hob'; } >>"$out/streams.txt"
    measure http://127.0.0.1:18081 random "$work/hob.json"
    memory_used | tee -a "$out/streams.txt"
    curl --silent http://127.0.0.1:18081/metrics >"$out/metrics.txt"
    grep -E 'hob_(energy|device|model_device|completion_tokens)' "$out/metrics.txt" | grep -v '^#' || true
fi
stop "$server"
cat "$work/hob.log" >>"$out/log.txt"

# --- a card that is nearly full ------------------------------------------------------------------------------------
# PyTorch takes all but 3 GB; then one try with as many layers as fit, and one with all of them, which cannot be.
if "$python" -c 'import torch' 2>/dev/null; then
    say 'a card with 3 GB left'
    "$python" -c 'import sys, time, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(free - (3 << 30), dtype=torch.uint8, device="cuda")
print("held", flush=True); time.sleep(600)' >"$work/held.txt" 2>&1 &
    holder=$!
    for _ in $(seq 120); do if grep -q held "$work/held.txt"; then break; fi; sleep 0.25; done
    for layers in '"auto"' 99; do
        configure "gpu_layers = $layers"
        echo "gpu_layers = $layers" >>"$out/full-card.txt"
        timeout 60 "$hob" -v ask -e embedded -m random --max-tokens 8 'Hello' >"$work/full.txt" 2>&1 && ended=0 || ended=$?
        { tail -n 12 "$work/full.txt"; echo "exit $ended"; memory_used; } >>"$out/full-card.txt"
    done
    stop "$holder"
    cat "$out/full-card.txt"
fi

"$python" - "$work" "$out/figures.json" <<'END'
import json, pathlib, sys
work = pathlib.Path(sys.argv[1])
figures = {name: json.loads((work / f"{name}.json").read_text()) for name in ("llama-server", "hob") if (work / f"{name}.json").exists()}
pathlib.Path(sys.argv[2]).write_text(json.dumps(figures, indent=1))
if len(figures) == 2:
    for width, mine in figures["hob"].items():
        theirs = figures["llama-server"][width]
        print(f"{width:>3} streams: hob {mine['tokens_per_second']:8.1f}, llama-server {theirs['tokens_per_second']:8.1f} tokens/s: {mine['tokens_per_second'] / theirs['tokens_per_second']:.2f}; "
              f"while all write {mine['writing_per_second']:8.1f} and {theirs['writing_per_second']:8.1f}; first token {mine['first_token_ms']:.0f} and {theirs['first_token_ms']:.0f} ms")
END
say "done: $out"
