#!/usr/bin/env bash
# './dev test' and './dev fuzz'.
# Sourced by ./dev.

cmd_test() {
    case ${1:-} in
    --clients)
        shift
        test_clients "$@"
        return
        ;;
    --packages)
        test_packages
        return
        ;;
    --faults)
        shift
        test_faults "$@"
        return
        ;;
    --fuzz)
        test_fuzz "${2:-60}"
        return
        ;;
    --interleavings)
        test_interleavings "${2:-2000}"
        return
        ;;
    --simulation)
        test_simulation "${2:-200}"
        return
        ;;
    esac
    local needs=(list_needs_of_building list_needs_of_testing)
    note_missing list_needs_of_testing
    # A question for a password comes at once, not during the build.
    if [ -n "$missing_names" ] && may_install_unasked; then
        say "installing while the compiler works: $missing_names"
        needs=(list_needs_of_building list_needs_of_python)
    fi
    install_missing "${needs[@]}"
    ensure_rust
    cd "$root"
    use_clippy
    begin_parts
    if [ $# -eq 0 ]; then lint; else step 'building the tests' cargo test --workspace --no-run; fi
    step 'test parts' finish_parts
    put_files_of_tests_in_memory
    # A backtrace is long and hides the message.
    export RUST_BACKTRACE=0
    # Threads of a model that wait for each other leave the processor to other tests.
    export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
    local recorded=''
    if cargo nextest --version >/dev/null 2>&1; then
        # Many tests wait for sockets and processes, so that one for each core leaves cores idle.
        local cores
        cores=$(getconf _NPROCESSORS_ONLN)
        export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$((cores + (cores + 1) / 2))}
        # Some of the tests are no figure.
        if [ $# -eq 0 ]; then recorded='record_nextest tests'; fi
        # Unquoted on purpose: it is several words, or none.
        # shellcheck disable=SC2086
        step 'tests' $recorded cargo nextest run --workspace "$@"
    else
        # Unlike nextest, cargo test succeeds if the filter matches nothing.
        [ $# -eq 0 ] || cargo test --workspace --quiet -- --list "$@" | grep ': test$' >/dev/null ||
            fail "no test matches '$*'"
        if [ $# -eq 0 ]; then recorded='record_tests tests retries=0'; fi
        # shellcheck disable=SC2086
        step 'tests' $recorded cargo test --workspace -- "$@"
    fi
    if [ $# -eq 0 ]; then
        say "./dev test: everything passed in $SECONDS s"
    else
        say "./dev test: the tests matching '$*' passed in $SECONDS s (not lint, not the others)"
    fi
}

# Tests create thousands of small files. On a disk, this is a fourth of the time of the tests that use databases.
# Without enough memory, or if programs may not be started from there, the files stay where the system has such files.
put_files_of_tests_in_memory() {
    local directory needed_kib=$((4 << 20)) room available
    if [ "$(uname -s)" != Linux ] || [ -n "${TMPDIR:-}" ]; then return; fi
    room=$(df -Pk -t tmpfs /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }') || room=0
    available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo) || available=0
    if [ "${room:-0}" -lt "$needed_kib" ] || [ "${available:-0}" -lt $((3 * needed_kib)) ]; then return; fi
    # Those of runs that were killed.
    find /dev/shm -maxdepth 1 -name 'hob-files.*' -mmin +1440 -exec rm -rf {} + || true
    directory=$(mktemp -d /dev/shm/hob-files.XXXXXX) || return 0
    # Some servers of tests run as another user.
    chmod 711 "$directory"
    if printf '#!/bin/sh\n' >"$directory/program" && chmod +x "$directory/program" && "$directory/program" 2>/dev/null; then
        # What runs at the same time shares stays where it is: PostgreSQL, and the claims of ports.
        export HOB_TEST_SHARED_DIRECTORY=/tmp TMPDIR=$directory
        trap 'rm -rf "$TMPDIR" || true' EXIT
    else
        rm -rf "$directory"
    fi
}

# Separate from the other tests, because the clients are large and change independently of Hob.
test_clients() {
    install_missing list_needs_of_building list_needs_of_python
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
    install_missing list_needs_of_building list_needs_of_python
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

# prepare_special_build NAME COUNT CRATE...: for tests that build some crates in another way, in a directory of their own, with a
# library that no other build needs. There, a workspace of links to the sources of Hob has the library of
# tests/special_builds/NAME.toml in the manifests of these crates. So the manifests and the lock file of Hob do not have it.
prepare_special_build() {
    local name=$1 count=$2 crate
    shift 2
    case $count in
    '' | 0 | *[!0-9]*) fail "'$count' is no number. For example: ./dev test --$name 1000" ;;
    esac
    install_missing list_needs_of_building
    ensure_rust
    cd "$root"
    CARGO_TARGET_DIR=$CARGO_TARGET_DIR-$name
    export CARGO_TARGET_DIR
    forget_other_checkout
    special_workspace=$CARGO_TARGET_DIR/workspace
    rm -rf "$special_workspace/crates"
    mkdir -p "$special_workspace/crates"
    ln -s "$root"/crates/* "$special_workspace/crates"
    for crate in "$@"; do
        rm "$special_workspace/crates/$crate"
        mkdir "$special_workspace/crates/$crate"
        ln -s "$root/crates/$crate"/* "$special_workspace/crates/$crate"
        rm "$special_workspace/crates/$crate/Cargo.toml"
        cat "crates/$crate/Cargo.toml" "tests/special_builds/$name.toml" >"$special_workspace/crates/$crate/Cargo.toml"
    done
    cp Cargo.toml "$special_workspace"
    # With the versions of libraries that Hob uses. Cargo adds those that only these tests need.
    [ "$special_workspace/Cargo.lock" -nt Cargo.lock ] || cp Cargo.lock "$special_workspace"
}

# Runs the tests of a special build. The settings of cargo are those of the repository.
special_test() {
    cargo test --manifest-path "$special_workspace/Cargo.toml" "$@"
}

# Separate from the other tests, because a scheduler takes the place of the system's threads and locks.
test_interleavings() {
    prepare_special_build interleavings "$1" sync
    export RUSTFLAGS='--cfg shuttle' HOB_INTERLEAVINGS=$1
    local recorded="record_tests interleavings orders=$1"
    # A failure that is repeated is no figure.
    if [ -n "${SHUTTLE_RANDOM_SEED:-}" ]; then recorded=''; fi
    # Unquoted on purpose: it is several words, or none.
    # shellcheck disable=SC2086
    step "threads in $1 orders" $recorded run_interleavings
    say "./dev test --interleavings: passed in $SECONDS s"
}

run_interleavings() {
    special_test -p hob-core -p hob-db -p hob-engines -p hob-keys --lib interleavings &&
        special_test -p hob-sync --test concurrency_limit --test sampling_threads
}

# Separate from the other tests, because a simulation takes the place of the system's network and clock.
test_simulation() {
    prepare_special_build simulation "$1" channels engines net server testkit
    # The second setting lets the seed decide what tokio decides at random.
    export RUSTFLAGS='--cfg simulation --cfg tokio_unstable' HOB_SIM_SEEDS=$1
    # For many seeds, an optimised program takes less time, its compilation included.
    if [ "$1" -ge 1000 ]; then export CARGO_PROFILE_DEV_OPT_LEVEL=1; fi
    local seeds="$1 seeds" recorded="record_tests simulation seeds=$1"
    # A failure that is repeated is no figure.
    if [ -n "${HOB_SIM_SEED:-}" ]; then
        seeds="seed $HOB_SIM_SEED"
        recorded=''
    fi
    # Unquoted on purpose: it is several words, or none.
    # shellcheck disable=SC2086
    step "simulations with $seeds" $recorded special_test -p hob-engines -p hob-channels -p hob-server --test simulation
    say "./dev test --simulation: passed in $SECONDS s"
}
