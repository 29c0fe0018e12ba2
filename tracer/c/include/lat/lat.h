// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Lateralis tracer: the header that a traced program includes.
 *
 * Normally you write a schema (app.pleco), generate typed functions with
 * `pleco gen --c app.h app.pleco`, include app.h and link liblateralis:
 *
 *     lat_threads_mutex_lock(address);          one event
 *     LAT_SPAN_THREADS_HELD(address);           a span until the end of the scope
 *     LAT_LOG("took %u us for %s", us, name);   an event without a schema, <lat/log.h>
 *
 * Nothing is recorded until a recorder requests it (`lat record -- program`, or
 * `lat record --attach PID` while it runs); until then a site costs one byte
 * test. No function here blocks, allocates, prints, changes errno or fails in
 * a way visible to the program: events that cannot be recorded are counted.
 *
 * Context of everything here unless said otherwise: any thread, any signal
 * handler, before main, after fork. Ring layout and protocol: spec/ring-abi.md.
 */
#ifndef LAT_LAT_H
#define LAT_LAT_H

/* A machine without an operating system: the same generated headers over the small area. */
#ifdef LAT_SMALL
#include "small.h"
#else

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#ifdef __cplusplus
#define LAT_I_C_BEGIN extern "C" {
#define LAT_I_C_END }
#else
#define LAT_I_C_BEGIN
#define LAT_I_C_END
#endif

#define LAT_INLINE __attribute__((always_inline)) inline
/* Functions of events in generated headers. Inlined at each call, so that a disabled event costs a test
 * without a call, and an enabled one writes its arguments from where they are. A program that is
 * optimised for size, or not at all, has one copy in each file. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define LAT_EVENT static LAT_INLINE
#else
#define LAT_EVENT static inline
#endif
/* A part of an event that needs much stack, kept apart so that its callers do not. */
#ifdef __OPTIMIZE__
#define LAT_I_APART static __attribute__((noinline, unused))
#else
#define LAT_I_APART static inline
#endif
/* The rare part of an event, out of line. A file that uses no event must not need the tracer: without
 * optimisation GCC drops only unused inline functions, and it warns about inline ones marked
 * noinline. */
#ifdef __OPTIMIZE__
#define LAT_I_RARE static __attribute__((noinline, cold, unused))
#else
#define LAT_I_RARE static inline __attribute__((cold))
#endif
#define LAT_I_LIKELY(x) __builtin_expect(!!(x), 1)
#define LAT_I_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* The tracer in a shared library must not pay for dynamic thread-local lookup: 11 cycles, half the
 * cost of an event. In an executable that contains the tracer itself, the offset is known at
 * link time; with liblateralis.so (compile with LAT_SHARED, as its pkg-config file specifies) or inside
 * a shared object it is read from the object's offset table. */
#if !defined(LAT_SHARED) && (!defined(__PIC__) || defined(__PIE__))
#define LAT_I_TLS_KNOWN 1
#define LAT_I_TLS __attribute__((tls_model("local-exec"))) extern __thread
#else
#define LAT_I_TLS __attribute__((tls_model("initial-exec"))) extern __thread
#endif

LAT_I_C_BEGIN

/* ---- schemas ---------------------------------------------------------- */

/** One schema linked into the program; made by the generated header. */
struct lat_schema {
    const uint8_t *enabled; /* enable byte of its first event; all zero until registered */
    uint32_t base_id;       /* id of its first event in this area */
    uint32_t event_count;
    uint64_t hash;
    const char *name;
    const char *text;       /* canonical pleco text */
    uint32_t text_bytes;
    uint32_t registered;
};

/**
 * Makes a schema known to recorders. Called by a constructor of the generated
 * header; calling it again is harmless. Opens the area on the first call.
 * Context: thread (not a signal handler). Cost: about 50 us on the first call.
 */
void lat_register(struct lat_schema *schema);

/** A patchable site of LAT_SITE: all addresses relative to their own field. */
struct lat_i_site {
    int32_t site;
    int32_t target;
    int32_t schema;
    uint32_t index;
};
/** One table per shared object that has patchable sites; a list in the process. */
struct lat_i_patch_table {
    struct lat_i_patch_table *next;
    const struct lat_i_site *begin;
    const struct lat_i_site *end;
};
/** Makes patchable sites known and patches those enabled. Context: start-up. */
void lat_i_register_sites(struct lat_i_patch_table *table);
/** Removes them again. Context: the object is being unloaded. */
void lat_i_forget_sites(struct lat_i_patch_table *table);

#define LAT_I_SCHEMA_DATA(ident, count, hash_, name_, text_, bytes_)                          \
    __attribute__((weak, visibility("hidden"))) uint8_t lat_zeros_##ident[(count) ? (count) : 1]; \
    __attribute__((weak, visibility("hidden"))) struct lat_schema lat_schema_##ident = {      \
        lat_zeros_##ident, 0, (count), (hash_), (name_), (text_), (bytes_), 0};
#ifdef LAT_PATCHABLE
/* Once for all schemas of a file: C++ has no tentative definitions. */
__attribute__((weak, visibility("hidden"))) struct lat_i_patch_table lat_i_patch_table_of_object;
#define LAT_I_SCHEMA_SITES(ident)                                                              \
    extern const struct lat_i_site __start_lat_sites[] __attribute__((weak, visibility("hidden"))); \
    extern const struct lat_i_site __stop_lat_sites[] __attribute__((weak, visibility("hidden")));  \
    static __attribute__((constructor(201), used)) void lat_patch_##ident(void)               \
    {                                                                                          \
        lat_i_patch_table_of_object.begin = __start_lat_sites;                                 \
        lat_i_patch_table_of_object.end = __stop_lat_sites;                                    \
        lat_i_register_sites(&lat_i_patch_table_of_object);                                    \
    }                                                                                          \
    static __attribute__((destructor(201), used)) void lat_forget_##ident(void)               \
    {                                                                                          \
        lat_i_forget_sites(&lat_i_patch_table_of_object);                                      \
    }
#else
#define LAT_I_SCHEMA_SITES(ident)
#endif
/* Weak and hidden: the header may be included in many files of one object, and
 * two objects that include it stay apart. Priority 200: before the program's
 * own constructors, which may already trace. */
#define LAT_SCHEMA_DEFINE(ident, count, hash_, name_, text_, bytes_)                          \
    LAT_I_C_BEGIN                                                                              \
    LAT_I_SCHEMA_DATA(ident, count, hash_, name_, text_, bytes_)                              \
    static __attribute__((constructor(200), used)) void lat_register_##ident(void)            \
    {                                                                                          \
        lat_register(&lat_schema_##ident);                                                     \
    }                                                                                          \
    LAT_I_SCHEMA_SITES(ident)                                                                  \
    LAT_I_C_END

/* ---- state shared by all sites ---------------------------------------- */

struct lat_i_state {
    char *rings;          /* control page of ring 0, or of a dummy that is always full */
    uint64_t ring_stride; /* 0 for the dummy */
    intptr_t rseq_offset; /* of struct rseq from the thread pointer */
    uint64_t mask;        /* what struct lat_ring says, where no other process writes it */
};
extern struct lat_i_state lat_i_state;

#define LAT_I_NESTING_LEVELS 4u
struct lat_i_thread {
    struct lat_ring *ring; /* per-thread rings: this thread's, or the dummy */
    uint32_t writer;       /* thread id once known and allowed to write; else 0. At offset 8:
                            * ring_cpu_x86_64.h */
    uint32_t pid;
    uintptr_t base;        /* per-thread rings: address of position 0 if the ring were infinite */
    struct lat_ring *nested[LAT_I_NESTING_LEVELS];
};
LAT_I_TLS struct lat_i_thread lat_i_thread;

/* ---- enabled? --------------------------------------------------------- */

static LAT_INLINE unsigned lat_i_on(const struct lat_schema *schema, uint32_t index)
{
    unsigned on = *(const volatile uint8_t *)&schema->enabled[index];
    /* Empty: keeps the compiler from holding the byte and the number in two registers. */
    __asm__("" : "+r"(on));
    return on;
}

/* LAT_SITE(schema object, event index, name): returns from the function if the
 * event is disabled, else declares `unsigned name`, its enable byte.
 *
 * With LAT_PATCHABLE a disabled site is one 5-byte instruction without effect,
 * `test $distance, %eax` (0xa9), and enabling makes it `jmp distance` (0xe9): one byte
 * changes, so it may change while other threads execute it (spec/ring-abi.md §10). */
#if defined(LAT_PATCHABLE) && defined(__x86_64__)
#define LAT_SITE(schema_, index_, on_)                                                         \
    __asm__ goto("771: .byte 0xa9\n"                                                           \
                 ".long %l[lat_i_patched] - . - 4\n"                                           \
                 ".pushsection lat_sites, \"a?\"\n"                                            \
                 ".balign 4\n"                                                                 \
                 "772: .long 771b - 772b\n"                                                    \
                 "773: .long %l[lat_i_patched] - 773b\n"                                       \
                 "774: .long " #schema_ " - 774b\n"                                            \
                 ".long %c[lat_i_index]\n"                                                     \
                 ".popsection\n"                                                               \
                 :                                                                             \
                 : [lat_i_index] "i"(index_)                                                   \
                 : "cc"                                                                        \
                 : lat_i_patched);                                                             \
    return;                                                                                    \
    lat_i_patched:;                                                                            \
    unsigned on_ = lat_i_on(&schema_, (index_));                                               \
    if (LAT_I_UNLIKELY(on_ == 0))                                                              \
    return
#else
/* The fall-through path is the disabled event, so that only four instructions lie in the code around it. An
 * enabled event jumps out of line and back, which overlaps with its clock read
 * (bench/METHODOLOGY.md). */
#define LAT_SITE(schema_, index_, on_)                                                         \
    unsigned on_ = lat_i_on(&schema_, (index_));                                               \
    if (LAT_I_LIKELY(on_ == 0))                                                                \
    return
#endif

/** Evaluates its arguments only when the event is enabled. */
#define LAT_TRACE(subsystem, event, ...)                                                       \
    do {                                                                                       \
        if (lat_##subsystem##_##event##_enabled())                                             \
            lat_##subsystem##_##event(__VA_ARGS__);                                            \
    } while (0)

/* ---- packing ---------------------------------------------------------- */

/* Places a value of `bits` width at bit offset `at` of a 64-bit word in memory
 * order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LAT_I_PACK(value, at, bits) ((uint64_t)(value) << (at))
#else
#define LAT_I_PACK(value, at, bits) ((uint64_t)(value) << (64 - (at) - (bits)))
#endif

static LAT_INLINE uint32_t lat_i_f32_bits(float value)
{
    union { float f; uint32_t u; } bits;
    bits.f = value;
    return bits.u;
}
static LAT_INLINE uint64_t lat_i_f64_bits(double value)
{
    union { double f; uint64_t u; } bits;
    bits.f = value;
    return bits.u;
}

/* ---- records that do not take the fast path ---------------------------- */

struct lat_i_piece {
    const void *data;
    size_t bytes;
};

/** Records an event from pieces; handles every case that the fast path does not. */
void lat_i_emit_pieces(uint32_t id, const struct lat_i_piece *pieces, uint32_t count,
                       size_t payload_bytes);
/** Records an event whose payload is already packed. */
void lat_i_emit_words(uint32_t id, uint32_t payload_bytes, const uint64_t *words);
/** Maximum payload of a record in the rings of this program, in bytes; 0 without rings.
 * Async-signal-safe. */
size_t lat_i_payload_most(void);
/** Passes an event to its filter and to the triggers. @return whether to record it. */
int lat_i_look(uint32_t id, unsigned on, const struct lat_i_piece *pieces, uint32_t count);
/** Like lat_i_look for an event whose payload is already packed: its bytes times 256, and `on`. One
 * number, because a fourth argument costs sites a register. */
int lat_i_look_words(uint32_t id, uint32_t bytes_and_on, const uint64_t *words);

/** Records a remark on the timeline whenever a recorder is active. NULL is "". */
void lat_mark(const char *text);
/** Whether a recorder is recording this program. Cost: two loads. */
int lat_recording(void);

/* A record of at most LAT_I_TEXT_PREFIX bytes, read in whole words, followed by a string, is written in
 * one step. */
#define LAT_I_TEXT_PREFIX 32u
#if defined(__x86_64__)
/** Per-CPU rings. `prefix` is only read. @return 0 if nothing was written: another thread wrote last, the
 * packet is nearly full, or the string is long, near the end of a page, or NULL. */
int lat_i_emit_text(uint32_t id, uint8_t *prefix, uint32_t prefix_bytes, const char *text);
#endif
/** Per-thread rings, a string of known length. @return 0 if nothing was written. */
int lat_i_emit_text_own(uint32_t id, uint8_t *prefix, uint32_t prefix_bytes, const char *text,
                        size_t length);

LAT_I_C_END

#if defined(LAT_RING_THREAD) || !(defined(__x86_64__) || defined(__aarch64__)) || \
    defined(LAT_NO_INLINE_ASM)
#include "ring_thread.h"
#elif defined(__x86_64__)
#include "ring_cpu_x86_64.h"
#else
#include "ring_cpu_aarch64.h"
#endif
#include "emit.h"
#include "build.h"

#endif
#endif
