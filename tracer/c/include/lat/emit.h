// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * lat_i_emit0 … lat_i_emit16: one event of a fixed layout, its payload packed
 * into 64-bit words. Straight-line stores: no loop, no array, no call; the ring header included
 * before this one says how a record is reserved and committed. Everything that is
 * not the common case (another thread wrote last, packet full, restarted) is
 * one call to lat_i_emit_words, out of the way. `index` and `payload_bytes` are constants.
 *
 * STORE_R wants a word in a register or an immediate, STORE_M and, after the eighth word, STORE_P take
 * it from anywhere: six registers are free even with a frame pointer, position-independent.
 *
 * Written by hand in one shape per number of words; keep them alike.
 */
#ifndef LAT_EMIT_H
#define LAT_EMIT_H

/* `size` is text, for the assembler; here the compiler folds it into a number. */
#define LAT_I_SIZE(text)                                                                       \
    (sizeof(text) == 2 ? (uint64_t)(text[0] - '0')                                             \
     : sizeof(text) == 3 ? (uint64_t)((text[0] - '0') * 10 + (text[1] - '0'))                  \
                         : (uint64_t)((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0')))

#define LAT_I_EMIT_NAMES(words_)                                                               \
    const uint32_t id = schema->base_id + index;                                               \
    const uint64_t slack = 8u * (words_) - payload_bytes

/* An event that a filter or a trigger looks at first. Its array must not be built ahead: here by a
 * barrier, on AArch64 word by word, where the compiler would load vectors for it. */
#if defined(__aarch64__)
#define LAT_I_LOOK_COLD(words) words
#else
#define LAT_I_LOOK_COLD(words) __asm__ volatile("" ::: "memory");
#endif
#define LAT_I_EMIT_HEAD(words_, cold_, ...)                                                    \
    LAT_I_EMIT_NAMES(words_);                                                                  \
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0)) {                                        \
        LAT_I_LOOK_COLD(cold_)                                                                 \
        const uint64_t looked_at[] = {__VA_ARGS__};                                            \
        if (!lat_i_look_words(id, on | payload_bytes << 8, looked_at))                         \
            return;                                                                            \
    }

/* More than eight words: on AArch64 from an array, because an asm can not take as many from anywhere;
 * elsewhere one by one, so that they are not stored twice. */
#ifdef LAT_I_FROM_ARRAY
#define LAT_I_EMIT_HEAD_P(words_, ...)                                                         \
    LAT_I_EMIT_NAMES(words_);                                                                  \
    const uint64_t words[] = {__VA_ARGS__};                                                    \
    if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) &&                                        \
        !lat_i_look_words(id, on | payload_bytes << 8, words))                                 \
        return;
#define LAT_I_EMIT_REST_P(...) lat_i_emit_words(id, payload_bytes, words);
#define LAT_I_BIG(word)
#else
/* GCC keeps a constant that is no immediate in a register, of which there are not enough for all words: such
 * a one becomes a value that can also be in memory. */
#define LAT_I_BIG(word)                                                                        \
    if (__builtin_constant_p(word) && (word) != (uint64_t)(int64_t)(int32_t)(word))            \
        __asm__("" : "+rm"(word));
#define LAT_I_EMIT_HEAD_P(words_, ...) LAT_I_EMIT_HEAD(words_, , __VA_ARGS__)
#define LAT_I_EMIT_REST_P(...)                                                                 \
    {                                                                                          \
        __asm__ volatile("" ::: "memory");                                                     \
        const uint64_t words[] = {__VA_ARGS__};                                                \
        lat_i_emit_words(id, payload_bytes, words);                                            \
    }
#endif

/* Words that are taken from anywhere, by how many words there are. */
#define LAT_I_BIG_9 LAT_I_BIG(w6) LAT_I_BIG(w7) LAT_I_BIG(w8)
#define LAT_I_BIG_10 LAT_I_BIG_9 LAT_I_BIG(w9)
#define LAT_I_BIG_11 LAT_I_BIG_10 LAT_I_BIG(w10)
#define LAT_I_BIG_12 LAT_I_BIG_11 LAT_I_BIG(w11)
#define LAT_I_BIG_13 LAT_I_BIG_12 LAT_I_BIG(w12)
#define LAT_I_BIG_14 LAT_I_BIG_13 LAT_I_BIG(w13)
#define LAT_I_BIG_15 LAT_I_BIG_14 LAT_I_BIG(w14)
#define LAT_I_BIG_16 LAT_I_BIG_15 LAT_I_BIG(w15)

/* Only here: else the compiler builds the array ahead of the event, for a call that is not made. */
#define LAT_I_COLD(word) __asm__ volatile("" : "+r"(word))
#define LAT_I_COLD_1 LAT_I_COLD(w0);
#define LAT_I_COLD_2 LAT_I_COLD_1 LAT_I_COLD(w1);
#define LAT_I_COLD_3 LAT_I_COLD_2 LAT_I_COLD(w2);
#define LAT_I_COLD_4 LAT_I_COLD_3 LAT_I_COLD(w3);
#define LAT_I_COLD_5 LAT_I_COLD_4 LAT_I_COLD(w4);
#define LAT_I_COLD_6 LAT_I_COLD_5 LAT_I_COLD(w5);
#define LAT_I_COLD_7 LAT_I_COLD_6 LAT_I_COLD(w6);
#define LAT_I_COLD_8 LAT_I_COLD_7 LAT_I_COLD(w7);

static LAT_INLINE void lat_i_emit0(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes)
{
    LAT_I_EMIT_HEAD(0u, , 0)
    LAT_I_RESERVE_STORE_COMMIT("8", LAT_I_NO_STORES, )
    {
        const uint64_t words[] = {0};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit1(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes, uint64_t w0)
{
    LAT_I_EMIT_HEAD(1u, LAT_I_COLD_1, w0)
    LAT_I_RESERVE_STORE_COMMIT(
        "16",
        LAT_I_STORE_R(0, 4104),
        LAT_I_WORD_R(0))
    {
        LAT_I_COLD(w0);
        const uint64_t words[] = {w0};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit2(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes, uint64_t w0, uint64_t w1)
{
    LAT_I_EMIT_HEAD(2u, LAT_I_COLD_2, w0, w1)
    LAT_I_RESERVE_STORE_COMMIT(
        "24",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1))
    {
        LAT_I_COLD(w0); LAT_I_COLD(w1);
        const uint64_t words[] = {w0, w1};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit3(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes, uint64_t w0, uint64_t w1, uint64_t w2)
{
    LAT_I_EMIT_HEAD(3u, LAT_I_COLD_3, w0, w1, w2)
    LAT_I_RESERVE_STORE_COMMIT(
        "32",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2))
    {
        LAT_I_COLD(w0); LAT_I_COLD(w1); LAT_I_COLD(w2);
        const uint64_t words[] = {w0, w1, w2};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit4(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3)
{
    LAT_I_EMIT_HEAD(4u, LAT_I_COLD_4, w0, w1, w2, w3)
    LAT_I_RESERVE_STORE_COMMIT(
        "40",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3))
    {
        LAT_I_COLD(w0); LAT_I_COLD(w1); LAT_I_COLD(w2); LAT_I_COLD(w3);
        const uint64_t words[] = {w0, w1, w2, w3};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit5(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4)
{
    LAT_I_EMIT_HEAD(5u, LAT_I_COLD_5, w0, w1, w2, w3, w4)
    LAT_I_RESERVE_STORE_COMMIT(
        "48",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4))
    {
        const uint64_t words[] = {w0, w1, w2, w3, w4};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit6(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5)
{
    LAT_I_EMIT_HEAD(6u, LAT_I_COLD_6, w0, w1, w2, w3, w4, w5)
    LAT_I_RESERVE_STORE_COMMIT(
        "56",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4) LAT_I_WORD_R(5))
    {
        const uint64_t words[] = {w0, w1, w2, w3, w4, w5};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit7(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6)
{
    LAT_I_EMIT_HEAD(7u, LAT_I_COLD_7, w0, w1, w2, w3, w4, w5, w6)
    LAT_I_RESERVE_STORE_COMMIT(
        "64",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_M(6, 4152),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4) LAT_I_WORD_R(5)
        LAT_I_WORD_M(6))
    {
        const uint64_t words[] = {w0, w1, w2, w3, w4, w5, w6};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit8(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7)
{
    LAT_I_EMIT_HEAD(8u, LAT_I_COLD_8, w0, w1, w2, w3, w4, w5, w6, w7)
    LAT_I_RESERVE_STORE_COMMIT(
        "72",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_M(6, 4152) LAT_I_STORE_M(7, 4160),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4) LAT_I_WORD_R(5)
        LAT_I_WORD_M(6) LAT_I_WORD_M(7))
    {
        const uint64_t words[] = {w0, w1, w2, w3, w4, w5, w6, w7};
        lat_i_emit_words(id, payload_bytes, words);
    }
}

static LAT_INLINE void lat_i_emit9(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8)
{
    LAT_I_EMIT_HEAD_P(9u, w0, w1, w2, w3, w4, w5, w6, w7, w8)
    LAT_I_BIG_9
    LAT_I_RESERVE_STORE_COMMIT(
        "80",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8)
}

static LAT_INLINE void lat_i_emit10(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9)
{
    LAT_I_EMIT_HEAD_P(10u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9)
    LAT_I_BIG_10
    LAT_I_RESERVE_STORE_COMMIT(
        "88",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9)
}

static LAT_INLINE void lat_i_emit11(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10)
{
    LAT_I_EMIT_HEAD_P(11u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10)
    LAT_I_BIG_11
    LAT_I_RESERVE_STORE_COMMIT(
        "96",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10)
}

static LAT_INLINE void lat_i_emit12(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10, uint64_t w11)
{
    LAT_I_EMIT_HEAD_P(12u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11)
    LAT_I_BIG_12
    LAT_I_RESERVE_STORE_COMMIT(
        "104",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184)
        LAT_I_STORE_P(11, 4192),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORD_P(11) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11)
}

static LAT_INLINE void lat_i_emit13(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10, uint64_t w11, uint64_t w12)
{
    LAT_I_EMIT_HEAD_P(13u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12)
    LAT_I_BIG_13
    LAT_I_RESERVE_STORE_COMMIT(
        "112",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184)
        LAT_I_STORE_P(11, 4192) LAT_I_STORE_P(12, 4200),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORD_P(11) LAT_I_WORD_P(12) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12)
}

static LAT_INLINE void lat_i_emit14(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10, uint64_t w11, uint64_t w12, uint64_t w13)
{
    LAT_I_EMIT_HEAD_P(14u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13)
    LAT_I_BIG_14
    LAT_I_RESERVE_STORE_COMMIT(
        "120",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184)
        LAT_I_STORE_P(11, 4192) LAT_I_STORE_P(12, 4200) LAT_I_STORE_P(13, 4208),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORD_P(11) LAT_I_WORD_P(12) LAT_I_WORD_P(13) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13)
}

static LAT_INLINE void lat_i_emit15(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10, uint64_t w11, uint64_t w12, uint64_t w13, uint64_t w14)
{
    LAT_I_EMIT_HEAD_P(15u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14)
    LAT_I_BIG_15
    LAT_I_RESERVE_STORE_COMMIT(
        "128",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184)
        LAT_I_STORE_P(11, 4192) LAT_I_STORE_P(12, 4200) LAT_I_STORE_P(13, 4208)
        LAT_I_STORE_P(14, 4216),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORD_P(11) LAT_I_WORD_P(12) LAT_I_WORD_P(13) LAT_I_WORD_P(14) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14)
}

static LAT_INLINE void lat_i_emit16(const struct lat_schema *schema, unsigned on, uint32_t index,
                                    uint32_t payload_bytes,
                                    uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4,
                                    uint64_t w5, uint64_t w6, uint64_t w7, uint64_t w8, uint64_t w9,
                                    uint64_t w10, uint64_t w11, uint64_t w12, uint64_t w13, uint64_t w14,
                                    uint64_t w15)
{
    LAT_I_EMIT_HEAD_P(16u, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15)
    LAT_I_BIG_16
    LAT_I_RESERVE_STORE_COMMIT(
        "136",
        LAT_I_STORE_R(0, 4104) LAT_I_STORE_R(1, 4112) LAT_I_STORE_R(2, 4120) LAT_I_STORE_R(3, 4128)
        LAT_I_STORE_R(4, 4136) LAT_I_STORE_R(5, 4144) LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160)
        LAT_I_STORE_P(8, 4168) LAT_I_STORE_P(9, 4176) LAT_I_STORE_P(10, 4184)
        LAT_I_STORE_P(11, 4192) LAT_I_STORE_P(12, 4200) LAT_I_STORE_P(13, 4208)
        LAT_I_STORE_P(14, 4216) LAT_I_STORE_P(15, 4224),
        LAT_I_WORD_R(0) LAT_I_WORD_R(1) LAT_I_WORD_R(2) LAT_I_WORD_R(3) LAT_I_WORD_R(4)
        LAT_I_WORD_R(5) LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8) LAT_I_WORD_P(9)
        LAT_I_WORD_P(10) LAT_I_WORD_P(11) LAT_I_WORD_P(12) LAT_I_WORD_P(13) LAT_I_WORD_P(14)
        LAT_I_WORD_P(15) LAT_I_WORDS_P)
    LAT_I_EMIT_REST_P(w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15)
}

#endif
