#!/usr/bin/env bash
# './dev test --faults', './dev soak' and './dev mutants'.
# Sourced by ./dev.

# Separate from the other tests, because the program is ended at every single change that it makes to a file, which takes long.
test_faults() {
    [ "$(uname -s)" = Linux ] || fail 'the tests of faults watch the calls of a program to the system, which takes Linux'
    install_missing list_needs_of_building list_needs_of_testing
    ensure_rust
    step 'test parts' install_parts
    cd "$root"
    use_clippy
    if [ "$(id -u)" != 0 ]; then say 'without root, the tests with full and read-only disks are skipped'; fi
    mkdir -p "$reliability"
    export HOB_TEST_RELIABILITY=$reliability
    if cargo nextest --version >/dev/null 2>&1; then
        step 'faults' cargo nextest run --workspace --run-ignored only -E 'package(hob) & test(/^faults::/)' "$@"
    else
        # Of several words, a test must match one. So the filter takes the place of the usual one.
        step 'faults' cargo test --workspace --test cli -- --ignored "${@:-faults::}"
    fi
    say "./dev test --faults: passed in $SECONDS s"
}

cmd_soak() {
    local minutes=${1:-120}
    case $minutes in
    *[!0-9.]* | '') fail "'$minutes' is no number of minutes: ./dev soak 120" ;;
    esac
    [ "$(uname -s)" = Linux ] || fail 'the soak reads the figures of a process from /proc, which takes Linux'
    install_missing list_needs_of_building
    ensure_rust
    cd "$root"
    # Both at once: each alone needs other features of some libraries, which would be compiled twice.
    step 'building hob and the load (measure)' cargo build --profile measure -p hob -p hob-testkit --bin hob --example soak
    step "the soak of $minutes minutes" "$CARGO_TARGET_DIR/measure/examples/soak" --hob "$CARGO_TARGET_DIR/measure/hob" \
        --minutes "$minutes" --out "$reliability"
}

mutants_version=27.1.0

# Changes the files that decide something, and checks that a test notices each change; see tests/mutants/run.py.
cmd_mutants() {
    local wanted=''
    case ${1:-} in
    -*) ;;
    *) wanted=${1:-} ;;
    esac
    install_missing list_needs_of_building list_needs_of_testing
    ensure_rust
    case " $* " in *' --help '* | *' -h '*) exec "$python" "$root/tests/mutants/run.py" "$cache/mutants" --help ;; esac
    step 'test parts' install_parts
    cd "$root"
    PATH=$PATH:$cache/tools/bin
    if ! have cargo-mutants; then
        mkdir -p "$cache/tools"
        step "installing cargo-mutants $mutants_version with cargo, once" install_mutants
    fi
    put_files_of_tests_in_memory
    export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
    step 'mutants' "$python" tests/mutants/run.py "$cache/mutants" "$@"
    step 'report' "$python" tests/mutants/report.py "$reliability" "$wanted"
    say "./dev mutants: every change is noticed or has a reason, in $SECONDS s"
}

install_mutants() {
    # Run outside the project, because its cargo settings are for Hob.
    (cd "$cache/tools" && env -u CARGO_TARGET_DIR cargo install cargo-mutants --version "$mutants_version" --locked --root .) ||
        fail 'cargo-mutants could not be built (see above).'
}

