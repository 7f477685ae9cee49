#!/usr/bin/env bash
# The figures of runs, which tests/reliability/fill.py writes into docs/reliability.md.
# Sourced by ./dev.

# Has a file for each suite, with a line for each run.
reliability=$root/target/reliability

# begin_figures: sets the date (UTC) and the commit of the run for everything that adds a line: record.py, and hob_testkit::record_run.
# A '+' after the commit means that the checkout has changes. Called at the start, because a checkout may change during a long run.
begin_figures() {
    local commit changes
    HOB_TEST_DATE=$(date -u +%Y-%m-%d)
    export HOB_TEST_DATE
    unset HOB_TEST_COMMIT
    # Without this check, git would find a repository around an unpacked archive.
    [ -e "$root/.git" ] || return 0
    commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null) || return 0
    changes=$(git --no-optional-locks -C "$root" status --porcelain) || return 0
    if [ -n "$changes" ]; then commit=$commit+; fi
    export HOB_TEST_COMMIT=$commit
}

# record_run SUITE [NAME=VALUE...] [--tests FILE] [--status N]: adds a line to the file of the suite; see tests/reliability/record.py.
# A run does not fail because its figures cannot be recorded.
record_run() {
    local program=${python:-python3}
    if have "$program"; then
        "$program" "$root/tests/reliability/record.py" "$reliability" "$@" || say 'the figures of this run are not recorded (see above)'
    else
        say 'the figures of this run are not recorded: python3 is missing'
    fi
}

# record_tests SUITE NAME=NUMBER COMMAND...: runs 'cargo test', and records how many tests ran and failed, and how long they took.
record_tests() {
    local suite=$1 number=$2 printed status=0
    shift 2
    printed=$(mktemp)
    "$@" | tee "$printed" || status=$?
    record_run "$suite" "$number" --tests "$printed" --status "$status"
    rm -f "$printed"
    return "$status"
}

# record_nextest SUITE COMMAND...: the same for nextest. It writes a report, so its progress bar stays on the terminal.
record_nextest() {
    local suite=$1 report=$root/target/nextest/default/junit.xml status=0
    shift
    rm -f "$report"
    "$@" || status=$?
    record_run "$suite" --tests "$report" --status "$status"
    return "$status"
}
