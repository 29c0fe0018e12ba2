/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Events that a program keeps to read back itself, as DEQUEUE_TRACE, trace_dump and
 * seL4_BenchmarkFinalizeLog of the original systems do. Independently of this, each event also goes to the
 * rings of the tracer, for `lat record`.
 *
 * Each writer has a ring of its own: each thread on Linux, each core with LAT_SMALL. So writers share no
 * cache line. A full ring drops the newest event and counts it. The ring of a thread that ends is reused by
 * the next thread if it is at most half full, and otherwise remains for readers.
 *
 * Included by one C file of each interface, which first defines
 *   LOCAL_LOG_WORDS   maximum number of words of an event
 *   LOCAL_LOG_SLOTS   events that a ring holds, a power of two
 *
 * Context of local_log_put: any thread, any signal handler or interrupt. The first event of a thread maps its
 * ring, and should not be in a handler. Readers: any thread, no signal handler. Readers wait for each other,
 * never for writers.
 */
#ifndef LOCAL_LOG_H
#define LOCAL_LOG_H

#include <lat/lat.h>

#ifdef LAT_SMALL
#include "lat_port.h"
#else
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lat/clock.h>
#endif

struct local_event {
    uint64_t time; /* ticks of the tracer's clock */
    uint32_t core;
    uint32_t thread;
    uint64_t words[LOCAL_LOG_WORDS];
};

/* Counts of events, in a type that the processor stores with one instruction. */
typedef uintptr_t local_position;

struct local_slot {
    local_position committed; /* position + 1 once complete; pair L1: local_log_put, local_ring_head */
    struct local_event event;
};

/* A signal handler or an interrupt may occur at any point of a put: a slot is claimed by one
 * compare-exchange, and is complete once `committed` is its position + 1. */
struct local_ring {
    local_position claimed; /* next position; accessed by the writer only */
    local_position dropped; /* likewise */
    uint64_t reserved[6];
    local_position taken; /* written by readers; pair L2: local_ring_take, local_log_put */
    struct local_ring *next;
    uint32_t in_use;  /* pair L3: a thread that ends, local_ring_find */
    struct local_slot slots[LOCAL_LOG_SLOTS];
};
_Static_assert((LOCAL_LOG_SLOTS & (LOCAL_LOG_SLOTS - 1u)) == 0u, "a power of two");

/* ---- the writer's context ---------------------------------------------------------------------- */

#ifdef LAT_SMALL

typedef lat_port_mask_t local_guard;
static struct local_ring local_rings[LAT_PORT_CORES];
#if LAT_PORT_CORES > 1
static uint32_t local_reading;
#endif

static inline struct local_ring *local_ring_mine(void)
{
#if LAT_PORT_CORES == 1
    return &local_rings[0];
#else
    return &local_rings[lat_port_core()];
#endif
}
static inline uint64_t local_now(uint32_t *core)
{
#if LAT_PORT_CORES == 1
    *core = 0;
#else
    *core = (uint32_t)lat_port_core();
#endif
    return lat_port_clock();
}
static inline uint32_t local_thread(void)
{
    return (uint32_t)lat_port_context();
}
/* Masks the interrupts of this core for the length of an event, so no compare-exchange is needed. */
static inline local_guard local_guard_begin(void)
{
    return lat_port_mask();
}
static inline void local_guard_end(local_guard before)
{
    lat_port_unmask(before);
}
static inline int local_claim(local_position *claimed, local_position *position)
{
    *claimed = *position + 1;
    return 1;
}
static inline struct local_ring *local_ring_after(const struct local_ring *ring)
{
    ring = ring == NULL ? local_rings : ring + 1;
    return ring == local_rings + LAT_PORT_CORES ? NULL : (struct local_ring *)(uintptr_t)ring;
}
/* Only one reader at a time is allowed; on a single core the program ensures this. */
static inline void local_read_begin(void)
{
#if LAT_PORT_CORES > 1
    while (__atomic_exchange_n(&local_reading, 1, __ATOMIC_ACQUIRE) != 0) {
    }
#endif
}
static inline void local_read_end(void)
{
#if LAT_PORT_CORES > 1
    __atomic_store_n(&local_reading, 0, __ATOMIC_RELEASE);
#endif
}

#else

typedef int local_guard;
static __thread struct local_ring *local_ring_of_thread;
static __thread uint32_t local_thread_id;
static struct local_ring *local_rings; /* pair L4: local_ring_find, readers */
static pthread_mutex_t local_reading = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t local_at_exit;
static int local_has_key;

static void local_thread_ends(void *ring)
{
    local_ring_of_thread = NULL;
    __atomic_store_n(&((struct local_ring *)ring)->in_use, 0, __ATOMIC_RELEASE); /* pair L3 */
}
static void local_child_begins(void)
{
    local_thread_id = 0;
}
static __attribute__((constructor(201))) void local_set_up(void)
{
    local_has_key = pthread_key_create(&local_at_exit, local_thread_ends) == 0;
    pthread_atfork(NULL, NULL, local_child_begins);
}

/* Returns a ring whose thread has ended and that is at most half full, so that leftover events of one thread
 * do not cost the next one its own; or else a new ring; NULL without memory. */
static struct local_ring *local_ring_find(void)
{
    const int saved_errno = errno;
    struct local_ring *ring = __atomic_load_n(&local_rings, __ATOMIC_ACQUIRE); /* pair L4 */
    for (; ring != NULL; ring = ring->next) {
        uint32_t unused = 0;
        if (!__atomic_compare_exchange_n(&ring->in_use, &unused, 1, 0, __ATOMIC_ACQUIRE, /* pair L3 */
                                         __ATOMIC_RELAXED))
            continue;
        if (ring->claimed - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) <= LOCAL_LOG_SLOTS / 2u)
            break; /* pair L2 */
        __atomic_store_n(&ring->in_use, 0, __ATOMIC_RELEASE); /* pair L3 */
    }
    if (ring == NULL) {
        void *memory = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED) {
            ring = (struct local_ring *)memory;
            ring->in_use = 1;
            ring->next = __atomic_load_n(&local_rings, __ATOMIC_RELAXED);
            while (!__atomic_compare_exchange_n(&local_rings, &ring->next, ring, 0, __ATOMIC_RELEASE,
                                                __ATOMIC_RELAXED)) { /* pair L4 */
            }
        }
    }
    if (ring != NULL && local_has_key)
        pthread_setspecific(local_at_exit, ring);
    local_ring_of_thread = ring;
    errno = saved_errno;
    return ring;
}
static inline struct local_ring *local_ring_mine(void)
{
    struct local_ring *ring = local_ring_of_thread;
    return LAT_I_LIKELY(ring != NULL) ? ring : local_ring_find();
}
/* The C library exposes the CPU number in thread-local memory that the kernel writes
 * [include/uapi/linux/rseq.h, cpu_id, at 4]. This is a load; rdtscp would wait for all preceding
 * instructions. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
static inline uint64_t local_now(uint32_t *core)
{
#if defined(__x86_64__)
    if (LAT_I_LIKELY(&__rseq_size != NULL && __rseq_size != 0)) {
        const char *thread;
        __asm__("movq %%fs:0, %0" : "=r"(thread));
        *core = *(const volatile uint32_t *)(const void *)(thread + __rseq_offset + 4);
        return lat_i_clock();
    }
#endif
    const int cpu = sched_getcpu();
    *core = cpu < 0 ? 0 : (uint32_t)cpu;
    return lat_i_clock();
}
static inline uint32_t local_thread(void)
{
    if (LAT_I_UNLIKELY(local_thread_id == 0))
        local_thread_id = (uint32_t)syscall(SYS_gettid);
    return local_thread_id;
}
static inline local_guard local_guard_begin(void)
{
    return 0;
}
static inline void local_guard_end(local_guard before)
{
    (void)before;
}
/* Only this thread and its signal handlers write the word, on any CPU, so on x86 one instruction is enough,
 * without the lock prefix, which costs as much as the rest of an event. */
static inline int local_claim(local_position *claimed, local_position *position)
{
#if defined(__x86_64__)
    uint8_t done;
    __asm__ volatile("cmpxchgq %[next], %[claimed]\n"
                     "sete %[done]"
                     : [claimed] "+m"(*claimed), "+a"(*position), [done] "=q"(done)
                     : [next] "r"(*position + 1)
                     : "cc", "memory");
    return done;
#else
    return __atomic_compare_exchange_n(claimed, position, *position + 1, 1, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
#endif
}
static inline struct local_ring *local_ring_after(const struct local_ring *ring)
{
    return ring == NULL ? __atomic_load_n(&local_rings, __ATOMIC_ACQUIRE) : ring->next; /* pair L4 */
}
static inline void local_read_begin(void)
{
    pthread_mutex_lock(&local_reading);
}
static inline void local_read_end(void)
{
    pthread_mutex_unlock(&local_reading);
}

#endif

/* ---- writing ------------------------------------------------------------------------------------ */

/** Keeps an event with the current time. @return 0 if it was dropped, which is counted. */
static inline int local_log_put(const uint64_t *words, uint32_t count, uint64_t *time)
{
    const local_guard guard = local_guard_begin();
    struct local_ring *ring = local_ring_mine();
    uint32_t core;
    const uint64_t now = local_now(&core);
    local_position position;
    *time = now;
    if (LAT_I_UNLIKELY(ring == NULL)) {
        local_guard_end(guard);
        return 0;
    }
    position = *(volatile local_position *)&ring->claimed;
    do {
        /* Acquire: a reader's copy of the slot is complete before the slot is written again. Pair L2. */
        if (LAT_I_UNLIKELY(position - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) >=
                           LOCAL_LOG_SLOTS)) {
            /* A handler in between may lose one increment; the event counts as dropped either way. */
            ring->dropped++;
            local_guard_end(guard);
            return 0;
        }
    } while (!local_claim(&ring->claimed, &position));
    struct local_slot *slot = &ring->slots[position & (LOCAL_LOG_SLOTS - 1u)];
    slot->event.time = now;
    slot->event.core = core;
    slot->event.thread = local_thread();
    for (uint32_t i = 0; i < count; i++)
        slot->event.words[i] = words[i];
    __atomic_store_n(&slot->committed, position + 1, __ATOMIC_RELEASE); /* pair L1 */
    local_guard_end(guard);
    return 1;
}

/* ---- reading ------------------------------------------------------------------------------------ */

#define LOCAL_ANY_CORE UINT32_MAX

/* The oldest event of a ring; NULL if none is complete. Context: between local_read_begin and
   _end. */
static inline const struct local_event *local_ring_head(const struct local_ring *ring)
{
    const struct local_slot *slot = &ring->slots[ring->taken & (LOCAL_LOG_SLOTS - 1u)];
    return __atomic_load_n(&slot->committed, __ATOMIC_ACQUIRE) == ring->taken + 1 /* pair L1 */
               ? &slot->event
               : NULL;
}

/** Copies the oldest event of all rings and, if `take`, removes it. @return 0 if there is none. */
static inline int local_log_read(struct local_event *event, int take)
{
    struct local_ring *oldest = NULL;
    const struct local_event *found = NULL;
    local_read_begin();
    for (struct local_ring *ring = local_ring_after(NULL); ring != NULL; ring = local_ring_after(ring)) {
        const struct local_event *head = local_ring_head(ring);
        if (head != NULL && (found == NULL || head->time < found->time)) {
            found = head;
            oldest = ring;
        }
    }
    if (found != NULL) {
        *event = *found;
        if (take)
            __atomic_store_n(&oldest->taken, oldest->taken + 1, __ATOMIC_RELEASE); /* pair L2 */
    }
    local_read_end();
    return found != NULL;
}

/** Events dropped by all rings since they were made. */
static inline uint64_t local_log_dropped(void)
{
    uint64_t dropped = 0;
    for (struct local_ring *ring = local_ring_after(NULL); ring != NULL; ring = local_ring_after(ring))
        dropped += *(volatile local_position *)&ring->dropped;
    return dropped;
}

#endif
