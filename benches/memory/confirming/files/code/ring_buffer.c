/* A ring buffer for one writer and one reader without locks. The size is a power of two, so that a mask replaces division. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_CAPACITY 1024u
#define RING_MASK (RING_CAPACITY - 1u)

struct ring {
    _Atomic uint32_t head; /* where the writer puts the next item */
    _Atomic uint32_t tail; /* where the reader takes the next item */
    void *items[RING_CAPACITY];
};

/* False when there is no room. Only the writer may call it. */
bool ring_push(struct ring *ring, void *item) {
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - tail == RING_CAPACITY) return false;
    ring->items[head & RING_MASK] = item;
    /* The item must be seen before the new head is. */
    atomic_store_explicit(&ring->head, head + 1u, memory_order_release);
    return true;
}

/* NULL when there is nothing. Only the reader may call it. */
void *ring_pop(struct ring *ring) {
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (head == tail) return NULL;
    void *item = ring->items[tail & RING_MASK];
    atomic_store_explicit(&ring->tail, tail + 1u, memory_order_release);
    return item;
}
