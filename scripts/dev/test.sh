#!/usr/bin/env bash
# './dev test' and './dev fuzz'.
# Sourced by ./dev.

cmd_test() {
    if [ "${1:-}" = --clients ]; then
        shift
        test_clients "$@"
        return
    elif [ "${1:-}" = --packages ]; then
        test_packages
        return
    elif [ "${1:-}" = --fuzz ]; then
        test_fuzz "${2:-60}"
        return
    fi
    install_missing list_needs_of_building list_needs_of_testing
    install_containers
    ensure_rust
    step 'test parts' install_parts
    cd "$root"
    use_clippy
    if [ $# -eq 0 ]; then lint; fi
    if cargo nextest --version >/dev/null 2>&1; then
        # Many tests wait for sockets and processes, so that one for each core leaves cores idle.
        local cores
        cores=$(getconf _NPROCESSORS_ONLN)
        export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$((cores + (cores + 1) / 2))}
        step 'tests' cargo nextest run --workspace "$@"
    else
        # Unlike nextest, cargo test succeeds if the filter matches nothing.
        [ $# -eq 0 ] || cargo test --workspace --quiet -- --list "$@" | grep ': test$' >/dev/null ||
            fail "no test matches '$*'"
        step 'tests' cargo test --workspace -- "$@"
    fi
    if [ $# -eq 0 ]; then
        say "./dev test: everything passed in $SECONDS s"
    else
        say "./dev test: the tests matching '$*' passed in $SECONDS s (not lint, not the others)"
    fi
}

# Separate from the other tests, because the clients are large and change independently of Hob.
test_clients() {
    install_missing list_needs_of_building list_needs_of_clients
    ensure_rust
    step 'test parts' install_parts
    cd "$root"
    step 'building hob (dev)' cargo build --workspace --bin hob --example config_example
    step 'clients' "$python" tests/clients/run.py "$cache/parts" "$CARGO_TARGET_DIR/debug/hob" "$@"
    say "./dev test --clients: passed in $SECONDS s"
}

# Separate from the other tests, because the instrumented build takes as long as a release.
test_fuzz() {
    step 'fuzz targets' cmd_fuzz --seconds "$1"
    say "./dev test --fuzz: passed in $SECONDS s"
}

cmd_fuzz() {
    install_missing list_needs_of_building list_needs_of_clients
    ensure_rust
    "$python" "$root/tests/fuzz/run.py" "$cache/fuzz" "$@"
}

# Separate from the other tests, because it needs root and a privileged container.
test_packages() {
    if [ "$(uname -s)" != Linux ] || [ "$(id -u)" != 0 ]; then
        fail 'a container with systemd inside takes Linux and root: sudo ./dev test --packages'
    fi
    install_missing list_needs_of_building list_needs_of_testing list_needs_of_packages
    ensure_rust
    step 'test parts' install_parts
    cd "$root"
    # As for a release: for every kind of processor. Any flag replaces 'target-cpu=native' of .cargo/config.toml.
    step 'building hob (dev) with its libraries' env RUSTFLAGS=-Cdebuginfo=0 cargo build --workspace --bin hob --example config_example \
        --features hob/dynamic-backends
    if [ "$(uname -m)" = x86_64 ]; then
        step 'hob on older processors' tests/packages/processors.sh "$CARGO_TARGET_DIR/debug/hob"
    fi
    step 'every file of a release in a clean root' tests/packages/clean_root.sh "$CARGO_TARGET_DIR/debug/hob" "$cache/parts"
    step 'the service under systemd' tests/packages/systemd.sh "$CARGO_TARGET_DIR/debug/hob" "$cache/parts"
    say "./dev test --packages: passed in $SECONDS s"
}
