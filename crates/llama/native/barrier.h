// How the threads that compute a step wait for each other, hundreds of times for every token. Included by ggml-cpu.c.
//
// OpenMP's barrier spins for milliseconds, and keeps its core. That is fast if every thread has a core. If other programs run too, the
// thread that it waits for may have none. Here, after a long spin in vain, a thread spins only for a short time at the next barriers,
// and then sleeps until the others wake it.
//
// Medians for 64 tokens of a small model on two cores: 0.48 s alone with both; beside two busy programs 1.4 s, and 2.1 s (up to 7.6 s) with
// OpenMP's; beside four of them 2.5 s and 10 s. A model with 1B parameters, alone: 1.75 s and 1.80 s.
#pragma once

#if defined(__linux__)

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HOB_LONG_SPIN   = 5000000,  // nanoseconds
    HOB_SHORT_SPIN  = 25000,
    HOB_SPIN_CHECK  = 64,    // spins between two looks at the clock
    // Barriers, of some ten tokens, until a thread tries a long spin again.
    HOB_SHORT_SPINS = 4096,
};

// Threads of all models that sleep, or are about to.
static atomic_int hob_sleepers = 0;

static inline int64_t hob_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// Whether the value changed within so many nanoseconds.
static inline bool hob_spin_while(atomic_int * value, int old, int64_t nanoseconds) {
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < HOB_SPIN_CHECK; i++) {
            if (atomic_load_explicit(value, memory_order_relaxed) != old) {
                return true;
            }
            ggml_thread_cpu_relax();
        }
        const int64_t now = hob_now();
        if (end == 0) {
            end = now + nanoseconds;
        } else if (now >= end) {
            return false;
        }
    }
}

static inline void hob_wait_while(atomic_int * value, int old) {
    static _Thread_local int short_spins = 0;

    const bool is_short = short_spins > 0;
    if (is_short) {
        short_spins--;
    }
    if (hob_spin_while(value, old, is_short ? HOB_SHORT_SPIN : HOB_LONG_SPIN)) {
        return;
    }
    if (!is_short) {
        short_spins = HOB_SHORT_SPINS;
    }
    // The other side changes the value and then reads this number, so at least one of the two sees the other's write.
    atomic_fetch_add(&hob_sleepers, 1);
    while (atomic_load(value) == old) {
        syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    }
    atomic_fetch_sub(&hob_sleepers, 1);
}

static inline void hob_wake(atomic_int * value) {
    if (atomic_load(&hob_sleepers) > 0) {
        syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

#else

static inline void hob_wait_while(atomic_int * value, int old) {
    while (atomic_load_explicit(value, memory_order_relaxed) == old) {
        ggml_thread_cpu_relax();
    }
}

static inline void hob_wake(atomic_int * value) {
    UNUSED(value);
}

#endif
