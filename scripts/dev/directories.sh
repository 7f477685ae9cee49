#!/usr/bin/env bash
# The build cache, and the real parts for tests.
# Sourced by ./dev.

# The cache is outside the checkout, so that a fresh clone on the same machine reuses it.
prepare_cache() {
    cache=${HOB_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set, so set HOB_CACHE to a directory to keep builds in}/.cache}/hob}
    cache=$(absolute "$cache")
    # The benches store their figures and parts there too.
    export HOB_CACHE=$cache
    CARGO_TARGET_DIR=$(absolute "${CARGO_TARGET_DIR:-$cache/target}")
    export CARGO_TARGET_DIR
    forget_other_checkout
    share_changes_of_llama
}

# Cargo compares the dates of source files only, so it would reuse the crates of another checkout although their sources differ.
# Our own crates are therefore built again. The libraries are reused.
forget_other_checkout() {
    local stamp=$CARGO_TARGET_DIR/checkout
    [ "$(cat "$stamp" 2>/dev/null)" = "$root" ] && return
    rm -rf "$CARGO_TARGET_DIR"/*/.fingerprint/hob-*
    mkdir -p "$CARGO_TARGET_DIR"
    printf '%s\n' "$root" >"$stamp"
}

# CMake remembers the path of the changes that Hob makes in llama.cpp, and would take those of the checkout that built it first. So
# they are at one path for all checkouts. A file without changes keeps its date, so that nothing is compiled again.
share_changes_of_llama() {
    local shared=$CARGO_TARGET_DIR/llama-native file
    mkdir -p "$shared"
    for file in "$root"/crates/llama/native/*.{cmake,h}; do
        cmp -s "$file" "$shared/${file##*/}" || cp "$file" "$shared/"
    done
    export CMAKE_PROJECT_INCLUDE=$shared/llama.cmake
    for file in "$CARGO_TARGET_DIR"/*/build/llama-cpp-sys-2-*/out/build/CMakeCache.txt; do
        if [ -e "$file" ] && ! grep -qx "CMAKE_PROJECT_INCLUDE:[A-Z]*=$CMAKE_PROJECT_INCLUDE" "$file"; then rm "$file"; fi
    done
}

absolute() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$here/$1" ;;
    esac
}

# Begins to fetch what tests use, while the compiler works. finish_parts shows what failed, by doing it again. If ./dev ends before
# that, an installation that has begun is finished, and no other begins.
begin_parts() {
    say 'fetching test parts meanwhile'
    {
        # In a shell of its own, which ends if it fails.
        (install_missing list_needs_of_testing) ||
            say "packages of tests cannot be installed, so ./dev test will fail after the build; see $cache/parts.log" 2>&3
        install_containers
        install_headless_shell
        "$python" "$root/tests/parts/install.py" "$cache/parts"
    } 3>&2 >"$cache/parts.log" 2>&1 &
    parts_fetch=$!
    trap 'kill "$parts_fetch" 2>/dev/null || true' EXIT
}

finish_parts() {
    wait "$parts_fetch" || true
    trap - EXIT
    install_missing list_needs_of_testing
    install_containers
    install_headless_shell
    install_parts
}

# Installs the real parts for tests and sets the variables that name them; see tests/parts.
install_parts() {
    local found
    found=$("$python" "$root/tests/parts/install.py" "$cache/parts") || return
    HOB_TEST_PYTHON=$(sed -n 1p <<<"$found")
    HOB_TEST_MODEL=$(sed -n 2p <<<"$found")
    HOB_TEST_NODE=$(sed -n 3p <<<"$found")
    HOB_TEST_NODE_MODULES=$(sed -n 4p <<<"$found")
    HOB_TEST_EMBEDDING_WHEEL=$(sed -n 5p <<<"$found")
    HOB_TEST_POSTGRES=$(sed -n 6p <<<"$found")
    HOB_TEST_SHORT_MODEL=$(sed -n 7p <<<"$found")
    HOB_TEST_LLAMA_SERVER=$root/tests/parts/llama-server
    export HOB_TEST_PYTHON HOB_TEST_MODEL HOB_TEST_SHORT_MODEL HOB_TEST_NODE HOB_TEST_NODE_MODULES HOB_TEST_EMBEDDING_WHEEL HOB_TEST_POSTGRES
    HOB_TEST_CHROMIUM=$(find_browser)
    HOB_TEST_CHROMEDRIVER=$(command -v chromedriver)
    HOB_TEST_DOVECOT=$(find_dovecot)
    export HOB_TEST_LLAMA_SERVER HOB_TEST_CHROMIUM HOB_TEST_CHROMEDRIVER HOB_TEST_DOVECOT
}
