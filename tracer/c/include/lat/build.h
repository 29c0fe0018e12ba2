// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records whose length is known only at run time: strings, bytes, sequences.
 * A builder collects where the pieces lie; numbers and padding are gathered in a
 * small scratch, long data is copied once, straight into the ring.
 *
 * In rings per CPU a string is taken in only when something follows it: the usual event, few numbers
 * and a string at last, needs neither its length nor pieces (lat_i_emit_text).
 *
 * Cost: some 10 cycles over a fixed event for such an event, else some 30, plus the copy. Stack: 900
 * bytes.
 */
#ifndef LAT_BUILD_H
#define LAT_BUILD_H

#include <string.h>

#define LAT_I_BUILD_PUTS 16u /* a schema allows 16 fields */
/* Every put adds at most one piece of scratch and one of foreign data, and one NUL or number may follow. */
#define LAT_I_BUILD_PIECES (2u * LAT_I_BUILD_PUTS + 1u)
/* Per put at most 7 bytes of padding, a 4-byte length, 4 bytes of padding before 8-byte elements,
 * or 8 bytes of number. */
#define LAT_I_BUILD_SCRATCH (LAT_I_BUILD_PUTS * 16u)

/* Whether a string is written by lat_i_emit_text: only then it waits for what follows it. */
#if defined(LAT_I_TEXT_PREFIX) && !defined(LAT_RING_THREAD) && !defined(LAT_NO_INLINE_ASM)
#define LAT_I_TEXT_LAST 1
#define LAT_I_HAS_TEXT(build) ((build)->has_text)
#define LAT_I_BUILD_INLINE LAT_INLINE
#else
#define LAT_I_HAS_TEXT(build) 0
#define LAT_I_BUILD_INLINE inline
#endif

struct lat_i_build {
    size_t bytes; /* payload so far */
    uint32_t piece_count;
    uint32_t scratch_used;
    int has_text;     /* `text` comes next */
    const char *text;
    struct lat_i_piece pieces[LAT_I_BUILD_PIECES];
    uint8_t scratch[LAT_I_BUILD_SCRATCH];
};

static LAT_I_BUILD_INLINE void lat_i_build_init(struct lat_i_build *build)
{
    build->has_text = 0;
    build->bytes = 0;
    build->piece_count = 0;
    build->scratch_used = 0;
}

static LAT_I_BUILD_INLINE void lat_i_add_piece(struct lat_i_build *build, const void *data, size_t bytes)
{
    build->pieces[build->piece_count].data = data;
    build->pieces[build->piece_count].bytes = bytes;
    build->piece_count++;
    build->bytes += bytes;
}

/* `bytes` of scratch, extending the last piece where that is its neighbour. */
static LAT_I_BUILD_INLINE uint8_t *lat_i_add_scratch(struct lat_i_build *build, uint32_t bytes)
{
    uint8_t *place = build->scratch + build->scratch_used;
    build->scratch_used += bytes;
    if (build->piece_count != 0) {
        struct lat_i_piece *last = &build->pieces[build->piece_count - 1];
        if ((const uint8_t *)last->data + last->bytes == place) {
            last->bytes += bytes;
            build->bytes += bytes;
            return place;
        }
    }
    lat_i_add_piece(build, place, bytes);
    return place;
}

/* Takes in the string that was put last. */
static inline void lat_i_build_text(struct lat_i_build *build)
{
    const size_t length = strlen(build->text);
    build->has_text = 0;
    if (length != 0)
        lat_i_add_piece(build, build->text, length);
    *lat_i_add_scratch(build, 1) = 0;
}

static LAT_I_BUILD_INLINE void lat_i_put_foreign(struct lat_i_build *build, const void *data, size_t bytes)
{
    if (LAT_I_HAS_TEXT(build))
        lat_i_build_text(build);
    if (bytes != 0)
        lat_i_add_piece(build, data, bytes);
}
static LAT_I_BUILD_INLINE uint8_t *lat_i_put_scratch(struct lat_i_build *build, uint32_t bytes)
{
    if (LAT_I_HAS_TEXT(build))
        lat_i_build_text(build);
    return lat_i_add_scratch(build, bytes);
}

static LAT_I_BUILD_INLINE void lat_i_put_align(struct lat_i_build *build, size_t align)
{
    if (LAT_I_HAS_TEXT(build))
        lat_i_build_text(build);
    const uint32_t pad = (uint32_t)(-build->bytes & (align - 1));
    if (pad != 0)
        memset(lat_i_put_scratch(build, pad), 0, pad);
}

static LAT_I_BUILD_INLINE void lat_i_put_u8(struct lat_i_build *build, uint8_t value)
{
    *lat_i_put_scratch(build, 1) = value;
}
static LAT_I_BUILD_INLINE void lat_i_put_u16(struct lat_i_build *build, uint16_t value)
{
    lat_i_put_align(build, 2);
    memcpy(lat_i_put_scratch(build, 2), &value, 2);
}
static LAT_I_BUILD_INLINE void lat_i_put_u32(struct lat_i_build *build, uint32_t value)
{
    lat_i_put_align(build, 4);
    memcpy(lat_i_put_scratch(build, 4), &value, 4);
}
static LAT_I_BUILD_INLINE void lat_i_put_u64(struct lat_i_build *build, uint64_t value)
{
    lat_i_put_align(build, 8);
    memcpy(lat_i_put_scratch(build, 8), &value, 8);
}

/** A NUL-terminated string; NULL is recorded as "". */
static LAT_I_BUILD_INLINE void lat_i_put_string(struct lat_i_build *build, const char *text)
{
    if (LAT_I_HAS_TEXT(build))
        lat_i_build_text(build);
#ifdef LAT_I_TEXT_LAST
    build->text = text != NULL ? text : "";
    build->has_text = 1;
#else
    if (text != NULL)
        lat_i_put_foreign(build, text, strlen(text));
    lat_i_put_u8(build, 0);
#endif
}
/** `count` elements without a count. */
static inline void lat_i_put_array(struct lat_i_build *build, const void *data, size_t count,
                                   size_t element_bytes)
{
    lat_i_put_align(build, element_bytes);
    lat_i_put_foreign(build, data, count * element_bytes);
}
/** A 32-bit count, then the elements. NULL is an empty sequence. */
static inline void lat_i_put_sequence(struct lat_i_build *build, const void *data, size_t count,
                                      size_t element_bytes)
{
    if (data == NULL)
        count = 0;
    if (count > UINT32_MAX / 8u)
        count = UINT32_MAX / 8u; /* longer than any packet: counted as too_big */
    lat_i_put_u32(build, (uint32_t)count);
    lat_i_put_align(build, element_bytes);
    lat_i_put_foreign(build, data, count * element_bytes);
}
static inline void lat_i_put_bytes(struct lat_i_build *build, const void *data, size_t bytes)
{
    lat_i_put_sequence(build, data, bytes, 1);
}

/** Records what was collected under the event id of the area. */
static LAT_I_BUILD_INLINE void lat_i_build_emit_id(uint32_t id, unsigned on, struct lat_i_build *build)
{
    if (LAT_I_HAS_TEXT(build)) {
#ifdef LAT_I_TEXT_LAST
        /* Only numbers before it, which then lie one after the other in the scratch. */
        if (LAT_I_LIKELY((on & LAT_ENABLE_WATCH) == 0) && build->bytes == build->scratch_used &&
            build->bytes <= LAT_I_TEXT_PREFIX &&
            LAT_I_LIKELY(lat_i_emit_text(id, build->scratch, build->scratch_used, build->text)))
            return;
#endif
        lat_i_build_text(build);
    }
    const struct lat_i_piece *pieces = build->pieces;
    __asm__("" : "+r"(pieces)); /* nothing: of no pieces, compilers warn that none is written */
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) &&
        !lat_i_look(id, on, pieces, build->piece_count))
        return;
    lat_i_emit_pieces(id, pieces, build->piece_count, build->bytes);
}

static LAT_I_BUILD_INLINE void lat_i_build_emit(const struct lat_schema *schema, unsigned on,
                                                uint32_t index, struct lat_i_build *build)
{
    lat_i_build_emit_id(schema->base_id + index, on, build);
}

#endif
