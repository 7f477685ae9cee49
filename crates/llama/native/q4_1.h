// Products of Q4_1 weights with tokens for ggml's CPU backend on x86, in the place of its loop over vec_dot (see patches.cmake).
//
// ggml has faster ways for most formats, but multiplies Q4_1, that of the starter model, one row with one token at a time: for each
// it unpacks the weights and converts four halves to floats again. That was two thirds of the time of a prompt. Here a tile of rows
// is multiplied with up to four tokens at once, so that each is unpacked and converted once for the tile. One core multiplies 3 times
// as fast with AVX-512, 2 times with AVX2, and 1.2 times for a single token. The result is that of ggml, added up in another order.
#pragma once

#include "ggml-cpu-impl.h"
#include "ggml-impl.h"
#include "quants.h"

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define HOB_Q4_1 1

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VNNI__)
// A vector has a block of each of two rows.
enum { HOB_VECTOR_ROWS = 2, HOB_TILE_VECTORS = 4, HOB_TILE_TOKENS = 4 };
typedef __m512  hob_products;
typedef __m512i hob_quants;

static inline hob_quants hob_weights_of(const block_q4_1 * const * rows, int block) {
    const __m256i first  = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) rows[0][block].qs));
    const __m256i second = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) rows[1][block].qs));
    const __m512i both   = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    const __m512i upper  = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4);
    return _mm512_and_si512(_mm512_srlv_epi32(both, upper), _mm512_set1_epi8(15));
}

static inline hob_quants hob_token_of(const block_q8_1 * block) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *) block->qs));
}

static inline hob_products hob_scale_of(const float * rows) {
    return _mm512_insertf32x8(_mm512_set1_ps(rows[0]), _mm256_set1_ps(rows[1]), 1);
}

static inline hob_products hob_scaled(hob_products scale, float factor) {
    return _mm512_mul_ps(scale, _mm512_set1_ps(factor));
}

static inline hob_products hob_add_products(hob_products sum, hob_quants weights, hob_quants token, hob_products scale) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), weights, token)), scale, sum);
}

static inline __m256 hob_sum_of_row(hob_products sum, int row) {
    return row == 0 ? _mm512_castps512_ps256(sum) : _mm512_extractf32x8_ps(sum, 1);
}
#else
enum { HOB_VECTOR_ROWS = 1, HOB_TILE_VECTORS = 4, HOB_TILE_TOKENS = 2 };
typedef __m256  hob_products;
typedef __m256i hob_quants;

static inline hob_quants hob_weights_of(const block_q4_1 * const * rows, int block) {
    const __m256i both  = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) rows[0][block].qs));
    const __m256i upper = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    return _mm256_and_si256(_mm256_srlv_epi32(both, upper), _mm256_set1_epi8(15));
}

static inline hob_quants hob_token_of(const block_q8_1 * block) {
    return _mm256_loadu_si256((const __m256i *) block->qs);
}

static inline hob_products hob_scale_of(const float * rows) { return _mm256_set1_ps(rows[0]); }

static inline hob_products hob_scaled(hob_products scale, float factor) {
    return _mm256_mul_ps(scale, _mm256_set1_ps(factor));
}

static inline hob_products hob_add_products(hob_products sum, hob_quants weights, hob_quants token, hob_products scale) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    const __m256i products = _mm256_dpbusd_epi32(_mm256_setzero_si256(), weights, token);
#elif defined(__AVXVNNI__)
    const __m256i products = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), weights, token);
#else
    // Two products of 15 and 127 are far below the largest number of 16 bits.
    const __m256i products = _mm256_madd_epi16(_mm256_maddubs_epi16(weights, token), _mm256_set1_epi16(1));
#endif
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), scale, sum);
}

static inline __m256 hob_sum_of_row(hob_products sum, int row) {
    (void) row;
    return sum;
}
#endif

// Rows of a tile; tokens whose scales are converted together; blocks of a row that are multiplied before the sums are stored.
enum { HOB_TILE_ROWS = HOB_VECTOR_ROWS * HOB_TILE_VECTORS, HOB_TOKENS = 16, HOB_BLOCKS = 64 };

typedef float hob_of_rows __attribute__((vector_size(HOB_TILE_ROWS * sizeof(float)), aligned(4), may_alias));

struct hob_tile {
    const block_q4_1 * rows[HOB_TILE_ROWS];
    float scales[HOB_BLOCKS][HOB_TILE_ROWS];
    float lowest[HOB_BLOCKS][HOB_TILE_ROWS];
};

struct hob_tokens {
    const block_q8_1 * tokens[HOB_TOKENS];
    float scales[HOB_BLOCKS][HOB_TOKENS];
    float sums[HOB_BLOCKS][HOB_TOKENS];
};

static inline int32_t hob_pair(const ggml_half2 * from) {
    int32_t pair;
    memcpy(&pair, from, sizeof(pair));
    return pair;
}

// Converts four pairs of halves: the first ones and the second ones.
static inline void hob_convert_pairs(
        const ggml_half2 * a, const ggml_half2 * b, const ggml_half2 * c, const ggml_half2 * d, float * first, float * second) {
    const __m128i pairs = _mm_setr_epi32(hob_pair(a), hob_pair(b), hob_pair(c), hob_pair(d));
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256  all   = _mm256_cvtph_ps(_mm_shuffle_epi8(pairs, order));
    _mm_storeu_ps(first, _mm256_castps256_ps128(all));
    _mm_storeu_ps(second, _mm256_extractf128_ps(all, 1));
}

static inline float hob_horizontal_sum(__m256 a) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

// The products of a tile with `count` tokens from number `first` on. The count is a constant of every call, so that the sums stay in
// registers.
static inline __attribute__((always_inline)) void hob_multiply_tile(
        const struct hob_tile * tile, const struct hob_tokens * tokens, int first, const int count, int blocks,
        float results[HOB_TILE_TOKENS][HOB_TILE_ROWS]) {
    hob_products sums[HOB_TILE_VECTORS][HOB_TILE_TOKENS] = {{{0}}};
    hob_of_rows  offsets[HOB_TILE_TOKENS] = {{0}};
    for (int block = 0; block < blocks; block++) {
        hob_quants quants[HOB_TILE_TOKENS];
        for (int t = 0; t < count; t++) {
            quants[t] = hob_token_of(&tokens->tokens[first + t][block]);
            offsets[t] += *(const hob_of_rows *) tile->lowest[block] * tokens->sums[block][first + t];
        }
        for (int v = 0; v < HOB_TILE_VECTORS; v++) {
            const hob_quants   weights = hob_weights_of(&tile->rows[v * HOB_VECTOR_ROWS], block);
            const hob_products scale   = hob_scale_of(&tile->scales[block][v * HOB_VECTOR_ROWS]);
            for (int t = 0; t < count; t++) {
                const hob_products both = hob_scaled(scale, tokens->scales[block][first + t]);
                sums[v][t] = hob_add_products(sums[v][t], weights, quants[t], both);
            }
        }
    }
    for (int t = 0; t < count; t++) {
        for (int row = 0; row < HOB_TILE_ROWS; row++) {
            const __m256 sum = hob_sum_of_row(sums[row / HOB_VECTOR_ROWS][t], row % HOB_VECTOR_ROWS);
            results[t][row] = hob_horizontal_sum(sum) + offsets[t][row];
        }
    }
}

// The products of the rows from `row` to `row_end` with the tokens from `token` to `token_end`. Strides are in bytes. The last row
// and the last token take the places of those that a tile lacks; the results of these places are not stored.
static void hob_multiply_q4_1(
        int64_t length, const char * weights, size_t row_stride, const char * inputs, size_t token_stride, char * outputs,
        size_t output_stride, int64_t row, int64_t row_end, int64_t token, int64_t token_end) {
    const int64_t all_blocks = length / QK4_1;
    struct hob_tokens tokens;
    struct hob_tile   tile;
    for (; token < token_end; token += HOB_TOKENS) {
        const int token_count = (int) MIN(HOB_TOKENS, token_end - token);
        for (int64_t start = 0; start < all_blocks; start += HOB_BLOCKS) {
            const int blocks = (int) MIN(HOB_BLOCKS, all_blocks - start);
            for (int t = 0; t < HOB_TOKENS; t++) {
                tokens.tokens[t] = (const block_q8_1 *) (inputs + (token + MIN(t, token_count - 1)) * token_stride) + start;
            }
            for (int t = 0; t < token_count; t += 4) {
                const block_q8_1 ** next = &tokens.tokens[t];
                for (int block = 0; block < blocks; block++) {
                    hob_convert_pairs(&next[0][block].ds, &next[1][block].ds, &next[2][block].ds, &next[3][block].ds,
                        &tokens.scales[block][t], &tokens.sums[block][t]);
                }
            }
            for (int64_t r = row; r < row_end; r += HOB_TILE_ROWS) {
                const int row_count = (int) MIN(HOB_TILE_ROWS, row_end - r);
                for (int i = 0; i < HOB_TILE_ROWS; i++) {
                    tile.rows[i] = (const block_q4_1 *) (weights + (r + MIN(i, row_count - 1)) * row_stride) + start;
                }
                for (int i = 0; i < HOB_TILE_ROWS; i += 4) {
                    const block_q4_1 ** next = &tile.rows[i];
                    for (int block = 0; block < blocks; block++) {
                        hob_convert_pairs(&next[0][block].dm, &next[1][block].dm, &next[2][block].dm, &next[3][block].dm,
                            &tile.scales[block][i], &tile.lowest[block][i]);
                    }
                }
                for (int t = 0; t < token_count; t += HOB_TILE_TOKENS) {
                    float results[HOB_TILE_TOKENS][HOB_TILE_ROWS];
                    if (token_count - t == 1) {
                        hob_multiply_tile(&tile, &tokens, t, 1, blocks, results);
                    } else {
                        hob_multiply_tile(&tile, &tokens, t, HOB_TILE_TOKENS, blocks, results);
                    }
                    for (int i = 0; i < MIN(HOB_TILE_TOKENS, token_count - t); i++) {
                        float * output = (float *) (outputs + (token + t + i) * output_stride) + r;
                        for (int j = 0; j < row_count; j++) {
                            output[j] = start == 0 ? results[i][j] : output[j] + results[i][j];
                        }
                    }
                }
            }
        }
    }
}
#endif
