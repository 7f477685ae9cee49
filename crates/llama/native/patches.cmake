# Changes of the sources of llama.cpp and of ggml, included by llama.cmake for each of the two. A patched copy takes the place of
# a source in its targets; the build stops if a source no longer has the text that a change replaces.

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
                set_source_files_properties(${HOB_PATCHED}/${source}
                    TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
            endif()
        endforeach()
    endforeach()
endfunction()
cmake_language(DEFER CALL hob_use_patched)

if(PROJECT_NAME STREQUAL "llama.cpp")
    # Words that are too long for std::regex: long_words.h says why and how.
    hob_patch(unicode.cpp "#include \"unicode-data.h\"\n" "#include \"unicode-data.h\"\n#include \"long_words.h\"\n")
    hob_patch(unicode.cpp
        "using BidirIt = typename std::basic_string<CharT>::const_iterator;"
        "using BidirIt = hob_position<CharT>;")
    hob_patch(unicode.cpp
        "it(text.begin() + start, text.begin() + start + offset, expr);"
        "it(hob_at(text, start), hob_at(text, start + offset), expr);")
    # The scores of the words of a text to embed are never read. They would take gigabytes with a large vocabulary.
    hob_patch(llama-context.cpp
        "bool has_logits     = true;"
        "bool has_logits     = !cparams.embeddings || cparams.pooling_type == LLAMA_POOLING_TYPE_NONE;")
    # All sequences share one memory, and each step of a sequence sees few of its cells. llama.cpp looks at every cell for every
    # sequence, on one thread, while a graphics card waits. Here it looks at those of the sequence, if they are few.
    hob_patch(llama-kv-cache.cpp [==[
            for (uint32_t jj = 0; jj < n_kv; ++jj) {
                uint32_t j = jj;

                // we have an exiting mask for this sequence -> update just seq_idxs
]==] [==[
            if (causal && !swa && !is_2d && !alibi && !prev) {
                const auto & own = cells.seq_pos_get(seq_id);
                // They are in a tree, where the next cell takes longer to find than in the list of all cells.
                if (own.size() < (size_t) n_kv / 16) {
                    std::fill(data + idst, data + idst + n_kv, mask_drop);
                    for (const auto & [pos, j] : own) {
                        if (j >= n_kv) {
                            continue;
                        }
                        if (pos + (int32_t) (n_swa + 32) >= seq_pos_min[seq_id]) {
                            idxs.push_back(j);
                        }
                        if (pos <= p1) {
                            data[idst + j] = mask_keep;
                        }
                    }
                    continue;
                }
            }

            for (uint32_t jj = 0; jj < n_kv; ++jj) {
                uint32_t j = jj;

                // we have an exiting mask for this sequence -> update just seq_idxs
]==])
    # The size of the memory that a step computes with is part of its graph. A graph is built, and captured for a card, when the
    # size changes: with 32 sequences at every eighth step, if it grows by 256 cells. So it grows by the cells of 64 steps, but by a
    # quarter at most, because the cells that are not used yet are read too. Not for the steps of long prompts, which are few.
    hob_patch(llama-kv-cache.cpp [==[
        result = std::max(std::min(cells.size(), std::max(n_pad_cur, GGML_PAD(cells.used_max_p1(), n_pad_cur))), result);
]==] [==[
        uint32_t n_growth = n_pad_cur;
        while (!sinfo.empty() && sinfo.size() <= LLAMA_MAX_SEQ && n_growth < 64*sinfo.size() && 8*n_growth <= cells.used_max_p1()) {
            n_growth *= 2;
        }
        result = std::max(std::min(cells.size(), std::max(n_growth, GGML_PAD(cells.used_max_p1(), n_growth))), result);
]==])
    # Layers with a sliding window have a cache as large as that of the others, so that the beginning of a conversation can be used
    # again. llama.cpp writes over cells that the last token of a conversation does not see, and drops the cells before them. Here it
    # does that only in a cache without room. A saved conversation has all its cells too.
    hob_patch(llama-kv-cache.cpp "        uint32_t n_tested = 0;\n"
        "        const bool has_room = cells.size() - cells.get_used() >= n_tokens;\n\n        uint32_t n_tested = 0;\n")
    hob_patch(llama-kv-cache.cpp
        "if (llama_hparams::is_masked_swa(n_swa, swa_type, pos_cell, cells.seq_pos_max(seq_id_cell) + 1)) {"
        "if (!has_room && llama_hparams::is_masked_swa(n_swa, swa_type, pos_cell, cells.seq_pos_max(seq_id_cell) + 1)) {")
    hob_patch(llama-kv-cache.cpp
        "if (add_cell && seq_id != -1) {"
        "if (add_cell && seq_id != -1 && (flags & LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)) {")
    # Hob is not C++, so that an exception would end the process. A card without memory throws some.
    hob_patch(llama-context.cpp [==[
    llama_batch_compat compat(this, batch_inp);
    return decode(*compat.batch_ext);
]==] [==[
    try {
        llama_batch_compat compat(this, batch_inp);
        return decode(*compat.batch_ext);
    } catch (const std::exception & error) {
        LLAMA_LOG_ERROR("%s: %s\n", __func__, error.what());
    } catch (...) {
        LLAMA_LOG_ERROR("%s: an exception without a message\n", __func__);
    }
    // The graph may be incomplete.
    gf_res_prev_active = nullptr;
    return -100;
]==])
    return()
endif()

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

# Weights in Q4_1: q4_1.h says why and how.
hob_patch(ggml-cpu/ggml-cpu.c "#include \"ggml-cpu-impl.h\"\n" "#include \"ggml-cpu-impl.h\"\n#include \"q4_1.h\"\n")
hob_patch(ggml-cpu/ggml-cpu.c [==[
    // attempt to reduce false-sharing (does not seem to make a difference)
    // 16 * 2, accounting for mmla kernels
    float tmp[32];
]==] [==[
#if defined(HOB_Q4_1)
    if (type == GGML_TYPE_Q4_1 && ne12 == 1 && ne13 == 1 && !params->use_ref) {
        hob_multiply_q4_1(ne00, (const char *) src0->data, nb01, (const char *) wdata, src1_col_stride, (char *) dst->data, nb1,
            ir0_start, ir0_end, ir1_start, ir1_end);
        return;
    }
#endif

    // attempt to reduce false-sharing (does not seem to make a difference)
    // 16 * 2, accounting for mmla kernels
    float tmp[32];
]==])

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
# Prompts are read in tiles of cells. A tile is made of the next cells that its tokens see, wherever they lie: the cells of a
# conversation lie among those of others when many are answered together.
hob_patch(ggml-cpu/ops.cpp [==[
        for (int64_t ic = 0; ic < nek1; ic += KV_TILE_SZ) {
            const int kv_tile = (int)std::min((int64_t)KV_TILE_SZ, nek1 - ic);
]==] [==[
        const ggml_fp16_t * rows = mask == nullptr ? nullptr : (const ggml_fp16_t *)((const char *) mask->data + iq1*mask->nb[1] + (iq2%mask->ne[2])*mask->nb[2] + (iq3%mask->ne[3])*mask->nb[3]);
        for (int64_t next = 0; next < nek1;) {
            int32_t cells[KV_TILE_SZ];
            const int kv_tile = hob_collect_tile(rows, mask == nullptr ? 0 : mask->nb[1], tile_rows, next, nek1, cells, KV_TILE_SZ);
            if (kv_tile == 0) {
                break;
            }
]==])
# Half of the time was spent on the mask, on keys and on the maximum, one number at a time.
hob_patch(ggml-cpu/ops.cpp [==[
                bool can_skip = true;
                for (int tq = 0; tq < tile_rows; tq++) {
]==] [==[
                for (int tq = 0; tq < tile_rows; tq++) {
]==])
hob_patch(ggml-cpu/ops.cpp [==[
                    for (int tk = 0; tk < kv_tile; tk++) {
                        mask32[tq * KV_TILE_SZ + tk] = slope * GGML_CPU_FP16_TO_FP32(mp_row[ic + tk]);
                        if (mask32[tq * KV_TILE_SZ + tk] != -INFINITY) {
                            can_skip = false;
                        }
                    }
]==] [==[
                    hob_mask_of(mp_row, cells, kv_tile, slope, mask32 + tq * KV_TILE_SZ);
]==])
hob_patch(ggml-cpu/ops.cpp [==[

                if (can_skip) {
                    continue;
                }
            }

            // Pack K tile transposed]==] [==[

            }

            // Pack K tile transposed]==])
hob_patch(ggml-cpu/ops.cpp [==[
            for (int tk = 0; tk < kv_tile; tk++) {
                const char * k_data = (const char *)k->data + (ic + tk)*nbk1 + ik2*nbk2 + ik3*nbk3;
]==] [==[
            const int packed = kv_type == GGML_TYPE_F16
                ? hob_pack_keys((const char *)k->data + ik2*nbk2 + ik3*nbk3, nbk1, DK, cells, kv_tile, K_f32, KV_TILE_SZ) : 0;
            for (int tk = packed; tk < kv_tile; tk++) {
                const char * k_data = (const char *)k->data + cells[tk]*nbk1 + ik2*nbk2 + ik3*nbk3;
]==])
hob_patch(ggml-cpu/ops.cpp
    "ggml_vec_max_f32(KV_TILE_SZ, &tile_max, kq_row);"
    "hob_max_of(KV_TILE_SZ, &tile_max, kq_row);")
hob_patch(ggml-cpu/ops.cpp
    "const char * v_data = (const char *)v->data + (ic + tk)*nbv1 + iv2*nbv2 + iv3*nbv3;"
    "const char * v_data = (const char *)v->data + cells[tk]*nbv1 + iv2*nbv2 + iv3*nbv3;")
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

# Threads that wait for each other on a machine with other work: barrier.h says why and how.
hob_patch(ggml-cpu/ggml-cpu.c
    "void ggml_barrier(struct ggml_threadpool * tp) {\n"
    "#include \"barrier.h\"\n\nvoid ggml_barrier(struct ggml_threadpool * tp) {\n")
hob_patch(ggml-cpu/ggml-cpu.c [==[
#ifdef GGML_USE_OPENMP
    #pragma omp barrier
#else
]==] [==[
#if defined(GGML_USE_OPENMP) && !defined(__linux__)
    #pragma omp barrier
#else
]==])
hob_patch(ggml-cpu/ggml-cpu.c [==[
        atomic_fetch_add_explicit(&tp->n_barrier_passed, 1, memory_order_seq_cst);
        return;
]==] [==[
        atomic_fetch_add_explicit(&tp->n_barrier_passed, 1, memory_order_seq_cst);
        hob_wake(&tp->n_barrier_passed);
        return;
]==])
hob_patch(ggml-cpu/ggml-cpu.c [==[
    while (atomic_load_explicit(&tp->n_barrier_passed, memory_order_relaxed) == n_passed) {
        ggml_thread_cpu_relax();
    }
]==] [==[
    hob_wait_while(&tp->n_barrier_passed, n_passed);
]==])
