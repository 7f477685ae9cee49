"""Builds llama.cpp's own server with the flags of a build of Hob, once, and prints its path.

    build_server.py PARTS_DIRECTORY CARGO_TARGET_PROFILE_DIRECTORY

The libraries (ggml, llama) come from the sources that Hob itself was built from, so that both compute with the same code. The
crate that carries them leaves out the server's program; that comes from the source distribution of a Python package, which is
one minor version older and fits. The flags are read from the CMake cache of Hob's own build.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "llama-cpp-python==0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
LIBRARIES = ["ggml", "src", "include"]
# What decides how the code that computes is compiled.
SAME = re.compile(r"(GGML_\w+|CMAKE_C_FLAGS|CMAKE_CXX_FLAGS|CMAKE_BUILD_TYPE|CMAKE_PROJECT_INCLUDE|BUILD_SHARED_LIBS):\w+=(.*)")
SERVER = ["-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_BUILD_COMMON=ON", "-DLLAMA_BUILD_APP=OFF",
          "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
          "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc"]


def run(*command, **options):
    # The path is the only thing on stdout.
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr, **options)


def cache_of(profile):
    """The CMake cache of llama.cpp in the newest build of this profile."""
    found = sorted(profile.glob("build/llama-cpp-sys-2-*/out/build/CMakeCache.txt"), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit(f"no build of llama.cpp in {profile}: build hob first")
    return found[-1].read_text()


def llama_version(sources):
    lines = (sources / "CMakeLists.txt").read_text()
    return ".".join(re.search(rf"LLAMA_VERSION_{part} (\d+)", lines)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def download(directory):
    run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary",
        "llama-cpp-python", "--dest", directory, PACKAGE)
    [archive] = Path(directory).glob("*.tar.gz")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{archive.name} is not the pinned one: sha256 {found}, expected {SHA256}")
    return archive


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    parts, profile = Path(sys.argv[1]), Path(sys.argv[2])
    cache = cache_of(profile)
    sources = Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", cache)[1])
    flags = sorted(f"-D{name}={value}" for name, value in SAME.findall(cache))
    made_of = "\0".join([SHA256, str(sources), *flags, *SERVER])
    target = parts / f"llama-server-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    program = target / "llama-server"
    if not program.exists():
        print("building llama.cpp's server with the flags of Hob: some 20 minutes on two cores, once", file=sys.stderr)
        parts.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".llama-server-", dir=parts) as scratch:
            build(Path(scratch), sources, flags, target)
    print(program)


def build(scratch, sources, flags, target):
    with tarfile.open(download(scratch)) as archive:
        archive.extractall(scratch, filter="data")
    [tree] = scratch.glob("llama_cpp_python-*/vendor/llama.cpp")
    server_version = llama_version(tree)
    for library in LIBRARIES:
        shutil.rmtree(tree / library)
        shutil.copytree(sources / library, tree / library)
    run("cmake", "-S", tree, "-B", scratch / "build", *flags, *SERVER)
    run("cmake", "--build", scratch / "build", "--target", "llama-server", "--parallel", os.cpu_count() or 1)
    built = scratch / "done"
    built.mkdir()
    shutil.copy(scratch / "build" / "bin" / "llama-server", built)
    (built / "llama-server.version").write_text(
        f"ggml and llama of llama.cpp {llama_version(sources)} from {sources.parent.name}, the same as in Hob; "
        f"the server's program of {server_version}\n")
    if not target.exists():
        built.rename(target)


if __name__ == "__main__":
    main()
