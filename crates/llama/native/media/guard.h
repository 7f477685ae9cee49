// Checks of llama.cpp's media library throw instead of ending the process: pictures and sound come from callers, and projectors
// from files that people download. Included before every source of the library.
#pragma once

#include "ggml.h"

#include <cstdint>
#include <string>

namespace hob_media_guard {

[[noreturn]] void failed(const char * condition);

// A number in the header of a projector, which the library may divide by.
void check_number(const std::string & key, uint32_t number);

}  // namespace hob_media_guard

#undef GGML_ASSERT
#define GGML_ASSERT(condition)                     \
    do {                                           \
        if (!(condition)) {                        \
            hob_media_guard::failed(#condition);         \
        }                                          \
    } while (false)

#undef GGML_ABORT
#define GGML_ABORT(...) hob_media_guard::failed("an internal check")
