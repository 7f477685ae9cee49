#!/usr/bin/env bash
# './dev lint'.
# Sourced by ./dev.

cmd_lint() {
    install_missing list_needs_of_building
    ensure_rust
    lint
    say "lint passed in $SECONDS s"
}

# Cargo chooses the features of libraries by what it builds. Without tests, or for one crate, the features differ, and everything is
# built again, llama.cpp included. An example counts as a test for this, so these arguments reuse the libraries of the tests. Without
# default features, the program needs no server, so that crate is not compiled once more.
readonly program_as_for_tests='--workspace --bins --example config_example'

# Clippy compiles our own crates for the tests: its warnings are errors of the build. 'cargo clippy' and 'cargo doc' would compile
# all libraries a second time, because they store them in another form.
use_clippy() {
    ensure_lint_tools
    # At one path for all checkouts, because Cargo keeps what each path has compiled.
    local compiler=$CARGO_TARGET_DIR/rustc_or_clippy
    cmp -s "$root/scripts/dev/rustc_or_clippy" "$compiler" || cp "$root/scripts/dev/rustc_or_clippy" "$compiler"
    export RUSTC_WORKSPACE_WRAPPER=$compiler
    # The form in which cargo-clippy gives '-D warnings' to clippy-driver.
    export CLIPPY_ARGS='-Dwarnings__CLIPPY_HACKERY__'
}

lint() {
    cd "$root"
    use_clippy
    step 'checking the format' cargo fmt --all --check
    step 'scripts' check_scripts
    step 'licences, sources and vulnerabilities of libraries' check_libraries
    step 'building the tests with clippy' cargo test --workspace --no-run
    step 'documentation, and clippy without default features' check_documentation_and_features
}

# Runs the examples in the documentation of all libraries, and writes their pages, one library for each core at a time. Meanwhile it
# builds Hob without default features, in which one crate after the other waits for the one before.
check_documentation_and_features() {
    local status=0
    HOB_PAGE_SCRIPTS=$(mktemp -d)
    export HOB_PAGE_SCRIPTS
    RUSTDOC=$root/tests/documentation/rustdoc RUSTDOCFLAGS='-D warnings' cargo test --workspace --doc --quiet || status=$?
    printf '%s\n' "HOB_CLIPPY=everything cargo build $program_as_for_tests --no-default-features" >"$HOB_PAGE_SCRIPTS/0-features.sh"
    # A library that failed its examples has no script.
    printf '%s\0' "$HOB_PAGE_SCRIPTS"/*.sh | xargs -0 -n 1 -P "$(($(getconf _NPROCESSORS_ONLN) + 1))" bash || status=$?
    rm -rf "$HOB_PAGE_SCRIPTS"
    return "$status"
}

# Optional, because it needs cargo-deny, which takes minutes to build. deny.toml says what is accepted.
check_libraries() {
    # The backticks are those of the table.
    # shellcheck disable=SC2016
    record_run libraries "packages=$(grep -c '^source = ' Cargo.lock)" "libraries=$(grep -c '^| `' docs/dependencies.md)" \
        "without_reason=$(grep -c '^| `.*|  |$' docs/dependencies.md)"
    if ! cargo deny --version >/dev/null 2>&1; then
        say "not checked: cargo-deny is missing. To install it: cargo install cargo-deny --locked"
        return
    fi
    cargo deny check licenses bans sources || return
    if cargo deny fetch db; then
        check_advisories || return
    else
        say 'the database of vulnerabilities cannot be downloaded here, so only licences, versions and sources were checked'
    fi
}

check_advisories() {
    local printed known status=0
    printed=$(mktemp)
    cargo deny --offline check advisories 2>&1 | tee "$printed" >&2 || status=$?
    known=$(grep -c '^error\[' "$printed" || true)
    rm -f "$printed"
    # It also fails if the database cannot be read, which says nothing about the libraries.
    if [ "$status" -eq 0 ] || [ "$known" -gt 0 ]; then record_run advisories "known=$known"; fi
    return "$status"
}

check_scripts() {
    local script
    for script in dev .ci/run scripts/dev/rustc_or_clippy tests/parts/llama-server tests/documentation/rustdoc benches/*.sh benches/gpu/*.sh benches/peers/*.sh packaging/*.sh tests/packages/*.sh; do
        [ -e "$script" ] || continue # a pattern that matched nothing
        bash -n "$script" || return
        if have shellcheck; then shellcheck --external-sources --check-sourced --shell=bash "$script" || return; fi
    done
    # Shellcheck reads these with 'dev', which sources them and sets their variables.
    for script in scripts/dev/*.sh; do bash -n "$script" || return; done
    # Users run this one with the shell of their system.
    sh -n packaging/install.sh || return
    # The pages show them as they are, so they have no shebang line.
    for script in tests/clients/programs/*.sh; do bash -n "$script" || return; done
    # Parsed only: importing would need the packages, compiling would leave files in the checkout.
    if have python3; then
        find tests benches packaging -name '*.py' -exec python3 -c \
            'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' {} + || return
    fi
}
