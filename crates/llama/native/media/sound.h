#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hob_sound {

// The samples of a WAV, MP3 or FLAC file as one channel.
std::vector<float> samples_of(const uint8_t * file, size_t file_size, uint32_t rate, uint32_t max_seconds);

}  // namespace hob_sound
