# Changes of ggml's sources, included by llama.cmake. A patched copy takes the place of a source in its targets; the build stops
# if a source no longer has the text that a change replaces.

set(HOB_PATCHED ${CMAKE_CURRENT_BINARY_DIR}/hob)
set(HOB_NATIVE ${CMAKE_CURRENT_LIST_DIR})
# Of a run that failed.
file(GLOB_RECURSE unfinished ${HOB_PATCHED}/*.new)
if(unfinished)
    file(REMOVE ${unfinished})
endif()

function(hob_patch source from to)
    set(copy ${HOB_PATCHED}/${source})
    if(EXISTS ${copy}.new)
        file(READ ${copy}.new text)
    else()
        file(READ ${CMAKE_CURRENT_SOURCE_DIR}/src/${source} text)
    endif()
    string(FIND "${text}" "${from}" first)
    string(FIND "${text}" "${from}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "llama.cpp has changed: ${source} must have this text once: ${from}")
    endif()
    string(REPLACE "${from}" "${to}" text "${text}")
    file(WRITE ${copy}.new "${text}")
endfunction()

# Weights are read in full for every token. On pages of 4 KiB that takes an eighth longer, for the misses of the table of pages.
hob_patch(ggml.c [==[
    int result = posix_memalign(&aligned_memory, alignment, size);
]==] [==[
  #ifdef MADV_HUGEPAGE
    const size_t huge = 2u << 20;
    const int is_large = size >= 2 * huge;
    int result = posix_memalign(&aligned_memory, is_large ? huge : (size_t) alignment, size);
    if (result == 0 && is_large) {
        madvise(aligned_memory, size, MADV_HUGEPAGE);
    }
  #else
    int result = posix_memalign(&aligned_memory, alignment, size);
  #endif
]==])
hob_patch(ggml.c "#include <assert.h>\n" "#include <assert.h>\n#if defined(__linux__)\n#include <sys/mman.h>\n#endif\n")

# Attention of single tokens: attention.h says why and how.
hob_patch(ggml-cpu/ops.cpp "#include \"vec.h\"\n" "#include \"vec.h\"\n#include \"attention.h\"\n")
hob_patch(ggml-cpu/ops.cpp [==[
        for (int64_t ic = ic_start; ic < ic_end; ++ic) {
            const float mv = mp ? slope*GGML_CPU_FP16_TO_FP32(mp[ic]) : 0.0f;
]==] [==[
        int64_t ic_next = ic_start;
#if defined(HOB_ATTENTION)
        const bool in_floats = !params->use_ref && hob_can_attend(k, v);
        if (in_floats) {
            const hob_attention attention = {
                pq, (const char *) k->data + ik2*nbk2 + ik3*nbk3, nbk1, (const char *) v->data + iv2*nbv2 + iv3*nbv3, nbv1,
                mp, slope, scale, logit_softcap, DK, DV,
            };
            hob_attend(attention, ic_start, ic_end, VKQ32, M, S);
            ic_next = ic_end;
        }
#else
        const bool in_floats = false;
#endif
        for (int64_t ic = ic_next; ic < ic_end; ++ic) {
            const float mv = mp ? slope*GGML_CPU_FP16_TO_FP32(mp[ic]) : 0.0f;
]==])
hob_patch(ggml-cpu/ops.cpp [==[
        if (v->type == GGML_TYPE_F16) {
            for (int64_t d = 0; d < DV; ++d) {
                VKQ32[d] = GGML_CPU_FP16_TO_FP32(VKQ16[d]);
]==] [==[
        if (v->type == GGML_TYPE_F16 && !in_floats) {
            for (int64_t d = 0; d < DV; ++d) {
                VKQ32[d] = GGML_CPU_FP16_TO_FP32(VKQ16[d]);
]==])
# Prompts are read in tiles, which are skipped if they are hidden; finding that out without a conversion takes less time.
hob_patch(ggml-cpu/ops.cpp [==[
            if (mask) {
                bool can_skip = true;
]==] [==[
            bool is_hidden = mask != nullptr;
            for (int tq = 0; is_hidden && tq < tile_rows; tq++) {
                const ggml_fp16_t * row = (const ggml_fp16_t *)((const char *) mask->data + (iq1 + tq)*mask->nb[1] + (iq2%mask->ne[2])*mask->nb[2] + (iq3%mask->ne[3])*mask->nb[3]);
                is_hidden = hob_next_cell(row, ic, ic + kv_tile) == ic + kv_tile;
            }
            if (is_hidden) {
                continue;
            }
            if (mask) {
                bool can_skip = true;
]==])
# The threads divide the cells of a single token evenly. Those of one conversation lie together, so that one thread had them
# all. Attention sinks belong to the first cell.
hob_patch(ggml-cpu/ops.cpp [==[
    if (use_split_kv_path) {
        const int64_t chunk_size = (nek1 + nth - 1) / nth;
]==] [==[
    if (use_split_kv_path) {
        const ggml_tensor * mask = dst->src[3];
        int64_t first = 0;
        int64_t end   = nek1;
        if (mask != nullptr && mask->ne[2] == 1 && mask->ne[3] == 1 && dst->src[4] == nullptr) {
            const ggml_fp16_t * row = (const ggml_fp16_t *) mask->data;
            first = hob_next_cell(row, 0, nek1);
            while (end > first && row[end - 1] == HOB_HIDDEN) {
                end--;
            }
        }
        const int64_t chunk_size = (end - first + nth - 1) / nth;
]==])
hob_patch(ggml-cpu/ops.cpp [==[
        const int64_t ic_start = ith * chunk_size;
        const int64_t ic_end   = std::min(ic_start + chunk_size, nek1);
]==] [==[
        const int64_t ic_start = first + ith * chunk_size;
        const int64_t ic_end   = std::min(ic_start + chunk_size, end);
]==])
hob_patch(ggml-cpu/ops.cpp [==[
        if (ic_start < nek1) {
            for (int64_t q_head = 0; q_head < neq2; q_head++) {
]==] [==[
        if (ic_start < end) {
            for (int64_t q_head = 0; q_head < neq2; q_head++) {
]==])

# Puts the patched copies into the targets, which exist when CMake has read the directory.
function(hob_use_patched)
    file(GLOB_RECURSE patched RELATIVE ${HOB_PATCHED} ${HOB_PATCHED}/*.new)
    get_property(targets DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/src PROPERTY BUILDSYSTEM_TARGETS)
    foreach(new ${patched})
        string(REGEX REPLACE "\\.new$" "" source ${new})
        # The copy stays as it is if nothing changed, and so does what was compiled from it.
        configure_file(${HOB_PATCHED}/${new} ${HOB_PATCHED}/${source} COPYONLY)
        file(REMOVE ${HOB_PATCHED}/${new})
        foreach(target ${targets})
            get_target_property(sources ${target} SOURCES)
            if(source IN_LIST sources)
                list(TRANSFORM sources REPLACE "^${source}$" "${HOB_PATCHED}/${source}")
                set_target_properties(${target} PROPERTIES SOURCES "${sources}")
                target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${HOB_NATIVE})
            endif()
        endforeach()
    endforeach()
endfunction()
cmake_language(DEFER CALL hob_use_patched)
