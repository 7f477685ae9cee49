// How the threads that compute a step wait for each other, hundreds of times for every token. Included by ggml-cpu.c.
//
// OpenMP's barrier looks for milliseconds whether the others have arrived, and keeps its core. That is fast if every thread has a core.
// If other programs run too, the one that it waits for may have none. Here, a thread that has looked in vain for a long time looks only
// for a short time at the next barriers, and then sleeps until the others wake it. Measured on two cores beside two busy programs: an
// answer of 64 tokens takes 1.3 to 1.9 s instead of 2.4 to 3.8 s, and beside four of them 2.7 s; one of 96 tokens took 15 to 60 s there.
// On an idle machine it is as fast as OpenMP's: 0.48 s instead of 0.52 s, and for a model with 1B parameters 1.68 s instead of 1.71 s.
#pragma once

#if defined(__linux__)

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    HOB_LONG_LOOK  = 20000,  // about a millisecond
    HOB_SHORT_LOOK = 500,
    // Barriers, of some ten tokens, until a thread looks for a long time again.
    HOB_PATIENCE   = 4096,
};

// Threads of all models that sleep, or are about to.
static atomic_int hob_sleepers = 0;

static void hob_wait_while(atomic_int * value, int old) {
    static _Thread_local int short_looks = 0;

    const int looks = short_looks > 0 ? HOB_SHORT_LOOK : HOB_LONG_LOOK;
    if (short_looks > 0) {
        short_looks--;
    }
    for (int i = 0; i < looks; i++) {
        if (atomic_load_explicit(value, memory_order_relaxed) != old) {
            return;
        }
        ggml_thread_cpu_relax();
    }
    if (short_looks == 0) {
        short_looks = HOB_PATIENCE;
    }
    // The other side changes the value and then reads this number, so one of both sees the other.
    atomic_fetch_add(&hob_sleepers, 1);
    while (atomic_load(value) == old) {
        syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    }
    atomic_fetch_sub(&hob_sleepers, 1);
}

static void hob_wake(atomic_int * value) {
    if (atomic_load(&hob_sleepers) > 0) {
        syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

#else

static void hob_wait_while(atomic_int * value, int old) {
    while (atomic_load_explicit(value, memory_order_relaxed) == old) {
        ggml_thread_cpu_relax();
    }
}

static void hob_wake(atomic_int * value) {
    UNUSED(value);
}

#endif
