#!/usr/bin/env bash
# The Rust that ./dev builds with.
# Sourced by ./dev.

ensure_rust() {
    # A newly installed rustup is not on the PATH of shells that were already open.
    have cargo || PATH=$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin
    have cargo || install_rust

    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    found=$(rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
    [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$wanted" ] ||
        fail "Rust $wanted or newer is needed, and this is $found. With rustup: rustup update stable"
    # A build from nothing takes longer if it prepares for small changes.
    if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}; fi
}

install_rust() {
    local script
    say 'installing Rust with rustup'
    # Download the whole script before running it, so that a broken download runs nothing.
    script=$(curl --proto '=https' --tlsv1.2 --silent --show-error --fail --location https://sh.rustup.rs) ||
        fail 'Rust is missing, and its installer cannot be downloaded.' \
            'Install cargo, rustfmt and clippy of a stable Rust in another way, put them on PATH, and run this again.'
    sh -s -- -y --no-modify-path --profile minimal --component clippy --component rustfmt <<<"$script" >&2 ||
        fail 'rustup could not install Rust (see above).'
    have cargo || fail 'rustup ran, but there is no cargo on PATH.'
}

ensure_lint_tools() {
    local tool
    for tool in fmt clippy; do
        cargo $tool --version >/dev/null 2>&1 && continue
        have rustup || fail "'cargo $tool' is missing: install clippy and rustfmt of the same Rust as cargo."
        step 'adding clippy and rustfmt with rustup' rustup component add clippy rustfmt
        return
    done
}

# Cargo reads the project's own settings (.cargo/config.toml) only from inside it.
in_root() { (cd "$root" && "$@"); }
