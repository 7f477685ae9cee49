// Attention of single tokens for ggml's CPU backend, in the place of its loop over cells (see patches.cmake).
//
// ggml looks at every cell for every head of every layer, converts its mask to a float, calls expf, and keeps the sum in halves
// that it loads and stores for each cell. Half of the time of a token of a small model was spent there. Here the cells that the
// token sees are found 32 at a time, which makes those of other conversations in the same memory cheap, and are then worked on
// in blocks: scores, maximum, exponentials, sum. The result is that of ggml, with the sum in floats. For the tokens of a prompt,
// ggml multiplies tiles of cells; the functions here choose the cells of a tile and fill it.
#pragma once

#include "ggml-cpu-impl.h"
#include "simd-mappings.h"
#include "vec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

// Minus infinity, which hides a cell.
static constexpr uint16_t HOB_HIDDEN = 0xFC00;

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define HOB_ATTENTION 1
typedef __m512 hob_floats;
static constexpr int HOB_LANES = 16;
static inline hob_floats hob_zero() { return _mm512_setzero_ps(); }
static inline hob_floats hob_all(float value) { return _mm512_set1_ps(value); }
static inline hob_floats hob_load(const float * from) { return _mm512_loadu_ps(from); }
static inline hob_floats hob_load(const ggml_fp16_t * from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) from)); }
static inline void hob_store(float * to, hob_floats value) { _mm512_storeu_ps(to, value); }
static inline hob_floats hob_fma(hob_floats a, hob_floats b, hob_floats c) { return _mm512_fmadd_ps(a, b, c); }
static inline hob_floats hob_sub(hob_floats a, hob_floats b) { return _mm512_sub_ps(a, b); }
static inline hob_floats hob_add(hob_floats a, hob_floats b) { return _mm512_add_ps(a, b); }
static inline hob_floats hob_mul(hob_floats a, hob_floats b) { return _mm512_mul_ps(a, b); }
static inline hob_floats hob_max(hob_floats a, hob_floats b) { return _mm512_max_ps(a, b); }
static inline float hob_sum(hob_floats a) { return _mm512_reduce_add_ps(a); }
static inline float hob_peak(hob_floats a) { return _mm512_reduce_max_ps(a); }
static inline __m128 hob_quarter(hob_floats a) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}
static inline void hob_transpose(hob_floats * r) {
    hob_floats t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i]     = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    const auto low  = [](__m512 a, __m512 b) { return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))); };
    const auto high = [](__m512 a, __m512 b) { return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))); };
    for (int i = 0; i < 16; i += 4) {
        r[i]     = low(t[i], t[i + 2]);
        r[i + 1] = high(t[i], t[i + 2]);
        r[i + 2] = low(t[i + 1], t[i + 3]);
        r[i + 3] = high(t[i + 1], t[i + 3]);
    }
    // Each quarter has four rows of one column now.
    for (int j = 0; j < 4; j++) {
        const __m512 even[2] = {_mm512_shuffle_f32x4(r[j], r[4 + j], 0x88), _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88)};
        const __m512 odd[2]  = {_mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd), _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd)};
        r[j]      = _mm512_shuffle_f32x4(even[0], even[1], 0x88);
        r[4 + j]  = _mm512_shuffle_f32x4(odd[0], odd[1], 0x88);
        r[8 + j]  = _mm512_shuffle_f32x4(even[0], even[1], 0xdd);
        r[12 + j] = _mm512_shuffle_f32x4(odd[0], odd[1], 0xdd);
    }
}
// A bit for each of the next cells that the mask shows.
static constexpr int HOB_LOOKED_AT = 32;
static inline uint32_t hob_shown(const ggml_fp16_t * mask) {
    return _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(mask), _mm512_set1_epi16((short) HOB_HIDDEN));
}
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define HOB_ATTENTION 1
typedef __m256 hob_floats;
static constexpr int HOB_LANES = 8;
static inline hob_floats hob_zero() { return _mm256_setzero_ps(); }
static inline hob_floats hob_all(float value) { return _mm256_set1_ps(value); }
static inline hob_floats hob_load(const float * from) { return _mm256_loadu_ps(from); }
static inline hob_floats hob_load(const ggml_fp16_t * from) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) from)); }
static inline void hob_store(float * to, hob_floats value) { _mm256_storeu_ps(to, value); }
static inline hob_floats hob_fma(hob_floats a, hob_floats b, hob_floats c) { return _mm256_fmadd_ps(a, b, c); }
static inline hob_floats hob_sub(hob_floats a, hob_floats b) { return _mm256_sub_ps(a, b); }
static inline hob_floats hob_add(hob_floats a, hob_floats b) { return _mm256_add_ps(a, b); }
static inline hob_floats hob_mul(hob_floats a, hob_floats b) { return _mm256_mul_ps(a, b); }
static inline hob_floats hob_max(hob_floats a, hob_floats b) { return _mm256_max_ps(a, b); }
static inline __m128 hob_quarter(hob_floats a) { return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); }
static inline float hob_sum(hob_floats a) {
    const __m128 quarter = hob_quarter(a);
    const __m128 pair    = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
static inline float hob_peak(hob_floats a) {
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair    = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}
static inline void hob_transpose(hob_floats * r) {
    hob_floats t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i]     = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i]     = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int j = 0; j < 4; j++) {
        const __m256 low = r[j];
        r[j]     = _mm256_permute2f128_ps(low, r[4 + j], 0x20);
        r[4 + j] = _mm256_permute2f128_ps(low, r[4 + j], 0x31);
    }
}
static constexpr int HOB_LOOKED_AT = 16;
static inline uint32_t hob_shown(const ggml_fp16_t * mask) {
    const __m256i same = _mm256_cmpeq_epi16(_mm256_loadu_si256((const __m256i *) mask), _mm256_set1_epi16((short) HOB_HIDDEN));
    // Bytes of the 16 comparisons, in order.
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(same), _mm256_extracti128_si256(same, 1));
    return (uint16_t) ~_mm_movemask_epi8(bytes);
}
#endif

// The first cell from `at` on that the mask shows; `end` if there is none.
static inline int64_t hob_next_cell(const ggml_fp16_t * mask, int64_t at, int64_t end) {
#if defined(HOB_ATTENTION)
    for (; at + HOB_LOOKED_AT <= end; at += HOB_LOOKED_AT) {
        const uint32_t shown = hob_shown(mask + at);
        if (shown != 0) {
            return at + __builtin_ctz(shown);
        }
    }
#endif
    while (at < end && mask[at] == HOB_HIDDEN) {
        at++;
    }
    return at;
}

// The next cells, from `at` on, that at least one of the rows of the mask shows: at most `most`. Moves `at` behind them.
static inline int hob_collect_tile(const ggml_fp16_t * rows, size_t row_bytes, int row_count, int64_t & at, int64_t end, int32_t * cells, int most) {
    int count = 0;
    const auto row = [&](int r) { return (const ggml_fp16_t *) ((const char *) rows + r * row_bytes); };
#if defined(HOB_ATTENTION)
    for (; rows != nullptr && at + HOB_LOOKED_AT <= end; at += HOB_LOOKED_AT) {
        uint32_t shown = 0;
        for (int r = 0; r < row_count; r++) {
            shown |= hob_shown(row(r) + at);
        }
        if (count + __builtin_popcount(shown) > most) {
            return count;
        }
        for (; shown != 0; shown &= shown - 1) {
            cells[count++] = (int32_t) at + __builtin_ctz(shown);
        }
    }
#endif
    for (; at < end && count < most; at++) {
        bool is_shown = rows == nullptr;
        for (int r = 0; r < row_count && !is_shown; r++) {
            is_shown = row(r)[at] != HOB_HIDDEN;
        }
        if (is_shown) {
            cells[count++] = (int32_t) at;
        }
    }
    return count;
}

// The mask of cells of a tile, as floats.
static inline void hob_mask_of(const ggml_fp16_t * row, const int32_t * cells, int count, float slope, float * out) {
    int i = 0;
#if defined(HOB_ATTENTION)
    if (count > 0 && cells[count - 1] - cells[0] == count - 1) {
        for (; i + HOB_LANES <= count; i += HOB_LANES) {
            hob_store(out + i, hob_mul(hob_load(row + cells[i]), hob_all(slope)));
        }
    }
#endif
    for (; i < count; i++) {
        out[i] = slope * GGML_CPU_FP16_TO_FP32(row[cells[i]]);
    }
}

// Packs the keys of cells, so that a number of all of them lies together: how many were packed. The rest is left to the caller.
static inline int hob_pack_keys(const char * keys, size_t key_bytes, int64_t size, const int32_t * cells, int count, float * out, int stride) {
    int i = 0;
#if defined(HOB_ATTENTION)
    if (size % HOB_LANES != 0) {
        return 0;
    }
    for (; i + HOB_LANES <= count; i += HOB_LANES) {
        for (int64_t d = 0; d < size; d += HOB_LANES) {
            hob_floats block[HOB_LANES];
            for (int j = 0; j < HOB_LANES; j++) {
                block[j] = hob_load((const ggml_fp16_t *) (keys + cells[i + j] * key_bytes) + d);
            }
            hob_transpose(block);
            for (int j = 0; j < HOB_LANES; j++) {
                hob_store(out + (d + j) * stride + i, block[j]);
            }
        }
    }
#endif
    return i;
}

// The largest of some numbers.
static inline void hob_max_of(int count, float * largest, const float * numbers) {
#if defined(HOB_ATTENTION)
    if (count % HOB_LANES == 0) {
        hob_floats peaks = hob_all(-INFINITY);
        for (int i = 0; i < count; i += HOB_LANES) {
            peaks = hob_max(peaks, hob_load(numbers + i));
        }
        *largest = hob_peak(peaks);
        return;
    }
#endif
    ggml_vec_max_f32(count, largest, numbers);
}

#if defined(HOB_ATTENTION)
static constexpr int HOB_CELLS = 256;

// The next cells that the mask shows, from `at` on: their number. Moves `at` behind them.
static inline int hob_collect(const ggml_fp16_t * mask, int64_t & at, int64_t end, int32_t * cells) {
    int count = 0;
    for (; count + HOB_LOOKED_AT <= HOB_CELLS && at < end; at = std::min(at + HOB_LOOKED_AT, end)) {
        uint32_t shown = UINT32_MAX >> (32 - HOB_LOOKED_AT);
        if (at + HOB_LOOKED_AT > end) {
            for (int64_t cell = at; cell < end; cell++) {
                if (mask == nullptr || mask[cell] != HOB_HIDDEN) {
                    cells[count++] = (int32_t) cell;
                }
            }
            continue;
        }
        if (mask != nullptr) {
            shown = hob_shown(mask + at);
        }
        for (; shown != 0; shown &= shown - 1) {
            cells[count++] = (int32_t) at + __builtin_ctz(shown);
        }
    }
    return count;
}

struct hob_attention {
    const float *       query;
    const char *        keys;    // of the head
    size_t              key_bytes;
    const char *        values;  // of the head
    size_t              value_bytes;
    const ggml_fp16_t * mask;
    float               slope;
    float               scale;
    float               softcap;
    int64_t             key_size;
    int64_t             value_size;
};

static inline bool hob_can_attend(const ggml_tensor * k, const ggml_tensor * v) {
    return k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_F16 && k->ne[0] % HOB_LANES == 0 && v->ne[0] % HOB_LANES == 0;
}

static inline float hob_dot(const float * query, const ggml_fp16_t * key, int64_t size) {
    hob_floats sum = hob_zero();
    for (int64_t at = 0; at < size; at += HOB_LANES) {
        sum = hob_fma(hob_load(query + at), hob_load(key + at), sum);
    }
    return hob_sum(sum);
}

// Adds the values of the cells with their weights, for N vectors from a column on.
template <int N>
static inline void hob_add_values(const hob_attention & a, const int32_t * cells, const float * weights, int count, int64_t column, float * out) {
    hob_floats sums[N];
    for (int n = 0; n < N; n++) {
        sums[n] = hob_load(out + column + n * HOB_LANES);
    }
    for (int i = 0; i < count; i++) {
        const ggml_fp16_t * value  = (const ggml_fp16_t *) (a.values + cells[i] * a.value_bytes) + column;
        const hob_floats    weight = hob_all(weights[i]);
        for (int n = 0; n < N; n++) {
            sums[n] = hob_fma(hob_load(value + n * HOB_LANES), weight, sums[n]);
        }
    }
    for (int n = 0; n < N; n++) {
        hob_store(out + column + n * HOB_LANES, sums[n]);
    }
}

// The weighted sum of the values of the cells from `at` to `end`, with the maximum of the scores and the sum of the weights.
static void hob_attend(const hob_attention & a, int64_t at, int64_t end, float * out, float & max, float & sum) {
    int32_t cells[HOB_CELLS];
    float   weights[HOB_CELLS + HOB_LANES];
    std::memset(out, 0, a.value_size * sizeof(float));
    max = -INFINITY;
    sum = 0.0f;
    while (at < end) {
        const int count = hob_collect(a.mask, at, end, cells);
        if (count == 0) {
            continue;
        }
        const auto key = [&](int i) { return (const ggml_fp16_t *) (a.keys + cells[i] * a.key_bytes); };
        int i = 0;
        for (; i + 4 <= count; i += 4) {
            const ggml_fp16_t * k[4] = {key(i), key(i + 1), key(i + 2), key(i + 3)};
            hob_floats dots[4] = {hob_zero(), hob_zero(), hob_zero(), hob_zero()};
            for (int64_t d = 0; d < a.key_size; d += HOB_LANES) {
                const hob_floats query = hob_load(a.query + d);
                for (int j = 0; j < 4; j++) {
                    dots[j] = hob_fma(query, hob_load(k[j] + d), dots[j]);
                }
            }
            const __m128 low  = _mm_hadd_ps(hob_quarter(dots[0]), hob_quarter(dots[1]));
            const __m128 high = _mm_hadd_ps(hob_quarter(dots[2]), hob_quarter(dots[3]));
            _mm_storeu_ps(weights + i, _mm_hadd_ps(low, high));
        }
        for (; i < count; i++) {
            weights[i] = hob_dot(a.query, key(i), a.key_size);
        }
        for (i = 0; i < count; i++) {
            float score = weights[i] * a.scale;
            if (a.softcap != 0.0f) {
                score = a.softcap * tanhf(score);
            }
            weights[i] = score + (a.mask != nullptr ? a.slope * GGML_CPU_FP16_TO_FP32(a.mask[cells[i]]) : 0.0f);
        }
        // What a whole vector has beyond the last cell weighs nothing.
        for (i = count; i % HOB_LANES != 0; i++) {
            weights[i] = -INFINITY;
        }
        const int  padded = i;
        hob_floats peaks  = hob_all(max);
        for (i = 0; i < padded; i += HOB_LANES) {
            peaks = hob_max(peaks, hob_load(weights + i));
        }
        const float peak = hob_peak(peaks);
        if (peak == -INFINITY) {
            continue;
        }
        if (peak > max) {
            const float shrink = expf(max - peak);
            for (int64_t d = 0; d < a.value_size; d += HOB_LANES) {
                hob_store(out + d, hob_mul(hob_load(out + d), hob_all(shrink)));
            }
            sum *= shrink;
            max = peak;
        }
        hob_floats total = hob_zero();
        for (i = 0; i < padded; i += HOB_LANES) {
            const hob_floats weight = ggml_v_expf(hob_sub(hob_load(weights + i), hob_all(max)));
            hob_store(weights + i, weight);
            total = hob_add(total, weight);
        }
        sum += hob_sum(total);
        int64_t column = 0;
        for (; column + 8 * HOB_LANES <= a.value_size; column += 8 * HOB_LANES) {
            hob_add_values<8>(a, cells, weights, count, column, out);
        }
        for (; column + 4 * HOB_LANES <= a.value_size; column += 4 * HOB_LANES) {
            hob_add_values<4>(a, cells, weights, count, column, out);
        }
        for (; column < a.value_size; column += HOB_LANES) {
            hob_add_values<1>(a, cells, weights, count, column, out);
        }
    }
}
#endif
