#include "guard.h"

#include "shim.h"
#include "sound.h"

#include "mtmd.h"
#include "mtmd-helper.h"
#include "mtmd-helper-common.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

struct hob_projector {
    mtmd_context * context = nullptr;
    // Of the current encoding.
    std::chrono::steady_clock::time_point end;
    const uint8_t *                       is_cancelled = nullptr;
    bool                                  is_encoding  = false;
    bool                                  is_stopped   = false;
    unsigned                              asked        = 0;

    ~hob_projector() { mtmd_free(context); }
};

struct hob_media {
    std::vector<mtmd_input_chunk *> chunks;

    ~hob_media() {
        for (auto * chunk : chunks) {
            mtmd_input_chunk_free(chunk);
        }
    }
};

// Missing in a build without OpenMP.
extern "C" int omp_in_parallel(void) __attribute__((weak));

namespace {

// Operations between two looks at the clock: a few milliseconds, and no noticeable cost.
const unsigned PACE = 32;

// No size in the header of a real projector is larger.
const uint32_t MAX_SIZE = 1 << 20;

// The calls into the library on this thread.
thread_local int depth = 0;

// The error of the library in the current call on this thread.
thread_local std::string logged;

ggml_abort_callback_t on_abort_before = nullptr;
ggml_log_callback     on_log          = nullptr;

// ggml calls this before it ends the process. An exception passes through its functions, which are C and hold nothing, except
// between threads that compute together: the others would wait for this one forever.
void on_abort(const char * message) {
    if (depth > 0 && !(omp_in_parallel != nullptr && omp_in_parallel() != 0)) {
        // Without the file and the line before it.
        const char * reason = std::strstr(message, ": ");
        throw std::runtime_error(reason != nullptr ? reason + 2 : message);
    }
    if (on_abort_before != nullptr) {
        on_abort_before(message);
    }
}

void on_line(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && depth > 0 && logged.empty()) {
        logged = text;
    }
    // What fails is an error of the call, which its caller handles.
    on_log(level == GGML_LOG_LEVEL_ERROR ? GGML_LOG_LEVEL_WARN : level, text, nullptr);
}

char * copy_of(const std::string & text) {
    char * copy = static_cast<char *>(std::malloc(text.size() + 1));
    if (copy != nullptr) {
        std::memcpy(copy, text.c_str(), text.size() + 1);
    }
    return copy;
}

// Runs `work`; every exception becomes text.
template <typename T> bool guarded(char ** error, const T & work) noexcept {
    try {
        depth++;
        logged.clear();
        work();
        depth--;
        return true;
    } catch (const std::exception & caught) {
        depth--;
        *error = copy_of(caught.what());
    } catch (...) {
        depth--;
        *error = copy_of("unknown");
    }
    return false;
}

// Fails with what the library logged, without the name of its function.
[[noreturn]] void fail(const char * otherwise) {
    static const std::string PREFIX = "error: ";
    const size_t             at     = logged.find(PREFIX);
    const std::string        reason = at == std::string::npos ? logged : logged.substr(at + PREFIX.size());
    throw std::runtime_error(reason.empty() ? otherwise : reason);
}

// Called around the operations of an encoding. Returns false to end it.
bool on_operation(ggml_tensor *, bool is_question, void * data) {
    auto & projector = *static_cast<hob_projector *>(data);
    if (is_question) {
        return ++projector.asked % PACE == 0;
    }
    if (projector.is_encoding && !projector.is_stopped) {
        projector.is_stopped = __atomic_load_n(projector.is_cancelled, __ATOMIC_RELAXED) != 0 ||
                               std::chrono::steady_clock::now() > projector.end;
    }
    return !projector.is_stopped;
}

// The chunks of a bitmap alone.
hob_media * chunks_of(const hob_projector & projector, const mtmd_bitmap * bitmap) {
    mtmd::input_chunks    chunks(mtmd_input_chunks_init());
    const mtmd_input_part part    = { nullptr, bitmap };
    const mtmd_input_part * parts = &part;
    if (mtmd_tokenize_from_parts(projector.context, chunks.ptr.get(), &parts, 1, /* add_special= */ false) != 0) {
        fail("the projector cannot read it");
    }
    auto media = std::make_unique<hob_media>();
    for (size_t at = 0; at < chunks.size(); at++) {
        media->chunks.push_back(mtmd_input_chunk_copy(chunks[at]));
    }
    return media.release();
}

}  // namespace

void hob_media_guard::failed(const char * condition) {
    throw std::runtime_error(std::string("a check failed: ") + condition);
}

void hob_media_guard::check_number(const std::string & key, uint32_t number) {
    static const char * const SIZES[] = {
        "_size", "_side", "_factor", "_rate", "_bins",
    };
    // Some files have no windows.
    const bool is_window = key.find("window") != std::string::npos;
    for (const char * ending : SIZES) {
        const size_t length = std::strlen(ending);
        const bool   is_size = key.size() > length && key.compare(key.size() - length, length, ending) == 0;
        if (is_size && ((number == 0 && !is_window) || number > MAX_SIZE)) {
            throw std::runtime_error("its header has " + std::to_string(number) + " for " + key);
        }
    }
}

extern "C" {

void hob_media_start(ggml_log_callback log) {
    on_log          = log;
    on_abort_before = ggml_set_abort_callback(on_abort);
    mtmd_log_set(on_line, nullptr);
}

void hob_media_text_free(char * text) {
    std::free(text);
}

bool hob_projector_new(const char * path, const llama_model * model, int32_t threads, bool use_gpu, hob_projector ** made,
                       hob_projector_info * info, char ** error) {
    return guarded(error, [&] {
        auto projector            = std::make_unique<hob_projector>();
        auto params               = mtmd_context_params_default();
        params.use_gpu            = use_gpu;
        params.print_timings      = false;
        params.n_threads          = threads;
        // The first picture has the size that counts.
        params.warmup             = false;
        params.cb_eval            = on_operation;
        params.cb_eval_user_data  = projector.get();
        projector->context        = mtmd_init_from_file(path, model, params);
        if (projector->context == nullptr) {
            fail("llama.cpp gives no reason");
        }
        info->sees                 = mtmd_support_vision(projector->context);
        info->hears                = mtmd_support_audio(projector->context);
        info->reads_pictures_whole = info->sees && mtmd_decode_use_non_causal(projector->context, nullptr);
        info->width                = llama_model_n_embd_inp(model);
        *made                      = projector.release();
    });
}

void hob_projector_free(hob_projector * projector) {
    delete projector;
}

bool hob_media_picture(const hob_projector * projector, uint32_t width, uint32_t height, const uint8_t * pixels,
                       hob_media ** made, char ** error) {
    return guarded(error, [&] {
        mtmd::bitmap bitmap(width, height, pixels);
        *made = chunks_of(*projector, bitmap.ptr.get());
    });
}

bool hob_media_sound(const hob_projector * projector, const uint8_t * file, size_t file_size, uint32_t max_seconds,
                     hob_media ** made, char ** error) {
    return guarded(error, [&] {
        const int rate = mtmd_get_audio_sample_rate(projector->context);
        if (rate <= 0) {
            throw std::runtime_error("the projector does not hear");
        }
        const auto   samples = hob_sound::samples_of(file, file_size, static_cast<uint32_t>(rate), max_seconds);
        mtmd::bitmap bitmap(mtmd_bitmap_init_from_audio(samples.size(), samples.data()));
        *made = chunks_of(*projector, bitmap.ptr.get());
    });
}

void hob_media_free(hob_media * media) {
    delete media;
}

size_t hob_media_length(const hob_media * media) {
    return media->chunks.size();
}

bool hob_media_get(const hob_projector * projector, const hob_media * media, size_t at, hob_media_chunk * found,
                   char ** error) {
    return guarded(error, [&] {
        const auto * chunk = media->chunks[at];
        if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
            found->tokens    = mtmd_input_chunk_get_tokens_text(chunk, &found->length);
            found->positions = found->length;
        } else {
            found->length        = mtmd_input_chunk_get_n_tokens(chunk);
            found->positions     = static_cast<size_t>(mtmd_input_chunk_get_n_pos(chunk));
            found->is_read_whole = mtmd_decode_use_non_causal(projector->context, chunk);
        }
    });
}

bool hob_media_encode(hob_projector * projector, const hob_media * media, size_t at, const hob_media_limit * limit,
                      float * vectors, size_t size, char ** error) {
    const bool is_done = guarded(error, [&] {
        projector->end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit->milliseconds);
        projector->is_cancelled = limit->is_cancelled;
        projector->is_stopped   = false;
        projector->is_encoding  = true;
        const int32_t status    = mtmd_encode_chunk(projector->context, media->chunks[at]);
        if (projector->is_stopped) {
            throw std::runtime_error("it takes too long");
        }
        if (status != 0) {
            fail("the projector cannot encode it");
        }
        std::memcpy(vectors, mtmd_get_output_embd(projector->context), size * sizeof(float));
    });
    projector->is_encoding = false;
    return is_done;
}

bool hob_media_forget_pixels(hob_media * media, char ** error) {
    return guarded(error, [&] {
        for (auto *& chunk : media->chunks) {
            if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
                continue;
            }
            auto * smaller = mtmd_input_chunk_get_placeholder(chunk);
            if (smaller == nullptr) {
                fail("out of memory");
            }
            mtmd_input_chunk_free(chunk);
            chunk = smaller;
        }
    });
}

bool hob_media_read(const hob_projector * projector, const hob_media * media, size_t at, const float * vectors,
                    llama_context * context, int32_t sequence, int32_t position, size_t first, size_t count, char ** error) {
    // A failed check of ggml here leaves the memory of all sequences undefined, so it ends the process as everywhere else.
    const auto read = [&] {
        const auto *  chunk    = media->chunks[at];
        const int32_t length   = static_cast<int32_t>(mtmd_input_chunk_get_n_tokens(chunk));
        const bool    is_grid  = mtmd_decode_use_mrope(projector->context);
        const int32_t width    = llama_model_n_embd_inp(llama_get_model(context));
        decode_embd_batch batch(vectors, length, is_grid ? 4 : 1, width);
        if (!is_grid) {
            batch.set_position_normal(position, sequence);
        } else if (const auto * picture = mtmd_input_chunk_get_tokens_image(chunk)) {
            std::vector<mtmd_decoder_pos> places(static_cast<size_t>(length));
            for (size_t i = 0; i < places.size(); i++) {
                places[i] = mtmd_image_tokens_get_decoder_pos(picture, position, i);
            }
            batch.set_position_mrope_2d(places, sequence);
        } else {
            batch.set_position_mrope_1d(position, sequence);
        }
        auto *     rendered = batch.render(context, static_cast<int>(first), static_cast<int>(count));
        const bool is_whole = mtmd_decode_use_non_causal(projector->context, chunk);
        // Also after an exception.
        struct causal_again {
            llama_context * context;
            bool            is_needed;
            ~causal_again() {
                if (is_needed) {
                    llama_set_causal_attn(context, true);
                }
            }
        } again{ context, is_whole };
        if (is_whole) {
            llama_set_causal_attn(context, false);
        }
        const int32_t status = llama_process(context, LLAMA_PROCESS_TYPE_DECODE, rendered);
        if (status != 0) {
            throw std::runtime_error("a step of the model failed with " + std::to_string(status));
        }
    };
    return guarded(error, [&] {
        const int outside = depth;
        depth             = 0;
        try {
            read();
            depth = outside;
        } catch (...) {
            depth = outside;
            throw;
        }
    });
}

}  // extern "C"
