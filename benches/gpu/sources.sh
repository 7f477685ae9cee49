#!/usr/bin/env bash
# sources.sh CRATE SDIST OUT: makes a source tree of llama.cpp with its server and its batch benchmark.
#
# CRATE is llama-cpp-sys-2 as cargo unpacked it, from which Hob is built; it leaves out those two programs. SDIST is the unpacked source
# distribution of the Python package llama-cpp-python, which is slightly older; two lines of its server are adapted.
set -euo pipefail

crate=$1/llama.cpp sdist=$2/vendor/llama.cpp out=$3

rm -rf "$out"
mkdir -p "$out"/{tools/ui,scripts,tests,examples,pocs,app}
cp -r "$crate"/{CMakeLists.txt,LICENSE,cmake,common,ggml,include,src,vendor} "$out/"
cp -r "$crate/tools/mtmd" "$sdist/tools/batched-bench" "$sdist/tools/server" "$out/tools/"
cp "$sdist"/tools/ui/{CMakeLists.txt,ui.cpp.in,ui.h.in,sources.cmake} "$out/tools/ui/"
cp "$sdist/scripts/ui-assets.cmake" "$out/scripts/"
rm -rf "$out/tools/server/tests" "$out/tools/server/bench"
cat >"$out/tools/CMakeLists.txt" <<'END'
find_package(Threads REQUIRED)
llama_add_compile_flags()
add_subdirectory(batched-bench)
add_subdirectory(ui)
add_subdirectory(mtmd)
add_subdirectory(server)
END
# adapt FILE FROM TO: ends with 1 if the file has no such text.
adapt() {
    grep -qF "$2" "$out/$1"
    sed -i "s|$2|$3|" "$out/$1"
}
adapt tools/server/server-context.cpp 'mtmd_get_memory_usage(mmproj_path.c_str(), mparams);' \
    'mtmd_get_memory_usage(mmproj_path.c_str(), mparams).backend_mem_usage;'
adapt tools/server/server-mcp.cpp 'std::ifstream f = fs_open_ifstream(params.mcp_servers_config, std::ios::in);' \
    'std::ifstream f(params.mcp_servers_config, std::ios::in);'
# Backends that this bench does not build are most of the size.
for backend in cann et hexagon musa opencl openvino rpc sycl virtgpu webgpu zdnn zendnn; do rm -rf "$out/ggml/src/ggml-$backend"; done
