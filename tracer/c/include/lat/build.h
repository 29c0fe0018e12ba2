// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records whose length is known only at run time: strings, bytes, sequences.
 * A builder collects where the pieces lie; numbers and padding are gathered in a
 * small scratch, long data is copied once, straight into the ring.
 *
 * Cost: some 30 cycles over a fixed event, plus the copy. Stack: 900 bytes.
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

static inline void lat_i_put_foreign(struct lat_i_build *build, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    build->pieces[build->piece_count].data = data;
    build->pieces[build->piece_count].bytes = bytes;
    build->piece_count++;
    build->bytes += bytes;
}

/* `bytes` of scratch, extending the last piece where that is its neighbour. */
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
    lat_i_put_foreign(build, place, bytes);
    return place;
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

/** A NUL-terminated string; NULL is recorded as "". */
static inline void lat_i_put_string(struct lat_i_build *build, const char *text)
{
    if (text != NULL)
        lat_i_put_foreign(build, text, strlen(text));
    lat_i_put_u8(build, 0);
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
static inline void lat_i_build_emit_id(uint32_t id, unsigned on, const struct lat_i_build *build)
{
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) &&
        !lat_i_look(id, on, build->pieces, build->piece_count))
        return;
    lat_i_emit_pieces(id, build->pieces, build->piece_count, build->bytes);
}

static inline void lat_i_build_emit(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    const struct lat_i_build *build)
{
    lat_i_build_emit_id(schema->base_id + index, on, build);
}

#endif
