#!/usr/bin/env bash
# cross.sh [DIRECTORY]: builds the files of a release for 64-bit Arm on an x86-64 machine with Debian or Ubuntu, and runs the program once.
#
#   sudo apt-get install gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
#       gcc libc6-dev make cmake clang libclang-dev python3 git
#   packaging/cross.sh                           into dist/
#
# release.sh does the work. This script names the compilers, for Rust, for llama.cpp's CMake and for the bindings, and an emulator for
# what the program itself writes: its version, manual pages and completions.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
triple=aarch64-unknown-linux-gnu
gnu=aarch64-linux-gnu
sysroot=/usr/$gnu

fail() {
    printf '!! %s\n' "$*" >&2
    exit 1
}

packages="gcc-$gnu g++-$gnu libc6-dev-arm64-cross qemu-user gcc libc6-dev make cmake clang libclang-dev python3 git"
# Build scripts run on this machine, so it needs its own compiler too.
for program in "$gnu-gcc" "$gnu-g++" "$gnu-strip" "$gnu-objdump" qemu-aarch64 cc make cmake clang python3 git; do
    command -v "$program" >/dev/null || fail "there is no $program. Run: sudo apt-get install $packages"
done
if command -v rustup >/dev/null; then rustup target add "$triple" >&2; fi
[ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || fail "this Rust cannot build for $triple. With rustup: rustup target add $triple"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/aarch64.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER $gnu-gcc)
set(CMAKE_CXX_COMPILER $gnu-g++)
# Programs of this machine, libraries and headers of the other one.
set(CMAKE_FIND_ROOT_PATH $sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
END

export CARGO_BUILD_TARGET=$triple
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gnu-gcc
# Build scripts read these: the crate cc for C and C++, the crate cmake for llama.cpp, bindgen for its headers.
export CC_aarch64_unknown_linux_gnu=$gnu-gcc CXX_aarch64_unknown_linux_gnu=$gnu-g++ AR_aarch64_unknown_linux_gnu=$gnu-ar
export CMAKE_TOOLCHAIN_FILE_aarch64_unknown_linux_gnu=$work/aarch64.cmake
export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--target=$gnu --sysroot=$sysroot -I$sysroot/include"
# llama.cpp's libraries for the newest processors use instructions that compilers before GCC 14 do not know.
if ! "$gnu-gcc" -march=armv8.2-a+sme -E -x c /dev/null >/dev/null 2>&1; then
    echo "== $gnu-gcc does not know all instructions, so there is one library for all processors. GCC 14 builds the others too." >&2
    export HOB_CPU_VARIANTS=one
fi
export HOB_MACHINE=aarch64
# The loader of the other machine looks for libraries below this directory. Those of Hob are found beside the program.
export HOB_RUNNER="qemu-aarch64 -L $sysroot"

"$here/release.sh" "$@"

out=${1:-$here/../dist}
archive=$(find "$out" -maxdepth 1 -name 'hob-*-aarch64-linux.tar.gz' | sort -V | tail -n 1)
tar -xzf "$archive" -C "$work"
unpacked=$work/$(basename "$archive" .tar.gz)
version=$(qemu-aarch64 -L "$sysroot" "$unpacked/bin/hob" --version) || fail "the program of $archive does not run"
printf '== %s runs, emulated\n' "$version" >&2
