// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records whose length is known only at run time: strings, bytes, sequences.
 * A builder collects the addresses of the pieces; numbers and padding are gathered in a
 * small scratch buffer, long data is copied once, straight into the ring.
 * Cost: about 30 cycles more than a fixed event, plus the copy. Stack: 900 bytes.
 *
 * The usual event, a few numbers followed by a string, needs no builder (lat_i_emit_string).
 */
#ifndef LAT_BUILD_H
#define LAT_BUILD_H

#include <string.h>

#define LAT_I_BUILD_PUTS 16u /* a schema allows 16 fields */
/* Every put adds at most one piece of scratch and one of external data; one NUL or number may follow. */
#define LAT_I_BUILD_PIECES (2u * LAT_I_BUILD_PUTS + 1u)
/* Per put at most 7 bytes of padding, a 4-byte length, 4 bytes of padding before 8-byte elements,
 * or 8 bytes of number. */
#define LAT_I_BUILD_SCRATCH (LAT_I_BUILD_PUTS * 16u)

struct lat_i_build {
    size_t bytes; /* payload so far */
    uint32_t piece_count;
    uint32_t scratch_used;
    struct lat_i_piece pieces[LAT_I_BUILD_PIECES];
    uint8_t scratch[LAT_I_BUILD_SCRATCH];
};

static inline void lat_i_build_init(struct lat_i_build *build)
{
    build->bytes = 0;
    build->piece_count = 0;
    build->scratch_used = 0;
}

static inline void lat_i_add_piece(struct lat_i_build *build, const void *data, size_t bytes)
{
    build->pieces[build->piece_count].data = data;
    build->pieces[build->piece_count].bytes = bytes;
    build->piece_count++;
    build->bytes += bytes;
}

/* Allocates `bytes` of scratch, extending the last piece if it is adjacent. */
static inline uint8_t *lat_i_put_scratch(struct lat_i_build *build, uint32_t bytes)
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

static inline void lat_i_put_foreign(struct lat_i_build *build, const void *data, size_t bytes)
{
    if (bytes != 0)
        lat_i_add_piece(build, data, bytes);
}

static inline void lat_i_put_align(struct lat_i_build *build, size_t align)
{
    const uint32_t pad = (uint32_t)(-build->bytes & (align - 1));
    if (pad != 0)
        memset(lat_i_put_scratch(build, pad), 0, pad);
}

static inline void lat_i_put_u8(struct lat_i_build *build, uint8_t value)
{
    *lat_i_put_scratch(build, 1) = value;
}
static inline void lat_i_put_u16(struct lat_i_build *build, uint16_t value)
{
    lat_i_put_align(build, 2);
    memcpy(lat_i_put_scratch(build, 2), &value, 2);
}
static inline void lat_i_put_u32(struct lat_i_build *build, uint32_t value)
{
    lat_i_put_align(build, 4);
    memcpy(lat_i_put_scratch(build, 4), &value, 4);
}
static inline void lat_i_put_u64(struct lat_i_build *build, uint64_t value)
{
    lat_i_put_align(build, 8);
    memcpy(lat_i_put_scratch(build, 8), &value, 8);
}

/** Appends a NUL-terminated string; NULL is recorded as "". */
static inline void lat_i_put_string(struct lat_i_build *build, const char *text)
{
    if (text != NULL)
        lat_i_put_foreign(build, text, strlen(text));
    lat_i_put_u8(build, 0);
}
/** Appends `count` elements without a count. */
static inline void lat_i_put_array(struct lat_i_build *build, const void *data, size_t count,
                                   size_t element_bytes)
{
    lat_i_put_align(build, element_bytes);
    lat_i_put_foreign(build, data, count * element_bytes);
}
/** Appends a 32-bit count, then the elements. NULL is an empty sequence. */
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

/** Records the collected payload under the event id of the area. */
static inline void lat_i_build_emit_id(uint32_t id, unsigned on, struct lat_i_build *build)
{
    const struct lat_i_piece *pieces = build->pieces;
    __asm__("" : "+r"(pieces)); /* empty: suppresses a warning about unwritten pieces */
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) &&
        !lat_i_look(id, on, pieces, build->piece_count))
        return;
    lat_i_emit_pieces(id, pieces, build->piece_count, build->bytes);
}

static inline void lat_i_build_emit(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    struct lat_i_build *build)
{
    lat_i_build_emit_id(schema->base_id + index, on, build);
}

/* ---- few numbers and a string -------------------------------------------- */

#ifdef LAT_RING_THREAD_H
static LAT_INLINE int lat_i_text(uint32_t id, uint8_t *prefix, uint32_t bytes, const char *text)
{
    return text != NULL && lat_i_emit_text_own(id, prefix, bytes, text, strlen(text));
}
#elif defined(__x86_64__)
static LAT_INLINE int lat_i_text(uint32_t id, uint8_t *prefix, uint32_t bytes, const char *text)
{
    return lat_i_emit_text(id, prefix, bytes, text);
}
#else
static LAT_INLINE int lat_i_text(uint32_t id, uint8_t *prefix, uint32_t bytes, const char *text)
{
    (void)id, (void)prefix, (void)bytes, (void)text;
    return 0;
}
#endif

/* Like lat_i_rareN. NULL is recorded as "". */
LAT_I_RARE void lat_i_rare_text(uint32_t id, uint32_t bytes_and_on, uint8_t *prefix,
                                const char *text)
{
    const unsigned on = bytes_and_on & 0xffu;
    const size_t bytes = bytes_and_on >> 8, length = text != NULL ? strlen(text) : 0;
    const struct lat_i_piece pieces[] = {{prefix, bytes}, {text, length}, {"", 1}};
    if ((on & LAT_ENABLE_WATCH) == 0 || lat_i_look(id, on, pieces, 3))
        lat_i_emit_pieces(id, pieces, 3, bytes + length + 1);
}

static LAT_INLINE void lat_i_emit_prefix(uint32_t id, unsigned on, uint8_t *prefix, uint32_t bytes,
                                         const char *text)
{
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) ||
        LAT_I_UNLIKELY(!lat_i_text(id, prefix, bytes, text)))
        lat_i_rare_text(id, on | bytes << 8, prefix, text);
}

/* The numbers are packed into the words at the end, of which there is at least one. */
#define lat_i_emit_string(schema_, on_, index_, bytes_, text_, ...)                            \
    do {                                                                                       \
        uint64_t lat_words[] = {__VA_ARGS__};                                                  \
        lat_i_emit_prefix((schema_)->base_id + (index_), (on_), (uint8_t *)lat_words, (bytes_), \
                          (text_));                                                            \
    } while (0)

#endif
