// llama.cpp's media library for C: a projector turns pictures and sound into vectors that a model reads like tokens. No function
// throws. A function that fails returns false and sets `error`, which is freed with hob_media_text_free.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hob_projector hob_projector;
// A picture or a piece of sound, in chunks: text around it, and vectors.
typedef struct hob_media hob_media;

typedef struct {
    bool sees;
    bool hears;
    // The model reads a picture as a whole, not from its first vector to its last.
    bool reads_pictures_whole;
    // The numbers of each vector.
    size_t width;
} hob_projector_info;

typedef struct {
    // Null for vectors.
    const int32_t * tokens;
    // Tokens or vectors.
    size_t length;
    // How far the position of what follows advances.
    size_t positions;
    bool   is_read_whole;
} hob_media_chunk;

// When work ends early: after a time, or when another thread sets the flag.
typedef struct {
    uint64_t        milliseconds;
    const uint8_t * is_cancelled;
} hob_media_limit;

// Sets where the library logs, and makes failed checks of ggml in the calls below an error. Called once.
void hob_media_start(ggml_log_callback log);

void hob_media_text_free(char * text);

bool hob_projector_new(const char * path, const struct llama_model * model, int32_t threads, bool use_gpu,
                       hob_projector ** made, hob_projector_info * info, char ** error);
void hob_projector_free(hob_projector * projector);

// The chunks of a picture, whose pixels are red, green and blue bytes. Several threads may call it at once.
bool hob_media_picture(const hob_projector * projector, uint32_t width, uint32_t height, const uint8_t * pixels,
                       hob_media ** made, char ** error);

// The chunks of a file of sound that is not longer than `max_seconds`. Several threads may call it at once.
bool hob_media_sound(const hob_projector * projector, const uint8_t * file, size_t file_size, uint32_t max_seconds,
                     hob_media ** made, char ** error);
void hob_media_free(hob_media * media);

size_t hob_media_length(const hob_media * media);
bool   hob_media_get(const hob_projector * projector, const hob_media * media, size_t at, hob_media_chunk * found,
                     char ** error);

// Writes the vectors of a chunk to `vectors`, which has space for `size` numbers. One thread at a time.
bool hob_media_encode(hob_projector * projector, const hob_media * media, size_t at, const hob_media_limit * limit,
                      float * vectors, size_t size, char ** error);

// Drops the pixels, which are of no use once all chunks are encoded.
bool hob_media_forget_pixels(hob_media * media, char ** error);

// Reads `count` vectors of a chunk into the memory of a sequence, from the vector `first`. The chunk begins at `position`.
bool hob_media_read(const hob_projector * projector, const hob_media * media, size_t at, const float * vectors,
                    struct llama_context * context, int32_t sequence, int32_t position, size_t first, size_t count,
                    char ** error);

#ifdef __cplusplus
}
#endif
