// GCC 12 tells its optimiser that loading a tile configuration reads 8 bytes of it, where the instruction reads 64. The
// rest of the configuration is then never written, and the first tile instruction of llama.cpp ends the process with
// SIGILL on processors with AMX. Included before every C++ file of llama.cpp, this puts a correct version in its place;
// it does nothing for other compilers and processors.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__AMX_TILE__)
#include <immintrin.h>

static inline __attribute__((always_inline)) void hob_tile_loadconfig(const void *config) {
    __asm__ volatile("ldtilecfg\t%X0" ::"m"(*(const char(*)[64])config));
}
#define _tile_loadconfig(config) hob_tile_loadconfig(config)
#endif
