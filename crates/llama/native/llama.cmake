# Read by CMake at every project of llama.cpp's build (see .cargo/config.toml).
#
# GCC 12 compiles the intrinsic that sets up the matrix registers of newer Intel processors wrongly; the header mends it.
# Without it a build for such a processor dies in the first prompt.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/gcc_amx.h>")
endif()

# llama.cpp's `common` library takes minutes to compile. Hob needs its chat layer, which build.rs compiles. The bench builds
# llama.cpp's server, which needs all of it.
if(PROJECT_NAME STREQUAL "llama.cpp" AND NOT LLAMA_BUILD_SERVER)
    set(LLAMA_BUILD_COMMON OFF)
endif()

# Backends in libraries of their own (the feature `dynamic-backends`): by default one for every kind of processor. A build for this
# machine alone (`target-cpu=native`) has one for it, and so has HOB_CPU_VARIANTS=one, for a short build.
if(GGML_BACKEND_DL)
    if(GGML_NATIVE OR "$ENV{HOB_CPU_VARIANTS}" STREQUAL "one")
        set(GGML_CPU_ALL_VARIANTS OFF)
    endif()
    # llama.cpp refuses its own setting for that together with such libraries.
    if(GGML_NATIVE)
        add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-march=native>")
        set(GGML_NATIVE OFF)
        foreach(feature SSE42 AVX AVX2 BMI2 FMA F16C)
            set(GGML_${feature} OFF)
        endforeach()
    endif()
    # Relative, so that the libraries contain no path of this machine, and find each other wherever they are.
    set(GGML_BACKEND_DIR backends)
    set(CMAKE_INSTALL_RPATH "$ORIGIN")
endif()

# For tests, what computes (ggml) is compiled for speed and the rest for a short build, which takes a third less.
if("$ENV{PROFILE}" STREQUAL "debug")
    if(PROJECT_NAME STREQUAL "ggml")
        string(REPLACE "-O1" "-O3" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
    else()
        string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
    endif()
endif()

# llama.cpp joins the sources of its models, several for each compilation. Joining its other sources too takes 20 s of processor time
# less, because most of their lines are headers.
function(hob_join_sources)
    get_target_property(sources llama SOURCES)
    list(FILTER sources INCLUDE REGEX "^[a-z0-9-]+\\.cpp$")
    # It and llama-graph.cpp each have a function dsv4_plan_positions.
    list(REMOVE_ITEM sources llama-kv-cache-dsv4.cpp)
    list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/src/)
    set_source_files_properties(${sources} TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION OFF)
endfunction()
if("$ENV{PROFILE}" STREQUAL "debug" AND PROJECT_NAME STREQUAL "llama.cpp" AND NOT CMAKE_VERSION VERSION_LESS 3.19)
    cmake_language(DEFER CALL hob_join_sources)
endif()

# Deferred calls came with CMake 3.19. Without the changes, a long word can end the process. llama.cpp's own server stays as it is.
if(PROJECT_NAME MATCHES "^(ggml|llama\\.cpp)$" AND NOT LLAMA_BUILD_SERVER)
    if(CMAKE_VERSION VERSION_LESS 3.19)
        message(FATAL_ERROR "CMake ${CMAKE_VERSION} is too old for Hob's changes of llama.cpp; use 3.19 or newer")
    else()
        include(${CMAKE_CURRENT_LIST_DIR}/patches.cmake)
    endif()
endif()
