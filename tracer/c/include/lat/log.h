// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Events without a schema: a printf format and its arguments, anywhere in a function.
 *
 *     LAT_LOG("took %u us for %s", us, name);
 *
 * The format stays in the program, where a recorder fetches it once. A record contains only the
 * unformatted arguments; the text is made when the trace is read. Compilers check the
 * arguments against the format as for printf, which is never called. Each call site is an event of
 * its own, `log:FILE_LINE`, and is enabled like any other.
 *
 * Arguments: at most 16, of any integer type, bool, float, double (long double is recorded as
 * double), strings, pointers. They are evaluated once, and only when the event is enabled.
 *   %s   copies the current string, up to the precision if there is one; NULL is "".
 *   %p   records the address alone, also of a char pointer.
 *   *    as a width is not kept; as a precision of %s it truncates the string.
 *   %n   stores nothing; %m prints nothing useful: pass strerror(errno).
 * A conversion that does not match its argument (compilers warn about those) is replaced by one that
 * does, so that no event is lost to it.
 *
 * Context: any thread, any signal handler, after the constructors of the program's objects with
 * priority 200. Does not block, allocate or change errno. Cost: disabled, two loads and a predicted
 * branch; enabled, little more than an event with a schema if at most 32 bytes of numbers
 * followed by at most one string are recorded, else about 30 cycles more and the copy of strings; 300 bytes
 * of stack in the function, and 1 KiB below it in the latter case. Works in C11
 * and in C++17, templates and inline functions included.
 */
#ifndef LAT_LOG_H
#define LAT_LOG_H

#include "lat.h"

#ifdef __cplusplus
#include <type_traits>
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "LAT_LOG is made for x86-64 and AArch64; elsewhere, use events of a schema"
#endif

LAT_I_C_BEGIN

/* ---- the descriptor of a call site --------------------------------------- */

/* One per call site, collected by the linker. Written by inline assembly (LAT_I_FORMAT_HERE) and not
 * as a C object: a variable of an inline function or template cannot be put into a section. */
struct lat_i_format {
    const uint8_t *enabled; /* enable byte; one that is always zero until registered */
    uint32_t types[2];      /* four bits an argument, enum lat_i_log_type */
    int32_t format;         /* relative to its own address */
    int32_t file;
    uint32_t line;
    uint32_t id; /* event id in the area */
    /* One bit an argument, set when the format is read at registration; tested as one number: */
    uint16_t width;   /* an int for `*`: not recorded */
    uint16_t bounded; /* a string with a precision */
    uint16_t address; /* a char pointer that is not printed by %s: not followed */
    uint16_t reserved;
};

enum lat_i_log_type {
    LAT_I_LOG_NONE = 0,
    LAT_I_LOG_U8,
    LAT_I_LOG_U16,
    LAT_I_LOG_U32,
    LAT_I_LOG_U64,
    LAT_I_LOG_I8,
    LAT_I_LOG_I16,
    LAT_I_LOG_I32,
    LAT_I_LOG_I64,
    LAT_I_LOG_F32,
    LAT_I_LOG_F64,
    LAT_I_LOG_BOOL,
    LAT_I_LOG_STRING,
    LAT_I_LOG_POINTER
};
#define LAT_I_LOG_ARGUMENTS 16u

/* All call sites of one shared object or executable. */
struct lat_i_log_object {
    struct lat_schema schema;
};
/** Makes a schema of the call sites and registers it. Context: start-up or dlopen. */
void lat_i_register_formats(struct lat_i_log_object *object, struct lat_i_format *begin,
                            struct lat_i_format *end);
/** Maximum length of a string under the precision of argument `argument`; `star` is the value
 * given for `*`. Async-signal-safe. */
size_t lat_i_log_precision(const struct lat_i_format *format, uint32_t argument, int star);

extern struct lat_i_format __start_lat_formats[] __attribute__((weak, visibility("hidden")));
extern struct lat_i_format __stop_lat_formats[] __attribute__((weak, visibility("hidden")));
__attribute__((weak, visibility("hidden"))) struct lat_i_log_object lat_i_log_of_object;
__attribute__((weak, visibility("hidden"), used)) uint8_t lat_i_log_disabled;

static __attribute__((constructor(200), used)) void lat_i_log_register(void)
{
    lat_i_register_formats(&lat_i_log_of_object, __start_lat_formats, __stop_lat_formats);
}

/* ---- one event ----------------------------------------------------------- */

/* Arguments in order: numbers one after the other, each aligned to its size, and strings. If only the
 * last argument is a string, and the format requires no other treatment, the numbers are exactly the record's
 * prefix; compilers find that out, and a store for each remains. */
struct lat_i_log {
    uint32_t bytes; /* of numbers */
    uint32_t text_count;
    int is_plain; /* no argument after a string */
    uint8_t *numbers; /* separate, so that the rest is in memory in the rare case only */
    const char *texts[LAT_I_LOG_ARGUMENTS];
};

static LAT_INLINE unsigned lat_i_log_on(const struct lat_i_format *format)
{
    unsigned on = *(const volatile uint8_t *)format->enabled;
    __asm__("" : "+r"(on)); /* as in lat_i_on */
    return on;
}
static LAT_INLINE void lat_i_log_begin(struct lat_i_log *log, uint64_t *numbers)
{
    log->numbers = (uint8_t *)numbers;
    log->bytes = 0;
    log->text_count = 0;
    log->is_plain = 1;
}
static LAT_INLINE void lat_i_log_number(struct lat_i_log *log, const void *value, uint32_t size)
{
    const uint32_t at = (log->bytes + size - 1u) & ~(size - 1u);
    memset(log->numbers + log->bytes, 0, at - log->bytes);
    memcpy(log->numbers + at, value, size);
    log->bytes = at + size;
    log->is_plain &= log->text_count == 0;
}
static LAT_INLINE void lat_i_log_8(struct lat_i_log *log, uint8_t value)
{
    lat_i_log_number(log, &value, 1);
}
static LAT_INLINE void lat_i_log_16(struct lat_i_log *log, uint16_t value)
{
    lat_i_log_number(log, &value, 2);
}
static LAT_INLINE void lat_i_log_32(struct lat_i_log *log, uint32_t value)
{
    lat_i_log_number(log, &value, 4);
}
static LAT_INLINE void lat_i_log_64(struct lat_i_log *log, uint64_t value)
{
    lat_i_log_number(log, &value, 8);
}
static LAT_INLINE void lat_i_log_string(struct lat_i_log *log, const char *text)
{
    log->is_plain &= log->text_count == 0;
    log->texts[log->text_count++] = text;
}

/* Appends a string up to its precision. */
static inline void lat_i_log_bounded(struct lat_i_build *build, const struct lat_i_format *format,
                                     uint32_t argument, int star, const char *text)
{
    const size_t most = lat_i_log_precision(format, argument, star);
    size_t bytes = 0;
    while (text != NULL && bytes < most && text[bytes] != 0)
        bytes++;
    lat_i_put_foreign(build, text, bytes);
    lat_i_put_u8(build, 0);
}
/* Records any event: each argument as the format requires. */
LAT_I_RARE void lat_i_log_rare(const struct lat_i_format *format, unsigned on, uint8_t *numbers,
                               const char **texts)
{
    struct lat_i_build build;
    uint32_t at = 0;
    int star = -1; /* last value for `*` */
    lat_i_build_init(&build);
    for (uint32_t argument = 0; argument < LAT_I_LOG_ARGUMENTS; argument++) {
        const unsigned type = format->types[argument / 8u] >> (4u * (argument & 7u)) & 15u;
        const unsigned bit = 1u << argument;
        uint32_t size = 8;
        uint64_t value = 0;
        switch (type) {
        case LAT_I_LOG_NONE:
            argument = LAT_I_LOG_ARGUMENTS;
            continue;
        case LAT_I_LOG_STRING: {
            const char *text = *texts++;
            if ((format->address & bit) != 0)
                lat_i_put_u64(&build, (uintptr_t)text);
            else if ((format->bounded & bit) != 0)
                lat_i_log_bounded(&build, format, argument, star, text);
            else
                lat_i_put_string(&build, text);
            continue;
        }
        case LAT_I_LOG_U8:
        case LAT_I_LOG_I8:
        case LAT_I_LOG_BOOL:
            size = 1;
            break;
        case LAT_I_LOG_U16:
        case LAT_I_LOG_I16:
            size = 2;
            break;
        case LAT_I_LOG_U32:
        case LAT_I_LOG_I32:
        case LAT_I_LOG_F32:
            size = 4;
            break;
        default:
            break;
        }
        at = (at + size - 1u) & ~(size - 1u);
        if ((format->width & bit) != 0) {
            memcpy(&star, numbers + at, sizeof star);
        } else {
            memcpy(&value, numbers + at, size);
            lat_i_put_align(&build, size);
            memcpy(lat_i_put_scratch(&build, size), &value, size);
        }
        at += size;
    }
    lat_i_build_emit_id(format->id, on, &build);
}

/* Records numbers alone. */
static LAT_INLINE int lat_i_log_numbers(uint32_t id, struct lat_i_log *log)
{
    const uint32_t words = (log->bytes + 7u) / 8u, slack = 8u * words - log->bytes;
    uint64_t w0, w1, w2, w3;
    memset(log->numbers + log->bytes, 0, slack);
    memcpy(&w0, log->numbers, 8);
    memcpy(&w1, log->numbers + 8, 8);
    memcpy(&w2, log->numbers + 16, 8);
    memcpy(&w3, log->numbers + 24, 8);
    return words == 0   ? lat_i_write_any0(id, slack)
           : words == 1 ? lat_i_write_any1(id, slack, w0)
           : words == 2 ? lat_i_write_any2(id, slack, w0, w1)
           : words == 3 ? lat_i_write_any3(id, slack, w0, w1, w2)
                        : lat_i_write_any4(id, slack, w0, w1, w2, w3);
}
static LAT_INLINE void lat_i_log_emit(const struct lat_i_format *format, unsigned on,
                                      struct lat_i_log *log)
{
    uint64_t special;
    memcpy(&special, &format->width, sizeof special);
    if (LAT_I_LIKELY((on & LAT_ENABLE_WATCH) == 0) && log->is_plain &&
        log->bytes <= LAT_I_TEXT_PREFIX &&
        LAT_I_LIKELY(special == 0)) {
        if (log->text_count == 0 ? lat_i_log_numbers(format->id, log)
                                 : lat_i_text(format->id, log->numbers, log->bytes, log->texts[0]))
            return;
    }
    /* A copy, so that `log` itself is never in memory. */
    const char *texts[LAT_I_LOG_ARGUMENTS];
    for (uint32_t text = 0; text < log->text_count; text++)
        texts[text] = log->texts[text];
    lat_i_log_rare(format, on, log->numbers, texts);
}

/* Never called: lets the compiler compare the arguments with the format. */
static inline __attribute__((format(printf, 1, 2))) void lat_i_log_check(const char *format, ...)
{
    (void)format;
}

LAT_I_C_END

/* ---- types of arguments ---------------------------------------------------- */

#ifdef __cplusplus

template <class Decayed> constexpr uint32_t lat_i_log_type()
{
    if constexpr (std::is_enum_v<Decayed>)
        return lat_i_log_type<std::underlying_type_t<Decayed>>();
    else if constexpr (std::is_same_v<Decayed, bool>)
        return LAT_I_LOG_BOOL;
    else if constexpr (std::is_integral_v<Decayed>)
        return (std::is_signed_v<Decayed> ? LAT_I_LOG_I8 : LAT_I_LOG_U8) +
               (sizeof(Decayed) == 1   ? 0u
                : sizeof(Decayed) == 2 ? 1u
                : sizeof(Decayed) == 4 ? 2u
                                       : 3u);
    else if constexpr (std::is_same_v<Decayed, float>)
        return LAT_I_LOG_F32;
    else if constexpr (std::is_floating_point_v<Decayed>)
        return LAT_I_LOG_F64;
    else if constexpr (std::is_same_v<Decayed, char *> || std::is_same_v<Decayed, const char *>)
        return LAT_I_LOG_STRING;
    else
        return LAT_I_LOG_POINTER;
}

template <class Value> LAT_INLINE void lat_i_log_value(lat_i_log *log, Value value)
{
    static_assert(sizeof(Value) <= 8 || std::is_floating_point_v<Value>,
                  "LAT_LOG: integers have at most 64 bits");
    if constexpr (std::is_enum_v<Value>)
        lat_i_log_value(log, static_cast<std::underlying_type_t<Value>>(value));
    else if constexpr (std::is_same_v<Value, float>)
        lat_i_log_32(log, lat_i_f32_bits(value));
    else if constexpr (std::is_floating_point_v<Value>)
        lat_i_log_64(log, lat_i_f64_bits(static_cast<double>(value)));
    else if constexpr (std::is_same_v<Value, char *> || std::is_same_v<Value, const char *>)
        lat_i_log_string(log, value);
    else if constexpr (std::is_null_pointer_v<Value>)
        lat_i_log_64(log, 0);
    else if constexpr (std::is_pointer_v<Value>)
        lat_i_log_64(log, reinterpret_cast<uintptr_t>(value));
    else if constexpr (sizeof(Value) == 1)
        lat_i_log_8(log, static_cast<uint8_t>(value));
    else if constexpr (sizeof(Value) == 2)
        lat_i_log_16(log, static_cast<uint16_t>(value));
    else if constexpr (sizeof(Value) == 4)
        lat_i_log_32(log, static_cast<uint32_t>(value));
    else
        lat_i_log_64(log, static_cast<uint64_t>(value));
}

#define LAT_I_LOG_TYPE(x) (lat_i_log_type<std::decay_t<decltype((x))>>())
#define LAT_I_LOG_PUT(x)                                                                       \
    lat_i_log_value<std::decay_t<decltype((x))>>(&lat_i_log, x);

#else

#define LAT_I_LOG_LONG(sign) (sizeof(long) == 8 ? LAT_I_LOG_##sign##64 : LAT_I_LOG_##sign##32)
#define LAT_I_LOG_TYPE(x)                                                                      \
    ((uint32_t)_Generic((x), _Bool: LAT_I_LOG_BOOL,                                            \
        char: (char)-1 < 0 ? LAT_I_LOG_I8 : LAT_I_LOG_U8,                                      \
        signed char: LAT_I_LOG_I8, unsigned char: LAT_I_LOG_U8,                                \
        short: LAT_I_LOG_I16, unsigned short: LAT_I_LOG_U16,                                   \
        int: LAT_I_LOG_I32, unsigned: LAT_I_LOG_U32,                                           \
        long: LAT_I_LOG_LONG(I), unsigned long: LAT_I_LOG_LONG(U),                             \
        long long: LAT_I_LOG_I64, unsigned long long: LAT_I_LOG_U64,                           \
        float: LAT_I_LOG_F32, double: LAT_I_LOG_F64, long double: LAT_I_LOG_F64,               \
        char *: LAT_I_LOG_STRING, const char *: LAT_I_LOG_STRING, default: LAT_I_LOG_POINTER))

static LAT_INLINE void lat_i_log_bool(struct lat_i_log *log, _Bool value)
{
    lat_i_log_8(log, value);
}
static LAT_INLINE void lat_i_log_long(struct lat_i_log *log, unsigned long value)
{
    if (sizeof value == 8)
        lat_i_log_64(log, value);
    else
        lat_i_log_32(log, (uint32_t)value);
}
static LAT_INLINE void lat_i_log_f32(struct lat_i_log *log, float value)
{
    lat_i_log_32(log, lat_i_f32_bits(value));
}
static LAT_INLINE void lat_i_log_f64(struct lat_i_log *log, double value)
{
    lat_i_log_64(log, lat_i_f64_bits(value));
}
static LAT_INLINE void lat_i_log_long_double(struct lat_i_log *log, long double value)
{
    lat_i_log_64(log, lat_i_f64_bits((double)value));
}
static LAT_INLINE void lat_i_log_pointer(struct lat_i_log *log, const volatile void *value)
{
    lat_i_log_64(log, (uintptr_t)value);
}
/* The signed types are separate, so that no conversion is implicit. */
static LAT_INLINE void lat_i_log_char(struct lat_i_log *log, char value)
{
    lat_i_log_8(log, (uint8_t)value);
}
static LAT_INLINE void lat_i_log_i8(struct lat_i_log *log, signed char value)
{
    lat_i_log_8(log, (uint8_t)value);
}
static LAT_INLINE void lat_i_log_i16(struct lat_i_log *log, short value)
{
    lat_i_log_16(log, (uint16_t)value);
}
static LAT_INLINE void lat_i_log_i32(struct lat_i_log *log, int value)
{
    lat_i_log_32(log, (uint32_t)value);
}
static LAT_INLINE void lat_i_log_ilong(struct lat_i_log *log, long value)
{
    lat_i_log_long(log, (unsigned long)value);
}
static LAT_INLINE void lat_i_log_i64(struct lat_i_log *log, long long value)
{
    lat_i_log_64(log, (uint64_t)value);
}

/* clang warns that side effects in the operand of _Generic do not happen: they do, once, below. */
#ifdef __clang__
#define LAT_I_LOG_QUIET                                                                        \
    _Pragma("clang diagnostic push")                                                           \
        _Pragma("clang diagnostic ignored \"-Wunevaluated-expression\"")
#define LAT_I_LOG_LOUD _Pragma("clang diagnostic pop")
#else
#define LAT_I_LOG_QUIET
#define LAT_I_LOG_LOUD
#endif

#define LAT_I_LOG_PUT(x)                                                                       \
    _Generic((x), _Bool: lat_i_log_bool, char: lat_i_log_char, signed char: lat_i_log_i8,      \
        unsigned char: lat_i_log_8, short: lat_i_log_i16, unsigned short: lat_i_log_16,        \
        int: lat_i_log_i32, unsigned: lat_i_log_32, long: lat_i_log_ilong,                     \
        unsigned long: lat_i_log_long, long long: lat_i_log_i64,                               \
        unsigned long long: lat_i_log_64, float: lat_i_log_f32, double: lat_i_log_f64,         \
        long double: lat_i_log_long_double, char *: lat_i_log_string,                          \
        const char *: lat_i_log_string, default: lat_i_log_pointer)(&lat_i_log, (x));

#endif
#ifndef LAT_I_LOG_QUIET
#define LAT_I_LOG_QUIET
#define LAT_I_LOG_LOUD
#endif

/* ---- the call site ---------------------------------------------------------- */

/* Writes the descriptor and loads its address. `?`: into the section group of the function,
 * if it has one, so that copies of an inline function share one descriptor. */
#if defined(__x86_64__)
#define LAT_I_FORMAT_ADDRESS "leaq 771f(%%rip), %[here]\n"
#define LAT_I_FORMAT_TEXT(name) "%P[" name "]"
#define LAT_I_FORMAT_SYMBOL "i"
#else
#define LAT_I_FORMAT_ADDRESS "adrp %[here], 771f\nadd %[here], %[here], :lo12:771f\n"
#define LAT_I_FORMAT_TEXT(name) "%c[" name "]"
#define LAT_I_FORMAT_SYMBOL "S"
#endif
#define LAT_I_FORMAT_HERE(here_, format_, low_, high_)                                         \
    __asm__(LAT_I_FORMAT_ADDRESS                                                               \
            ".pushsection lat_formats, \"aw?\"\n"                                             \
            ".balign 8\n"                                                                      \
            "771: .quad lat_i_log_disabled\n"                                                  \
            ".long %c[low], %c[high]\n"                                                        \
            ".long " LAT_I_FORMAT_TEXT("format") " - .\n"                                      \
            ".long " LAT_I_FORMAT_TEXT("file") " - .\n"                                        \
            ".long %c[line], 0, 0, 0\n"                                                        \
            ".popsection\n"                                                                    \
            : [here] "=r"(here_)                                                               \
            : [low] "i"((low_)), [high] "i"((high_)), [format] LAT_I_FORMAT_SYMBOL("" format_),\
              [file] LAT_I_FORMAT_SYMBOL("" __FILE__), [line] "i"(__LINE__))

#define LAT_I_LOG(format_, low_, high_, checked_, puts_)                                       \
    do {                                                                                       \
        const struct lat_i_format *lat_i_format;                                               \
        unsigned lat_i_on_;                                                                    \
        LAT_I_LOG_QUIET                                                                        \
        LAT_I_FORMAT_HERE(lat_i_format, format_, low_, high_);                                 \
        if (0)                                                                                 \
            lat_i_log_check checked_;                                                          \
        lat_i_on_ = lat_i_log_on(lat_i_format);                                                \
        if (LAT_I_UNLIKELY(lat_i_on_ != 0)) {                                                  \
            uint64_t lat_i_numbers[LAT_I_LOG_ARGUMENTS];                                       \
            struct lat_i_log lat_i_log;                                                        \
            lat_i_log_begin(&lat_i_log, lat_i_numbers);                                        \
            puts_                                                                              \
            lat_i_log_emit(lat_i_format, lat_i_on_, &lat_i_log);                               \
        }                                                                                      \
        LAT_I_LOG_LOUD                                                                         \
    } while (0)

/**
 * LAT_LOG(format, arguments…): records an event; see the top of this file.
 * `format` is a string literal.
 */
#define LAT_LOG(...) LAT_I_LOG_PASTE(LAT_I_LOG_, LAT_I_LOG_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define LAT_I_LOG_PASTE(a, b) LAT_I_LOG_PASTE_(a, b)
#define LAT_I_LOG_PASTE_(a, b) a##b
#define LAT_I_LOG_COUNT(...)                                                                   \
    LAT_I_LOG_18TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define LAT_I_LOG_18TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, ...) r

/* Types of eight arguments in 32 bits, the first in the lowest; then the operation on each. */
#define LAT_I_LOG_T1(a) (LAT_I_LOG_TYPE(a))
#define LAT_I_LOG_T2(a, b) (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4)
#define LAT_I_LOG_T3(a, b, c)                                                                   \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8)
#define LAT_I_LOG_T4(a, b, c, d)                                                                \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8 |                      \
     LAT_I_LOG_TYPE(d) << 12)
#define LAT_I_LOG_T5(a, b, c, d, e)                                                             \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8 |                      \
     LAT_I_LOG_TYPE(d) << 12 | LAT_I_LOG_TYPE(e) << 16)
#define LAT_I_LOG_T6(a, b, c, d, e, f)                                                          \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8 |                      \
     LAT_I_LOG_TYPE(d) << 12 | LAT_I_LOG_TYPE(e) << 16 | LAT_I_LOG_TYPE(f) << 20)
#define LAT_I_LOG_T7(a, b, c, d, e, f, g)                                                       \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8 |                      \
     LAT_I_LOG_TYPE(d) << 12 | LAT_I_LOG_TYPE(e) << 16 | LAT_I_LOG_TYPE(f) << 20 |              \
     LAT_I_LOG_TYPE(g) << 24)
#define LAT_I_LOG_T8(a, b, c, d, e, f, g, h)                                                    \
    (LAT_I_LOG_TYPE(a) | LAT_I_LOG_TYPE(b) << 4 | LAT_I_LOG_TYPE(c) << 8 |                      \
     LAT_I_LOG_TYPE(d) << 12 | LAT_I_LOG_TYPE(e) << 16 | LAT_I_LOG_TYPE(f) << 20 |              \
     LAT_I_LOG_TYPE(g) << 24 | LAT_I_LOG_TYPE(h) << 28)
#define LAT_I_LOG_P1(a) LAT_I_LOG_PUT(a)
#define LAT_I_LOG_P2(a, b) LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b)
#define LAT_I_LOG_P3(a, b, c) LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c)
#define LAT_I_LOG_P4(a, b, c, d)                                                                \
    LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c) LAT_I_LOG_PUT(d)
#define LAT_I_LOG_P5(a, b, c, d, e)                                                             \
    LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c) LAT_I_LOG_PUT(d) LAT_I_LOG_PUT(e)
#define LAT_I_LOG_P6(a, b, c, d, e, f)                                                          \
    LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c) LAT_I_LOG_PUT(d) LAT_I_LOG_PUT(e)        \
    LAT_I_LOG_PUT(f)
#define LAT_I_LOG_P7(a, b, c, d, e, f, g)                                                       \
    LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c) LAT_I_LOG_PUT(d) LAT_I_LOG_PUT(e)        \
    LAT_I_LOG_PUT(f) LAT_I_LOG_PUT(g)
#define LAT_I_LOG_P8(a, b, c, d, e, f, g, h)                                                    \
    LAT_I_LOG_PUT(a) LAT_I_LOG_PUT(b) LAT_I_LOG_PUT(c) LAT_I_LOG_PUT(d) LAT_I_LOG_PUT(e)        \
    LAT_I_LOG_PUT(f) LAT_I_LOG_PUT(g) LAT_I_LOG_PUT(h)

#define LAT_I_LOG_0(f) LAT_I_LOG(f, 0u, 0u, (f), )
#define LAT_I_LOG_1(f, a) LAT_I_LOG(f, LAT_I_LOG_T1(a), 0u, (f, a), LAT_I_LOG_P1(a))
#define LAT_I_LOG_2(f, a, b) LAT_I_LOG(f, LAT_I_LOG_T2(a, b), 0u, (f, a, b), LAT_I_LOG_P2(a, b))
#define LAT_I_LOG_3(f, a, b, c)                                                                 \
    LAT_I_LOG(f, LAT_I_LOG_T3(a, b, c), 0u,                                                     \
              (f, a, b, c),                                                                     \
              LAT_I_LOG_P3(a, b, c))
#define LAT_I_LOG_4(f, a, b, c, d)                                                              \
    LAT_I_LOG(f, LAT_I_LOG_T4(a, b, c, d), 0u,                                                  \
              (f, a, b, c, d),                                                                  \
              LAT_I_LOG_P4(a, b, c, d))
#define LAT_I_LOG_5(f, a, b, c, d, e)                                                           \
    LAT_I_LOG(f, LAT_I_LOG_T5(a, b, c, d, e), 0u,                                               \
              (f, a, b, c, d, e),                                                               \
              LAT_I_LOG_P5(a, b, c, d, e))
#define LAT_I_LOG_6(f, a, b, c, d, e, g)                                                        \
    LAT_I_LOG(f, LAT_I_LOG_T6(a, b, c, d, e, g), 0u,                                            \
              (f, a, b, c, d, e, g),                                                            \
              LAT_I_LOG_P6(a, b, c, d, e, g))
#define LAT_I_LOG_7(f, a, b, c, d, e, g, h)                                                     \
    LAT_I_LOG(f, LAT_I_LOG_T7(a, b, c, d, e, g, h), 0u,                                         \
              (f, a, b, c, d, e, g, h),                                                         \
              LAT_I_LOG_P7(a, b, c, d, e, g, h))
#define LAT_I_LOG_8(f, a, b, c, d, e, g, h, i)                                                  \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), 0u,                                      \
              (f, a, b, c, d, e, g, h, i),                                                      \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i))
#define LAT_I_LOG_9(f, a, b, c, d, e, g, h, i, j)                                               \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T1(j),                         \
              (f, a, b, c, d, e, g, h, i, j),                                                   \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P1(j))
#define LAT_I_LOG_10(f, a, b, c, d, e, g, h, i, j, k)                                           \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T2(j, k),                      \
              (f, a, b, c, d, e, g, h, i, j, k),                                                \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P2(j, k))
#define LAT_I_LOG_11(f, a, b, c, d, e, g, h, i, j, k, l)                                        \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T3(j, k, l),                   \
              (f, a, b, c, d, e, g, h, i, j, k, l),                                             \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P3(j, k, l))
#define LAT_I_LOG_12(f, a, b, c, d, e, g, h, i, j, k, l, m)                                     \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T4(j, k, l, m),                \
              (f, a, b, c, d, e, g, h, i, j, k, l, m),                                          \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P4(j, k, l, m))
#define LAT_I_LOG_13(f, a, b, c, d, e, g, h, i, j, k, l, m, n)                                  \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T5(j, k, l, m, n),             \
              (f, a, b, c, d, e, g, h, i, j, k, l, m, n),                                       \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P5(j, k, l, m, n))
#define LAT_I_LOG_14(f, a, b, c, d, e, g, h, i, j, k, l, m, n, o)                               \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T6(j, k, l, m, n, o),          \
              (f, a, b, c, d, e, g, h, i, j, k, l, m, n, o),                                    \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P6(j, k, l, m, n, o))
#define LAT_I_LOG_15(f, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)                            \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T7(j, k, l, m, n, o, p),       \
              (f, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p),                                 \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P7(j, k, l, m, n, o, p))
#define LAT_I_LOG_16(f, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)                         \
    LAT_I_LOG(f, LAT_I_LOG_T8(a, b, c, d, e, g, h, i), LAT_I_LOG_T8(j, k, l, m, n, o, p, q),    \
              (f, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q),                              \
              LAT_I_LOG_P8(a, b, c, d, e, g, h, i) LAT_I_LOG_P8(j, k, l, m, n, o, p, q))

#endif
