// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The tracer of programs without an operating system, over the small area
 * (spec/small-area.md). Compile with LAT_SMALL defined, and headers that pleco generates record
 * here; link small/small.c; say in one header of your own, "lat_port.h" (or whatever
 * LAT_PORT_HEADER names), what the machine has. ports/README.md is the guide for porters.
 *
 *   LAT_PORT_CORES            how many cores record, a constant
 *   LAT_PORT_AREA             address of the area's memory, a multiple of 8, a constant expression
 *   LAT_PORT_CLOCK_BITS       32 or 64
 *   LAT_PORT_CLOCK_HZ         its ticks per second, 0 if unknown
 *   lat_port_clock()          the clock: uint32_t or uint64_t
 *   lat_port_core()           number of this core, below LAT_PORT_CORES (only where that is not 1)
 *   lat_port_context()        who runs: a number that no other thread or interrupt of any core has; 0
 *                             is recorded as 1, since thread 0 of a trace is an idle processor
 *   lat_port_process()        of which process that is, 1 to 2^31; only where LAT_PORT_PROCESSES is defined,
 *                             else it is 1: the program
 *   lat_port_mask_t, lat_port_mask(), lat_port_unmask(before)
 *                             masks the interrupts of this core, and restores what was before
 *
 * Includes only freestanding headers. Context of lat_… functions unless said otherwise: thread or
 * any interrupt, before set-up too. Interrupts stay masked for the length of a record.
 */
#ifndef LAT_SMALL_H
#define LAT_SMALL_H

#include <stddef.h>
#include <stdint.h>

#include "small_abi.h"

#ifdef __cplusplus
#define LAT_I_C_BEGIN extern "C" {
#define LAT_I_C_END }
#else
#define LAT_I_C_BEGIN
#define LAT_I_C_END
#endif

#ifndef LAT_INLINE
#define LAT_INLINE __attribute__((always_inline)) inline
#endif
#define LAT_I_LIKELY(x) __builtin_expect(!!(x), 1)
#define LAT_I_UNLIKELY(x) __builtin_expect(!!(x), 0)

LAT_I_C_BEGIN

/* ---- set-up ------------------------------------------------------------ */

/** A schema in the image; made by the generated header. */
struct lat_schema {
    uint64_t hash;
    const char *text;   /* canonical pleco text */
    uint16_t *events;   /* id of the first event, then the switch of each: its id, or 0 for off */
    uint32_t text_bytes;
    uint32_t event_count;
};

/** The schema of the generated header of `schema IDENT;`, for the list of lat_small_setup. */
#define LAT_SCHEMA(ident) (&lat_image_##ident)

struct lat_small_setup {
    uint32_t area_bytes;       /* how much memory there is at LAT_PORT_AREA */
    uint32_t packet_bytes;     /* power of two, 256 to 32768 */
    uint32_t packets_per_ring; /* power of two, 2 to 65536 */
    uint32_t mode;             /* LAT_SMALL_MODE_DISCARD or LAT_SMALL_MODE_OVERWRITE */
    const struct lat_schema *const *schemas;
    uint32_t schema_count;
};

enum lat_small_error {
    LAT_SMALL_OK = 0,
    LAT_SMALL_MISALIGNED = 1,   /* LAT_PORT_AREA is no multiple of 8 */
    LAT_SMALL_PACKET_BYTES = 2, /* 0, no power of two, or out of range */
    LAT_SMALL_PACKETS = 3,      /* packets_per_ring: the same */
    LAT_SMALL_MODE = 4,         /* unknown */
    LAT_SMALL_TOO_SMALL = 5,    /* area_bytes; lat_small_bytes says what it takes */
    LAT_SMALL_SCHEMAS = 6       /* more events than ids */
};

/**
 * Makes the area. Relies on nothing that its memory holds. All events are off afterwards.
 * Context: one core, before others record.
 * @return LAT_SMALL_OK, or why nothing will ever be recorded; the memory is unchanged then.
 */
enum lat_small_error lat_small_init(const struct lat_small_setup *setup);

/** Bytes of an area with this geometry; 0 if there is none. */
uint32_t lat_small_bytes(uint32_t packet_bytes, uint32_t packets_per_ring, uint32_t schema_count);

/**
 * Bytes of the area that the program before a reset left at LAT_PORT_AREA; 0 if there is none
 * that is whole. Context: before lat_small_init, which overwrites it.
 */
uint32_t lat_small_left(uint32_t area_bytes);

/** Switches an event of a schema by its index, or all with LAT_SMALL_ALL. */
#define LAT_SMALL_ALL 0xffffffffu
void lat_small_enable(const struct lat_schema *schema, uint32_t index, int on);

/* ---- while it runs ------------------------------------------------------ */

/** Clocks of 32 bits: each core calls it at least once in 2^30 ticks. Others need not. */
void lat_small_keep_time(void);

/** Says who this context is: a record that names it. */
void lat_small_name(const char *name);

/** Says what a process is called. Only for ports with LAT_PORT_PROCESSES. */
void lat_small_name_process(uint32_t process, const char *name);

/** A remark on the timeline. */
void lat_mark(const char *text);

/** Closes the open packet of this core: the next event opens one. */
void lat_small_close(void);

/**
 * The oldest closed packet of a core that was not given back, NULL if there is none; discard mode
 * only. `bytes` gets its length. Context: one reader for each core, anywhere.
 */
const struct lat_small_packet *lat_small_take(uint32_t core, uint32_t *bytes);
/** Gives the packet of lat_small_take back: it may be reused. */
void lat_small_give_back(uint32_t core);

/* ---- what generated headers use ------------------------------------------- */

/* One block of memory per schema: the id of its first event, then the switch of each event, which
 * is its id while it is recorded and 0 while it is not: what a site tests is what it passes on.
 * Weak and hidden: the header may be included in many files. */
/* With LAT_SMALL_WITHOUT_TEXTS the image has the hashes of schemas only, and who reads needs their files. */
#ifdef LAT_SMALL_WITHOUT_TEXTS
#define LAT_I_TEXT(text_) ((const char *)0)
#define LAT_I_TEXT_BYTES(bytes_) 0u
#else
#define LAT_I_TEXT(text_) (text_)
#define LAT_I_TEXT_BYTES(bytes_) (bytes_)
#endif
#define LAT_SCHEMA_DEFINE(ident, count, hash_, name_, text_, bytes_)                           \
    LAT_I_C_BEGIN                                                                               \
    __attribute__((weak, visibility("hidden"))) uint16_t lat_schema_##ident[1u + (count)];  \
    extern __attribute__((weak, visibility("hidden"))) const struct lat_schema lat_image_##ident; \
    const struct lat_schema lat_image_##ident = {                                               \
        (hash_), LAT_I_TEXT(text_), lat_schema_##ident, LAT_I_TEXT_BYTES(bytes_), (count)};     \
    LAT_I_C_END

/* Functions of events: not inlined at each call, because code is scarcer than time here. */
#define LAT_EVENT static inline
#define LAT_I_APART static inline

static LAT_INLINE unsigned lat_i_on(const void *events, uint32_t index)
{
    return ((const volatile uint16_t *)events)[1u + index];
}

#define LAT_SITE(schema_, index_, on_)                                                          \
    const unsigned on_ = lat_i_on(&schema_, (index_));                                          \
    if (LAT_I_LIKELY(on_ == 0))                                                                 \
    return

/** Evaluates its arguments only when the event is enabled. */
#define LAT_TRACE(subsystem, event, ...)                                                        \
    do {                                                                                        \
        if (lat_##subsystem##_##event##_enabled())                                              \
            lat_##subsystem##_##event(__VA_ARGS__);                                             \
    } while (0)

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

/* Out of line: code is scarcer than time here. `id` is what lat_i_on gave; it comes last, so that
 * arguments stay in the registers they came in. */
void lat_i_small_0(uint32_t id);
/* One word of which the upper 32 bits in memory have no field; they keep what the ring had there. */
void lat_i_small_half(uint32_t first, uint32_t id);
void lat_i_small_1(uint64_t w0, uint32_t id);
void lat_i_small_2(uint64_t w0, uint64_t w1, uint32_t id);
/* Cost: some instructions a word more than those. */
void lat_i_small_words(const uint64_t *words, uint32_t count, uint32_t id);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LAT_I_FIRST_HALF(word) ((uint32_t)(word))
#else
#define LAT_I_FIRST_HALF(word) ((uint32_t)((word) >> 32))
#endif

/* `&lat_schema` is an array's address here and not used: the switch has the id already. */
#define lat_i_emit0(schema_, on_, index_, bytes_) lat_i_small_0(on_)
#define lat_i_emit1(schema_, on_, index_, bytes_, w0_)                                          \
    ((bytes_) <= 4u ? lat_i_small_half(LAT_I_FIRST_HALF(w0_), (on_)) : lat_i_small_1((w0_), (on_)))
#define lat_i_emit2(schema_, on_, index_, bytes_, w0_, w1_) lat_i_small_2((w0_), (w1_), (on_))
#define LAT_I_SMALL_WORDS(count_, on_, ...)                                                     \
    do {                                                                                        \
        const uint64_t lat_words[] = {__VA_ARGS__};                                             \
        lat_i_small_words(lat_words, (count_), (on_));                                          \
    } while (0)
#define lat_i_emit3(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(3u, on_, __VA_ARGS__)
#define lat_i_emit4(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(4u, on_, __VA_ARGS__)
#define lat_i_emit5(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(5u, on_, __VA_ARGS__)
#define lat_i_emit6(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(6u, on_, __VA_ARGS__)
#define lat_i_emit7(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(7u, on_, __VA_ARGS__)
#define lat_i_emit8(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(8u, on_, __VA_ARGS__)
#define lat_i_emit9(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(9u, on_, __VA_ARGS__)
#define lat_i_emit10(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(10u, on_, __VA_ARGS__)
#define lat_i_emit11(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(11u, on_, __VA_ARGS__)
#define lat_i_emit12(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(12u, on_, __VA_ARGS__)
#define lat_i_emit13(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(13u, on_, __VA_ARGS__)
#define lat_i_emit14(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(14u, on_, __VA_ARGS__)
#define lat_i_emit15(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(15u, on_, __VA_ARGS__)
#define lat_i_emit16(s_, on_, i_, b_, ...) LAT_I_SMALL_WORDS(16u, on_, __VA_ARGS__)

/* Strings, bytes and sequences: collected on the stack, then recorded as words. What is longer
 * is counted in lost_too_big. */
#ifndef LAT_SMALL_BUILD_BYTES
#define LAT_SMALL_BUILD_BYTES 128u
#endif

struct lat_i_build {
    uint32_t bytes;    /* what it takes, also if there is no room */
    uint32_t reserved; /* the payload begins at a multiple of 8 */
    uint64_t words[LAT_SMALL_BUILD_BYTES / 8u];
};

static inline void lat_i_build_init(struct lat_i_build *build)
{
    build->bytes = 0;
}
/* `bytes` of `data` at the next multiple of `align`; padding is zero. */
void lat_i_small_put(struct lat_i_build *build, const void *data, uint32_t bytes, uint32_t align);
void lat_i_small_put_text(struct lat_i_build *build, const char *text);
void lat_i_small_built(struct lat_i_build *build, uint32_t id);

static inline void lat_i_put_u8(struct lat_i_build *build, uint8_t value)
{
    lat_i_small_put(build, &value, 1u, 1u);
}
static inline void lat_i_put_u16(struct lat_i_build *build, uint16_t value)
{
    lat_i_small_put(build, &value, 2u, 2u);
}
static inline void lat_i_put_u32(struct lat_i_build *build, uint32_t value)
{
    lat_i_small_put(build, &value, 4u, 4u);
}
static inline void lat_i_put_u64(struct lat_i_build *build, uint64_t value)
{
    lat_i_small_put(build, &value, 8u, 8u);
}
/** A NUL-terminated string; NULL is recorded as "". */
static inline void lat_i_put_string(struct lat_i_build *build, const char *text)
{
    lat_i_small_put_text(build, text);
}
static inline void lat_i_put_array(struct lat_i_build *build, const void *data, uint32_t count,
                                   uint32_t element_bytes)
{
    /* Longer than any packet: counted. */
    const uint32_t most = LAT_SMALL_PACKET_BYTES_MAX;
    lat_i_small_put(build, data, count > most ? most : count * element_bytes, element_bytes);
}
/** A 32-bit count, then the elements. NULL is an empty sequence. */
static inline void lat_i_put_sequence(struct lat_i_build *build, const void *data, uint32_t count,
                                      uint32_t element_bytes)
{
    if (data == NULL)
        count = 0;
    lat_i_put_u32(build, count);
    lat_i_put_array(build, data, count, element_bytes);
}
static inline void lat_i_put_bytes(struct lat_i_build *build, const void *data, uint32_t bytes)
{
    lat_i_put_sequence(build, data, bytes, 1u);
}

#define lat_i_build_emit(schema_, on_, index_, build_) lat_i_small_built((build_), (on_))
#define lat_i_emit_string(schema_, on_, index_, bytes_, text_, ...)                             \
    do {                                                                                        \
        const uint64_t lat_words[] = {__VA_ARGS__};                                             \
        struct lat_i_build lat_build;                                                           \
        lat_i_build_init(&lat_build);                                                           \
        lat_i_small_put(&lat_build, lat_words, (bytes_), 1u);                                   \
        lat_i_small_put_text(&lat_build, (text_));                                              \
        lat_i_small_built(&lat_build, (on_));                                                   \
    } while (0)

LAT_I_C_END

#endif
