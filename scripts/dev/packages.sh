#!/usr/bin/env bash
# System packages: what the project needs, and how ./dev installs it.
# Sourced by ./dev.

# A compiler without the headers of the C library cannot build anything, so the check reads a header.
have_c_compiler() { have cc && printf '#include <stdlib.h>\n' | cc -x c -fsyntax-only - 2>/dev/null; }

# The bindings of llama.cpp need libclang, which Debian packages separately from the compiler.
have_clang() { have clang && [ -n "$(find_libclang)" ]; }

find_libclang() {
    [ "$(uname -s)" = Darwin ] && echo xcode && return
    # In the order of the bindings: LIBCLANG_PATH, then clang's own directory, then the usual directories of distributions.
    find ${LIBCLANG_PATH:+"$LIBCLANG_PATH"} "$(llvm-config --libdir 2>/dev/null || echo /usr/lib)" \
        /usr/lib /usr/lib64 /usr/local/lib \( -name 'libclang.so*' -o -name 'libclang-*.so*' \) 2>/dev/null | head -n 1
}

have_certificates() {
    [ "$(uname -s)" = Darwin ] || [ -n "${SSL_CERT_FILE:-}" ] ||
        [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ]
}

# What the test with a real container needs. Without these, that test is skipped.
have_containers() { have podman && have runc && [ -e /bin/busybox ]; }

# On Debian, nginx is in a directory that is not on the PATH of ordinary users.
have_nginx() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx >/dev/null; }

# The same for Dovecot, which the tests of e-mail use.
have_dovecot() { [ -n "$(find_dovecot)" ]; }

find_dovecot() { PATH=$PATH:/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin command -v dovecot; }

# bubblewrap uses namespaces, which only Linux has.
have_bubblewrap() { [ "$(uname -s)" != Linux ] || have bwrap; }

# Tests create a network namespace with it, to send requests from another machine.
have_ip() { [ "$(uname -s)" != Linux ] || PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null; }

# The pinned packages of the tests need Python 3.11. Debian has ensurepip, which venv needs, in a separate package.
have_python() { python=$(find_python); }

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if have "$name" && "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# The tests of the browser pages need a browser and a driver of the same version.
have_browser() { [ -n "$(find_browser)" ] && have chromedriver; }

find_browser() {
    local name
    for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable \
        '/Applications/Chromium.app/Contents/MacOS/Chromium' \
        '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; do
        if have "$name"; then
            command -v "$name"
            return
        fi
    done
}

# Ubuntu and Debian use different package names.
browser_packages() {
    if grep -qs '^ID=ubuntu' /etc/os-release; then
        echo 'chromium-browser chromium-chromedriver'
    else
        echo 'chromium chromium-driver'
    fi
}

missing_names='' missing_apt='' missing_brew=''

# need NAME PROBE APT BREW: records a package as missing unless its probe succeeds. '-' means that there is no package.
need() {
    local name=$1 probe=$2 apt=$3 brew=$4
    # Unquoted on purpose: a probe may be a command with an argument.
    # shellcheck disable=SC2086
    $probe && return
    missing_names="$missing_names${missing_names:+, }$name"
    [ "$apt" = - ] || missing_apt="$missing_apt $apt"
    [ "$brew" = - ] || missing_brew="$missing_brew $brew"
}

# One line for each thing the project needs from the system.
list_needs_of_building() {
    need 'a C compiler'       have_c_compiler     'gcc libc6-dev'       -
    need 'a C++ compiler'     'have c++'          g++                   -
    need 'make'               'have make'         make                  -
    need 'cmake'              'have cmake'        cmake                 cmake
    need 'clang'              have_clang          'clang libclang-dev'  llvm
    need 'pkg-config'         'have pkg-config'   pkg-config            pkgconf
    need 'curl'               'have curl'         curl                  curl
    need 'CA certificates'    have_certificates   ca-certificates       -
    need 'git'                'have git'          git                   git
}
list_needs_of_python() {
    need 'Python 3.11 with venv' have_python      'python3 python3-venv' python3
}
list_needs_of_testing() {
    list_needs_of_python
    need 'bubblewrap'         have_bubblewrap     bubblewrap            -
    need 'iproute2'           have_ip             iproute2              -
    need 'ssh-keygen'         'have ssh-keygen'   openssh-client        openssh
    need 'nginx'              have_nginx          nginx-light           nginx
    need 'Tesseract'          'have tesseract'    'tesseract-ocr tesseract-ocr-eng' tesseract
    need 'Dovecot'            have_dovecot        dovecot-imapd         dovecot
    need 'Chromium with chromedriver' have_browser "$(browser_packages)" 'google-chrome chromedriver'
}
list_needs_of_packages() {
    need 'podman'             'have podman'       podman                -
    need 'runc'               'have runc'         runc                  -
    need 'mmdebstrap'         'have mmdebstrap'   mmdebstrap            -
    need 'dpkg-deb'           'have dpkg-deb'     dpkg                  -
    need 'objdump'            'have objdump'      binutils              -
    need 'QEMU'               'have qemu-x86_64'  qemu-user             -
}
# A bench that needs more packages has a list with its name.
list_needs_of_proxy() {
    need 'nginx'              have_nginx          nginx-light           nginx
}
list_needs_of_proxy_peers() {
    list_needs_of_python
    need 'npm'                'have npm'          'nodejs npm'          node
}
list_needs_of_database() {
    list_needs_of_python
    need 'nginx'              have_nginx          nginx-light           nginx
}
list_needs_of_embedded() {
    list_needs_of_python
}
list_needs_of_pages() {
    need 'Chromium with chromedriver' have_browser "$(browser_packages)" 'google-chrome chromedriver'
}

# install_missing LIST...: installs the missing packages of the lists, then checks again.
install_missing() {
    note_missing "$@"
    [ -n "$missing_names" ] || return 0
    # Unquoted below on purpose: these are lists of words.
    if have apt-get && [ -n "$missing_apt" ]; then
        # shellcheck disable=SC2086
        install_with_apt $missing_apt
    elif have brew && [ -n "$missing_brew" ]; then
        # shellcheck disable=SC2086
        step "installing$missing_brew with brew" brew install $missing_brew >&2
    fi
    note_missing "$@"
    [ -z "$missing_names" ] || explain_missing
}

note_missing() {
    local list
    missing_names='' missing_apt='' missing_brew=''
    for list in "$@"; do "$list"; done
}

install_with_apt() {
    local as_root=''
    if [ "$(id -u)" != 0 ]; then
        have sudo || explain_missing
        as_root=sudo
    fi
    # If the user may not use sudo, print the command for an administrator.
    $as_root apt-get --version >/dev/null || explain_missing
    step 'refreshing the package list with apt-get' $as_root apt-get update -qq >&2
    step "installing $* with apt-get" \
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# Whether packages can be installed without a question for a password.
may_install_unasked() {
    have apt-get && { [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }
}

# Podman is optional: if it cannot be installed, the tests use a fake.
install_containers() {
    if [ "$(uname -s)" != Linux ] || have_containers; then return; fi
    install_optional 'the test with a real container is skipped' podman runc busybox-static
}

# Optional too: Chromium without windows, which starts in a fifth of the time. Not every system with apt-get has it. It must have
# the version of the driver, so all of them are named.
install_headless_shell() {
    if ! have chromium || have chromium-headless-shell || ! apt-cache show chromium-headless-shell >/dev/null 2>&1; then return; fi
    install_optional 'the tests of the pages take longer' chromium-headless-shell chromium chromium-driver
}

# install_optional OTHERWISE PACKAGE...: installs packages if that is possible without a question. Otherwise says what happens.
install_optional() {
    local otherwise=$1 as_root=''
    shift
    may_install_unasked || return 0
    if [ "$(id -u)" != 0 ]; then as_root='sudo -n'; fi
    say "installing $* with apt-get"
    # shellcheck disable=SC2086
    if ! { $as_root apt-get -o Acquire::http::Timeout=20 update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >&2; then
        say "$1 cannot be installed here; $otherwise"
    fi
}

explain_missing() {
    if [ "$(uname -s)" = Darwin ]; then
        fail "missing: $missing_names." \
            "A C compiler comes with 'xcode-select --install', the rest with Homebrew ('brew install$missing_brew')." \
            'Then run this again.'
    fi
    fail "missing: $missing_names. This script cannot install that here." \
        "On Debian or Ubuntu an administrator runs: apt-get install$missing_apt" \
        'On other systems, install the equivalent packages. Then run this again.'
}
