#!/usr/bin/env bash
# './dev bench'.
# Sourced by ./dev.

# A bench is an executable benches/NAME.sh whose second line is a comment that says what it measures.
cmd_bench() {
    local name=${1:-}
    if [ -z "$name" ]; then
        list_benches
        return
    fi
    shift
    case $name in
    */* | .*) fail "'$name' is no name of a bench. There is: $(bench_names)" ;;
    esac
    [ -x "$root/benches/$name.sh" ] || fail "no bench named '$name'. There is: $(bench_names)"
    local own_needs=list_needs_of_$name
    declare -F "$own_needs" >/dev/null || own_needs=''
    case "$name $* " in
    'proxy '*'--peers '*) own_needs="$own_needs list_needs_of_proxy_peers" ;;
    esac
    # Unquoted on purpose: most benches have no list of their own.
    # shellcheck disable=SC2086
    install_missing list_needs_of_building $own_needs
    ensure_rust
    cd "$root"
    export HOB_BENCH_PYTHON=${python:-python3}
    exec "benches/$name.sh" "$@"
}

list_benches() {
    local file
    echo "benches: $(bench_names)"
    for file in "$root"/benches/*.sh; do
        [ -x "$file" ] || continue
        printf '  %-16s %s\n' "$(basename "$file" .sh)" "$(sed -n '2s/^# *//p' "$file")"
    done
}

bench_names() {
    local file names=''
    for file in "$root"/benches/*.sh; do
        [ -x "$file" ] || continue
        names="$names${names:+, }$(basename "$file" .sh)"
    done
    printf '%s\n' "${names:-(none yet)}"
}
