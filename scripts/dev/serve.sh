#!/usr/bin/env bash
# './dev serve', with the CUDA backend on machines with NVIDIA cards.
# Sourced by ./dev.

cmd_serve() {
    local profile=${HOB_PROFILE:-dev} directory what
    # The libraries of the profile 'dev' are those of the tests: 'serve', 'lint' and 'test' compile them once.
    # Cargo keeps what that profile builds in 'debug'.
    case $profile in
    dev) directory=debug what='--workspace --bin hob --example config_example' ;;
    *) directory=$profile what='-p hob --bin hob' ;;
    esac
    install_missing list_needs_of_building
    ensure_rust
    if has_cuda; then
        say "CUDA's compiler is here, so hob is built for graphics cards too"
        what="$what --features hob/dynamic-backends"
    fi
    # Unquoted on purpose: these are several words.
    # shellcheck disable=SC2086
    step "building hob ($profile)" in_root cargo build $what --profile "$profile"
    if has_cuda; then use_cuda; fi
    # Run in the caller's directory, because paths in the arguments are relative to it.
    exec "$CARGO_TARGET_DIR/$directory/hob" serve "$@"
}

has_cuda() { [ "$(uname -s)" = Linux ] && PATH=$PATH:/usr/local/cuda/bin have nvcc && [ -n "$(cuda_architectures)" ]; }

# Those of the cards in this machine, such as '86;90'.
cuda_architectures() {
    if have nvidia-smi; then
        nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u | tr -d '. ' | paste -sd ';' -
    fi
}

# Builds the library for the cards, once for each version of llama.cpp, and sets its path for hob. Without it, hob uses the processor.
use_cuda() {
    local version architectures sources directory
    version=$(sed -n '/^name = "llama-cpp-sys-2"$/{n;s/^version = "\(.*\)"$/\1/p;}' "$root/Cargo.lock")
    architectures=$(cuda_architectures)
    sources=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/src" -maxdepth 2 -name "llama-cpp-sys-2-$version" | head -n 1)/llama.cpp
    directory=$cache/cuda/$version-$(tr ';' - <<<"$architectures")
    if [ ! -e "$directory/libggml-cuda.so" ]; then
        say "building the CUDA backend for $architectures, once; this takes some minutes"
        if ! HOB_CUDA_ARCHITECTURES=$architectures "$root/packaging/cuda.sh" "$sources" "$directory"; then
            say 'continuing without the graphics card'
            return
        fi
    fi
    say "the CUDA backend is in $directory"
    export HOB_BACKENDS=${HOB_BACKENDS:-$directory}
}
