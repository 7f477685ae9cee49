#!/usr/bin/env bash
# processors.sh HOB: runs a hob that was built with 'dynamic-backends' on emulated processors, and checks that each gets its library.
#
# QEMU emulates a processor for one program, and an instruction that this processor does not have ends the program. $HOB_TEST_MODEL is a
# model to answer with. Ends with 1 at the first thing that is not as it should be.
set -euo pipefail

hob=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOB_HOME=$work/home
mkdir -p "$HOB_HOME/models"
ln -s "$HOB_TEST_MODEL" "$HOB_HOME/models/model.gguf"
printf '[engine]\ndefault = "embedded"\n[engine.embedded]\nthreads = 1\ncontext = 256\n' >"$HOB_HOME/config.toml"

fail() {
    printf '!! %s\n' "$*" >&2
    exit 1
}

# expect PROCESSOR HAS LACKS: the instructions that hob uses there, and an answer.
expect() {
    local processor=$1 has=$2 lacks=$3 told answer
    told=$(qemu-x86_64 -cpu "$processor" "$hob" doctor | grep 'the embedded engine uses') || fail "$processor: hob doctor failed"
    case "$told " in *"$has"*) ;; *) fail "$processor: $has is not in '$told'" ;; esac
    case "$told " in *"$lacks"*) fail "$processor: $lacks is in '$told'" ;; *) ;; esac
    echo "ok $processor: ${told##*uses }"
    answer=$(qemu-x86_64 -cpu "$processor" "$hob" ask --offline -e embedded -m model --agent none -t 0 --max-tokens 2 'The capital of France is') ||
        fail "$processor: hob ask failed with $?"
    [ -n "$answer" ] || fail "$processor: no answer"
    echo "ok $processor answers: $answer"
}

expect Nehalem SSSE3 AVX
expect SandyBridge ' AVX' AVX2
expect Haswell AVX2 AVX512
