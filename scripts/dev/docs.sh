#!/usr/bin/env bash
# './dev docs'.
# Sourced by ./dev.

# The documentation needs mdBook, which not every version of apt and brew has.
cmd_docs() {
    local out mdbook
    out=$(absolute "${1:-$cache/book}")
    mdbook=$(find_mdbook)
    if [ -z "$mdbook" ]; then
        install_missing list_needs_of_building
        ensure_rust
        step "installing mdBook $mdbook_version with cargo, once" install_mdbook
        mdbook=$(find_mdbook)
    fi
    step 'building the book' "$mdbook" build --dest-dir "$out" "$root"
    say "the book begins at $out/index.html"
}

mdbook_version=0.5.4

find_mdbook() {
    PATH=$PATH:$cache/tools/bin command -v mdbook || true
}

install_mdbook() {
    mkdir -p "$cache/tools"
    # Run outside the project, because its cargo settings are for Hob. Built without the features for serving and watching.
    (cd "$cache/tools" && env -u CARGO_TARGET_DIR cargo install mdbook --version "$mdbook_version" --locked --no-default-features --features search --root .) ||
        fail 'mdBook could not be built (see above).' \
            "Install it as your network allows ('cargo install mdbook'), put it on PATH, and run this again." \
            'The pages in docs/ are Markdown, and can be read without it.'
}
