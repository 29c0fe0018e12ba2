// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * lat_i_emit0 … lat_i_emit16: one event of a fixed layout, its payload packed
 * into 64-bit words. Straight-line stores: no loop, no array, no call; the ring header included
 * before this one defines how a record is reserved and committed. `index` and `payload_bytes` are
 * constants.
 *
 * All of this is inlined at the call site of the event. Every uncommon case (another
 * thread wrote last, packet full, restarted, a filter or a trigger applies) is one call of
 * lat_i_rareN, one function for each number of words and file, which keeps the code at each site small.
 *
 * STORE_R needs a word in a register or an immediate; STORE_M and, after the eighth word, STORE_P accept
 * any operand: six registers are free even with a frame pointer in position-independent code.
 */
#ifndef LAT_EMIT_H
#define LAT_EMIT_H

/* `size` is text for the assembler; here the compiler folds it into a number. */
#define LAT_I_SIZE(text)                                                                       \
    (sizeof(text) == 2 ? (uint64_t)(text[0] - '0')                                             \
     : sizeof(text) == 3 ? (uint64_t)((text[0] - '0') * 10 + (text[1] - '0'))                  \
                         : (uint64_t)((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0')))

/* Words as parameters, as values of an array, and as arguments; the latter with a leading comma. */
#define LAT_I_PARAMETERS_0
#define LAT_I_PARAMETERS_1 , uint64_t w0
#define LAT_I_PARAMETERS_2 LAT_I_PARAMETERS_1, uint64_t w1
#define LAT_I_PARAMETERS_3 LAT_I_PARAMETERS_2, uint64_t w2
#define LAT_I_PARAMETERS_4 LAT_I_PARAMETERS_3, uint64_t w3
#define LAT_I_PARAMETERS_5 LAT_I_PARAMETERS_4, uint64_t w4
#define LAT_I_PARAMETERS_6 LAT_I_PARAMETERS_5, uint64_t w5
#define LAT_I_PARAMETERS_7 LAT_I_PARAMETERS_6, uint64_t w6
#define LAT_I_PARAMETERS_8 LAT_I_PARAMETERS_7, uint64_t w7
#define LAT_I_PARAMETERS_9 LAT_I_PARAMETERS_8, uint64_t w8
#define LAT_I_PARAMETERS_10 LAT_I_PARAMETERS_9, uint64_t w9
#define LAT_I_PARAMETERS_11 LAT_I_PARAMETERS_10, uint64_t w10
#define LAT_I_PARAMETERS_12 LAT_I_PARAMETERS_11, uint64_t w11
#define LAT_I_PARAMETERS_13 LAT_I_PARAMETERS_12, uint64_t w12
#define LAT_I_PARAMETERS_14 LAT_I_PARAMETERS_13, uint64_t w13
#define LAT_I_PARAMETERS_15 LAT_I_PARAMETERS_14, uint64_t w14
#define LAT_I_PARAMETERS_16 LAT_I_PARAMETERS_15, uint64_t w15

#define LAT_I_LIST_0 0
#define LAT_I_LIST_1 w0
#define LAT_I_LIST_2 LAT_I_LIST_1, w1
#define LAT_I_LIST_3 LAT_I_LIST_2, w2
#define LAT_I_LIST_4 LAT_I_LIST_3, w3
#define LAT_I_LIST_5 LAT_I_LIST_4, w4
#define LAT_I_LIST_6 LAT_I_LIST_5, w5
#define LAT_I_LIST_7 LAT_I_LIST_6, w6
#define LAT_I_LIST_8 LAT_I_LIST_7, w7
#define LAT_I_LIST_9 LAT_I_LIST_8, w8
#define LAT_I_LIST_10 LAT_I_LIST_9, w9
#define LAT_I_LIST_11 LAT_I_LIST_10, w10
#define LAT_I_LIST_12 LAT_I_LIST_11, w11
#define LAT_I_LIST_13 LAT_I_LIST_12, w12
#define LAT_I_LIST_14 LAT_I_LIST_13, w13
#define LAT_I_LIST_15 LAT_I_LIST_14, w14
#define LAT_I_LIST_16 LAT_I_LIST_15, w15
#define LAT_I_ARGUMENTS_0
#define LAT_I_ARGUMENTS_1 , LAT_I_LIST_1
#define LAT_I_ARGUMENTS_2 , LAT_I_LIST_2
#define LAT_I_ARGUMENTS_3 , LAT_I_LIST_3
#define LAT_I_ARGUMENTS_4 , LAT_I_LIST_4
#define LAT_I_ARGUMENTS_5 , LAT_I_LIST_5
#define LAT_I_ARGUMENTS_6 , LAT_I_LIST_6
#define LAT_I_ARGUMENTS_7 , LAT_I_LIST_7
#define LAT_I_ARGUMENTS_8 , LAT_I_LIST_8
#define LAT_I_ARGUMENTS_9 , LAT_I_LIST_9
#define LAT_I_ARGUMENTS_10 , LAT_I_LIST_10
#define LAT_I_ARGUMENTS_11 , LAT_I_LIST_11
#define LAT_I_ARGUMENTS_12 , LAT_I_LIST_12
#define LAT_I_ARGUMENTS_13 , LAT_I_LIST_13
#define LAT_I_ARGUMENTS_14 , LAT_I_LIST_14
#define LAT_I_ARGUMENTS_15 , LAT_I_LIST_15
#define LAT_I_ARGUMENTS_16 , LAT_I_LIST_16

/* The store of each word, and its operand. */
#define LAT_I_STORES_0 LAT_I_NO_STORES
#define LAT_I_STORES_1 LAT_I_STORE_R(0, 4104)
#define LAT_I_STORES_2 LAT_I_STORES_1 LAT_I_STORE_R(1, 4112)
#define LAT_I_STORES_3 LAT_I_STORES_2 LAT_I_STORE_R(2, 4120)
#define LAT_I_STORES_4 LAT_I_STORES_3 LAT_I_STORE_R(3, 4128)
#define LAT_I_STORES_5 LAT_I_STORES_4 LAT_I_STORE_R(4, 4136)
#define LAT_I_STORES_6 LAT_I_STORES_5 LAT_I_STORE_R(5, 4144)
#define LAT_I_STORES_7 LAT_I_STORES_6 LAT_I_STORE_M(6, 4152)
#define LAT_I_STORES_8 LAT_I_STORES_7 LAT_I_STORE_M(7, 4160)
#define LAT_I_STORES_9                                                                         \
    LAT_I_STORES_6 LAT_I_STORE_P(6, 4152) LAT_I_STORE_P(7, 4160) LAT_I_STORE_P(8, 4168)
#define LAT_I_STORES_10 LAT_I_STORES_9 LAT_I_STORE_P(9, 4176)
#define LAT_I_STORES_11 LAT_I_STORES_10 LAT_I_STORE_P(10, 4184)
#define LAT_I_STORES_12 LAT_I_STORES_11 LAT_I_STORE_P(11, 4192)
#define LAT_I_STORES_13 LAT_I_STORES_12 LAT_I_STORE_P(12, 4200)
#define LAT_I_STORES_14 LAT_I_STORES_13 LAT_I_STORE_P(13, 4208)
#define LAT_I_STORES_15 LAT_I_STORES_14 LAT_I_STORE_P(14, 4216)
#define LAT_I_STORES_16 LAT_I_STORES_15 LAT_I_STORE_P(15, 4224)

#define LAT_I_OPERANDS_0
#define LAT_I_OPERANDS_1 LAT_I_WORD_R(0)
#define LAT_I_OPERANDS_2 LAT_I_OPERANDS_1 LAT_I_WORD_R(1)
#define LAT_I_OPERANDS_3 LAT_I_OPERANDS_2 LAT_I_WORD_R(2)
#define LAT_I_OPERANDS_4 LAT_I_OPERANDS_3 LAT_I_WORD_R(3)
#define LAT_I_OPERANDS_5 LAT_I_OPERANDS_4 LAT_I_WORD_R(4)
#define LAT_I_OPERANDS_6 LAT_I_OPERANDS_5 LAT_I_WORD_R(5)
#define LAT_I_OPERANDS_7 LAT_I_OPERANDS_6 LAT_I_WORD_M(6)
#define LAT_I_OPERANDS_8 LAT_I_OPERANDS_7 LAT_I_WORD_M(7)
#define LAT_I_OPERANDS_9 LAT_I_OPERANDS_P9 LAT_I_WORDS_P
#define LAT_I_OPERANDS_10 LAT_I_OPERANDS_P10 LAT_I_WORDS_P
#define LAT_I_OPERANDS_11 LAT_I_OPERANDS_P11 LAT_I_WORDS_P
#define LAT_I_OPERANDS_12 LAT_I_OPERANDS_P12 LAT_I_WORDS_P
#define LAT_I_OPERANDS_13 LAT_I_OPERANDS_P13 LAT_I_WORDS_P
#define LAT_I_OPERANDS_14 LAT_I_OPERANDS_P14 LAT_I_WORDS_P
#define LAT_I_OPERANDS_15 LAT_I_OPERANDS_P15 LAT_I_WORDS_P
#define LAT_I_OPERANDS_16 LAT_I_OPERANDS_P16 LAT_I_WORDS_P
#define LAT_I_OPERANDS_P9 LAT_I_OPERANDS_6 LAT_I_WORD_P(6) LAT_I_WORD_P(7) LAT_I_WORD_P(8)
#define LAT_I_OPERANDS_P10 LAT_I_OPERANDS_P9 LAT_I_WORD_P(9)
#define LAT_I_OPERANDS_P11 LAT_I_OPERANDS_P10 LAT_I_WORD_P(10)
#define LAT_I_OPERANDS_P12 LAT_I_OPERANDS_P11 LAT_I_WORD_P(11)
#define LAT_I_OPERANDS_P13 LAT_I_OPERANDS_P12 LAT_I_WORD_P(12)
#define LAT_I_OPERANDS_P14 LAT_I_OPERANDS_P13 LAT_I_WORD_P(13)
#define LAT_I_OPERANDS_P15 LAT_I_OPERANDS_P14 LAT_I_WORD_P(14)
#define LAT_I_OPERANDS_P16 LAT_I_OPERANDS_P15 LAT_I_WORD_P(15)

/* More than eight words: on AArch64 from an array, because an asm cannot take that many operands;
 * elsewhere one by one, so that they are not stored twice. */
#define LAT_I_PREPARE_0
#define LAT_I_PREPARE_1
#define LAT_I_PREPARE_2
#define LAT_I_PREPARE_3
#define LAT_I_PREPARE_4
#define LAT_I_PREPARE_5
#define LAT_I_PREPARE_6
#define LAT_I_PREPARE_7
#define LAT_I_PREPARE_8
#ifdef LAT_I_FROM_ARRAY
#define LAT_I_ARRAY(...) const uint64_t words[] = {__VA_ARGS__};
#define LAT_I_PREPARE_9 LAT_I_ARRAY(LAT_I_LIST_9)
#define LAT_I_PREPARE_10 LAT_I_ARRAY(LAT_I_LIST_10)
#define LAT_I_PREPARE_11 LAT_I_ARRAY(LAT_I_LIST_11)
#define LAT_I_PREPARE_12 LAT_I_ARRAY(LAT_I_LIST_12)
#define LAT_I_PREPARE_13 LAT_I_ARRAY(LAT_I_LIST_13)
#define LAT_I_PREPARE_14 LAT_I_ARRAY(LAT_I_LIST_14)
#define LAT_I_PREPARE_15 LAT_I_ARRAY(LAT_I_LIST_15)
#define LAT_I_PREPARE_16 LAT_I_ARRAY(LAT_I_LIST_16)
#else
/* GCC keeps a constant that does not fit an immediate in a register, and there are not enough registers for
 * all words. Such a constant becomes a value that can also be in memory. */
#define LAT_I_BIG(word)                                                                        \
    if (__builtin_constant_p(word) && (word) != (uint64_t)(int64_t)(int32_t)(word))            \
        __asm__("" : "+rm"(word));
#define LAT_I_PREPARE_9 LAT_I_BIG(w6) LAT_I_BIG(w7) LAT_I_BIG(w8)
#define LAT_I_PREPARE_10 LAT_I_PREPARE_9 LAT_I_BIG(w9)
#define LAT_I_PREPARE_11 LAT_I_PREPARE_10 LAT_I_BIG(w10)
#define LAT_I_PREPARE_12 LAT_I_PREPARE_11 LAT_I_BIG(w11)
#define LAT_I_PREPARE_13 LAT_I_PREPARE_12 LAT_I_BIG(w12)
#define LAT_I_PREPARE_14 LAT_I_PREPARE_13 LAT_I_BIG(w13)
#define LAT_I_PREPARE_15 LAT_I_PREPARE_14 LAT_I_BIG(w14)
#define LAT_I_PREPARE_16 LAT_I_PREPARE_15 LAT_I_BIG(w15)
#endif

/* The payload size in bytes times 256 plus the enable byte form one number, which saves a register. An event
 * accepted by its filter is recorded by lat_i_lookedN; an event lost to a full ring takes the shortest
 * path. */
#define LAT_I_EMITTER(count_, size_)                                                           \
    static LAT_INLINE int lat_i_write##count_(uint32_t id, uint64_t slack LAT_I_PARAMETERS_##count_) \
    {                                                                                          \
        LAT_I_PREPARE_##count_                                                                 \
        LAT_I_RESERVE_STORE_COMMIT(size_, LAT_I_STORES_##count_, LAT_I_OPERANDS_##count_)      \
        return 0;                                                                              \
    }                                                                                          \
    static LAT_INLINE int lat_i_write_any##count_(uint32_t id,                                 \
                                                  uint64_t slack LAT_I_PARAMETERS_##count_)    \
    {                                                                                          \
        LAT_I_PREPARE_##count_                                                                 \
        LAT_I_RESERVE_STORE_COMMIT_ANY(size_, LAT_I_STORES_##count_, LAT_I_OPERANDS_##count_)  \
        return 0;                                                                              \
    }                                                                                          \
    LAT_I_RARE void lat_i_looked##count_(uint32_t id,                                          \
                                         uint32_t bytes_and_on LAT_I_PARAMETERS_##count_)      \
    {                                                                                          \
        const uint64_t all[] = {LAT_I_LIST_##count_};                                          \
        const uint32_t payload_bytes = bytes_and_on >> 8;                                      \
        if (lat_i_look_words(id, bytes_and_on, all) &&                                     \
            !lat_i_write_any##count_(id, 8u * (count_)-payload_bytes LAT_I_ARGUMENTS_##count_)) \
            lat_i_emit_words(id, payload_bytes, all);                                      \
    }                                                                                          \
    LAT_I_RARE void lat_i_rare##count_(uint32_t id, uint32_t bytes_and_on LAT_I_PARAMETERS_##count_) \
    {                                                                                          \
        if ((bytes_and_on & LAT_ENABLE_WATCH) != 0) {                                          \
            lat_i_looked##count_(id, bytes_and_on LAT_I_ARGUMENTS_##count_);                   \
        } else {                                                                               \
            const uint64_t all[] = {LAT_I_LIST_##count_};                                      \
            lat_i_emit_words(id, bytes_and_on >> 8, all);                                  \
        }                                                                                      \
    }                                                                                          \
    static LAT_INLINE void lat_i_emit##count_(const struct lat_schema *schema, unsigned on,    \
                                              uint32_t index,                                  \
                                              uint32_t payload_bytes LAT_I_PARAMETERS_##count_) \
    {                                                                                          \
        const uint32_t id = schema->base_id + index;                                           \
        if (LAT_I_UNLIKELY((on & LAT_ENABLE_WATCH) != 0) ||                                    \
            LAT_I_UNLIKELY(                                                                    \
                !lat_i_write##count_(id, 8u * (count_)-payload_bytes LAT_I_ARGUMENTS_##count_))) \
            lat_i_rare##count_(id, on | payload_bytes << 8 LAT_I_ARGUMENTS_##count_);          \
    }

LAT_I_EMITTER(0, "8")
LAT_I_EMITTER(1, "16")
LAT_I_EMITTER(2, "24")
LAT_I_EMITTER(3, "32")
LAT_I_EMITTER(4, "40")
LAT_I_EMITTER(5, "48")
LAT_I_EMITTER(6, "56")
LAT_I_EMITTER(7, "64")
LAT_I_EMITTER(8, "72")
LAT_I_EMITTER(9, "80")
LAT_I_EMITTER(10, "88")
LAT_I_EMITTER(11, "96")
LAT_I_EMITTER(12, "104")
LAT_I_EMITTER(13, "112")
LAT_I_EMITTER(14, "120")
LAT_I_EMITTER(15, "128")
LAT_I_EMITTER(16, "136")

#endif
