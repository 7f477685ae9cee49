#include "sound.h"

#include <stdexcept>
#include <string>

// Only the readers of files.
#define MINIAUDIO_IMPLEMENTATION
#define MA_NO_DEVICE_IO
#define MA_NO_RESOURCE_MANAGER
#define MA_NO_NODE_GRAPH
#define MA_NO_ENGINE
#define MA_NO_GENERATION
#define MA_NO_ENCODING
#define MA_NO_THREADING
#define MA_API static
#include "miniaudio/miniaudio.h"

namespace hob_sound {

namespace {

// Frames that are read at once.
const size_t BLOCK = 1 << 16;

struct open_file {
    ma_decoder decoder;
    bool       is_open = false;

    ~open_file() {
        if (is_open) {
            ma_decoder_uninit(&decoder);
        }
    }
};

}  // namespace

std::vector<float> samples_of(const uint8_t * file, size_t file_size, uint32_t rate, uint32_t max_seconds) {
    open_file               sound;
    const ma_decoder_config wanted = ma_decoder_config_init(ma_format_f32, 1, rate);
    if (ma_decoder_init_memory(file, file_size, &wanted, &sound.decoder) != MA_SUCCESS) {
        throw std::runtime_error("it is not a WAV, MP3 or FLAC file");
    }
    sound.is_open = true;
    // The length in a file may be wrong, so it is not used.
    const size_t       most = static_cast<size_t>(rate) * max_seconds;
    std::vector<float> samples;
    for (;;) {
        const size_t before = samples.size();
        samples.resize(before + BLOCK);
        ma_uint64       read   = 0;
        const ma_result result = ma_decoder_read_pcm_frames(&sound.decoder, samples.data() + before, BLOCK, &read);
        samples.resize(before + static_cast<size_t>(read));
        if (samples.size() > most) {
            throw std::runtime_error("it is longer than " + std::to_string(max_seconds) + " seconds");
        }
        if (result != MA_SUCCESS || read == 0) {
            break;
        }
    }
    if (samples.size() < 2) {
        throw std::runtime_error("it has no sound");
    }
    return samples;
}

}  // namespace hob_sound
