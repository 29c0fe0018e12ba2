// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What generated headers need of the tracer, for tests: events are printed, a
 * line each, as "INDEX PAYLOAD-BYTES HEX", instead of recorded.
 */
#ifndef LAT_LAT_H
#define LAT_LAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct lat_schema {
    unsigned count;
    uint64_t hash;
    const char *name;
    const char *text;
    unsigned text_bytes;
};

#define LAT_SCHEMA_DEFINE(ident, count, hash, name, text, text_bytes)                         \
    __attribute__((weak, visibility("hidden"))) struct lat_schema lat_schema_##ident = {      \
        (count), (hash), (name), (text), (text_bytes)};

#define LAT_EVENT static inline
#define LAT_I_APART static inline

/* Everything is enabled; the mark 7 must arrive in the emit functions. */
static inline unsigned lat_i_on(const struct lat_schema *schema, uint32_t index)
{
    return index < schema->count ? 7u : 0u;
}

#define LAT_SITE(schema, index, on)                                                           \
    unsigned on = lat_i_on(&schema, (index));                                                 \
    if (on == 0)                                                                              \
    return

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LAT_I_PACK(value, at, bits) ((uint64_t)(value) << (at))
#else
#define LAT_I_PACK(value, at, bits) ((uint64_t)(value) << (64 - (at) - (bits)))
#endif

static inline uint32_t lat_i_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline uint64_t lat_i_f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static inline void lat_test_show(unsigned on, uint32_t index, const void *payload, size_t bytes)
{
    size_t i;
    printf("%u %u ", index, (unsigned)bytes);
    for (i = 0; i < bytes; i++)
        printf("%02x", ((const unsigned char *)payload)[i]);
    printf(on == 7u ? "\n" : " wrong enable byte\n");
}

#define LAT_TEST_PARAMETERS const struct lat_schema *schema, unsigned on, uint32_t index, uint32_t bytes
#define LAT_TEST_EMIT(count, ...)                                                             \
    {                                                                                         \
        const uint64_t words[] = {__VA_ARGS__};                                               \
        (void)schema;                                                                         \
        if ((bytes + 7u) / 8u != (count))                                                     \
            printf("%u words for %u bytes\n", (unsigned)(count), bytes);                      \
        lat_test_show(on, index, words, bytes);                                               \
    }
#define W(n) uint64_t w##n
static inline void lat_i_emit0(LAT_TEST_PARAMETERS) LAT_TEST_EMIT(0u, 0)
static inline void lat_i_emit1(LAT_TEST_PARAMETERS, W(0)) LAT_TEST_EMIT(1u, w0)
static inline void lat_i_emit2(LAT_TEST_PARAMETERS, W(0), W(1)) LAT_TEST_EMIT(2u, w0, w1)
static inline void lat_i_emit3(LAT_TEST_PARAMETERS, W(0), W(1), W(2))
    LAT_TEST_EMIT(3u, w0, w1, w2)
static inline void lat_i_emit4(LAT_TEST_PARAMETERS, W(0), W(1), W(2), W(3))
    LAT_TEST_EMIT(4u, w0, w1, w2, w3)
static inline void lat_i_emit16(LAT_TEST_PARAMETERS, W(0), W(1), W(2), W(3), W(4), W(5), W(6),
                                W(7), W(8), W(9), W(10), W(11), W(12), W(13), W(14), W(15))
    LAT_TEST_EMIT(16u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15)
#undef W

struct lat_i_build {
    size_t used;
    unsigned char bytes[4096];
};

static inline void lat_i_build_init(struct lat_i_build *build)
{
    memset(build, 0, sizeof *build);
}

static inline void lat_test_put(struct lat_i_build *build, const void *data, size_t bytes,
                                size_t alignment)
{
    build->used = (build->used + alignment - 1) / alignment * alignment;
    if (bytes != 0)
        memcpy(build->bytes + build->used, data, bytes);
    build->used += bytes;
}

static inline void lat_i_put_u8(struct lat_i_build *build, uint8_t value)
{
    lat_test_put(build, &value, 1, 1);
}
static inline void lat_i_put_u16(struct lat_i_build *build, uint16_t value)
{
    lat_test_put(build, &value, 2, 2);
}
static inline void lat_i_put_u32(struct lat_i_build *build, uint32_t value)
{
    lat_test_put(build, &value, 4, 4);
}
static inline void lat_i_put_u64(struct lat_i_build *build, uint64_t value)
{
    lat_test_put(build, &value, 8, 8);
}
static inline void lat_i_put_string(struct lat_i_build *build, const char *text)
{
    text = text == NULL ? "" : text;
    lat_test_put(build, text, strlen(text) + 1, 1);
}
static inline void lat_i_put_array(struct lat_i_build *build, const void *data, uint32_t count,
                                   uint32_t element_bytes)
{
    lat_test_put(build, data, (size_t)count * element_bytes, element_bytes);
}
static inline void lat_i_put_sequence(struct lat_i_build *build, const void *data,
                                      uint32_t count, uint32_t element_bytes)
{
    lat_i_put_u32(build, count);
    lat_i_put_array(build, data, count, element_bytes);
}
static inline void lat_i_put_bytes(struct lat_i_build *build, const void *data, uint32_t bytes)
{
    lat_i_put_sequence(build, data, bytes, 1);
}
static inline void lat_i_build_emit(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    const struct lat_i_build *build)
{
    (void)schema;
    lat_test_show(on, index, build->bytes, build->used);
}
#define lat_i_emit_string(schema, on, index, prefix_bytes, text, ...)                         \
    do {                                                                                      \
        const uint64_t prefix[] = {__VA_ARGS__};                                              \
        struct lat_i_build test_build;                                                        \
        lat_i_build_init(&test_build);                                                        \
        lat_test_put(&test_build, prefix, prefix_bytes, 1);                                   \
        lat_i_put_string(&test_build, text);                                                  \
        lat_i_build_emit(schema, on, index, &test_build);                                     \
    } while (0)

#endif
