# Read by CMake at every project of llama.cpp's build (see .cargo/config.toml).
#
# GCC 12 compiles the intrinsic that sets up the matrix registers of newer Intel processors wrongly; the header mends it.
# Without it a build for such a processor dies in the first prompt.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/gcc_amx.h>")
endif()
