#!/usr/bin/env bash
# cuda.sh SOURCES DIRECTORY: builds libggml-cuda.so, with which a hob built with 'dynamic-backends' uses NVIDIA cards, in DIRECTORY.
#
# SOURCES are those of llama.cpp in the crate llama-cpp-sys-2; hob must be built from the same ones. Needs CUDA's compiler, on PATH or in
# /usr/local/cuda/bin. $HOB_CUDA_ARCHITECTURES: those of the cards, such as '90' or '86;89'; by default those of this machine's cards.
set -euo pipefail

sources=$1 out=$2
export PATH=$PATH:/usr/local/cuda/bin

fail() {
    printf '!! %s\n' "$*" >&2
    exit 1
}

command -v nvcc >/dev/null || fail "there is no nvcc on PATH or in /usr/local/cuda/bin. Install CUDA's toolkit."
architectures=${HOB_CUDA_ARCHITECTURES:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u | tr -d '. ' | paste -sd ';' -)}
[ -n "$architectures" ] || fail "nvidia-smi finds no card. Set HOB_CUDA_ARCHITECTURES, such as '86;89'."

mkdir -p "$out/project"
build=$out/build
trap 'rm -rf "$build" "$out/project"' EXIT
# Only the library of the cards: the rest is part of hob. The crate leaves out what ggml needs to be a project of its own.
cat >"$out/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(hob-cuda C CXX)
add_subdirectory("$sources/ggml" ggml)
END
generator=''
if command -v ninja >/dev/null; then generator='-G Ninja'; fi
run() { "$@" >>"$out/build.log" 2>&1 || { tail -n 30 "$out/build.log" >&2; fail "the CUDA backend cannot be built; the log is $out/build.log"; }; }
: >"$out/build.log"
# Unquoted on purpose: these are two words, or none.
# shellcheck disable=SC2086
run cmake $generator -S "$out/project" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_CPU=OFF \
    -DGGML_NATIVE=OFF -DGGML_CUDA=ON -DGGML_CUDA_GRAPHS=ON -DGGML_CUDA_NCCL=OFF "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
run cmake --build "$build" --target ggml-cuda --parallel "$(nproc)"
library=$(find "$build" -name libggml-cuda.so | head -n 1)
cp -L "$library" "$out/libggml-cuda.so.part"
# Last, so that an interrupted build leaves nothing that looks complete.
mv "$out/libggml-cuda.so.part" "$out/libggml-cuda.so"
