// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * From a printf format [C11 §7.21.6.1] and the types of its arguments to the text of a pleco
 * event. Features that pleco lacks (`*`, `%n`, `%m`, positions) and conversions that do not match their
 * argument are replaced, so that the text always compiles: an unusual format must not cost events.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log_text.h"

#include <stdio.h>
#include <string.h>

/* Longer descriptions are truncated; the missing conversions are appended. */
#define DESCRIPTION_BYTES 2000u
/* Maximum width and precision in pleco. */
#define WIDTH_MAX 1000u

void lat_i_text_add(struct lat_i_text *text, const char *bytes, size_t count)
{
    if (count > text->size - text->used) {
        text->overflowed = 1;
        count = text->size - text->used;
    }
    if (count != 0)
        memcpy(text->start + text->used, bytes, count);
    text->used += count;
}

void lat_i_text_string(struct lat_i_text *text, const char *string)
{
    lat_i_text_add(text, string, strlen(string));
}

const char *lat_i_format_text(const struct lat_i_format *format)
{
    return (const char *)&format->format + format->format;
}

const char *lat_i_format_file(const struct lat_i_format *format)
{
    return (const char *)&format->file + format->file;
}

static unsigned type_of(const struct lat_i_format *format, uint32_t argument)
{
    return format->types[argument / 8] >> argument % 8 * 4 & 15u;
}

static uint32_t argument_count(const struct lat_i_format *format)
{
    uint32_t count = 0;
    while (count < LAT_I_LOG_ARGUMENTS && type_of(format, count) != LAT_I_LOG_NONE)
        count++;
    return count;
}

/* ---- conversions --------------------------------------------------------------- */

/* One conversion, starting at its `%`. */
struct conversion {
    const char *flags;
    uint32_t flag_count;
    int32_t width; /* -1 none, -2 `*` */
    int32_t precision;
    char letter; /* 0: the format ends inside */
    const char *end;
};

static const char *read_number(const char *at, int32_t *number)
{
    uint32_t value = 0;
    if (*at == '*') {
        *number = -2;
        return at + 1;
    }
    for (; *at >= '0' && *at <= '9'; at++)
        value = value > WIDTH_MAX ? value : value * 10 + (uint32_t)(*at - '0');
    *number = value > WIDTH_MAX ? -1 : (int32_t)value;
    return at;
}

static struct conversion read_conversion(const char *at)
{
    struct conversion found = {NULL, 0, -1, -1, 0, NULL};
    at++;
    for (;;) {
        found.flags = at;
        while (*at != 0 && strchr("-+ #0'I", *at) != NULL)
            at++;
        found.flag_count = (uint32_t)(at - found.flags);
        if (*at == '*' || (*at >= '1' && *at <= '9'))
            at = read_number(at, &found.width);
        if (*at != '$')
            break;
        at++; /* a position: arguments are printed in order anyway */
        found.width = -1;
    }
    if (*at == '.')
        at = read_number(at + 1, &found.precision);
    while (*at != 0 && strchr("hljztLq", *at) != NULL)
        at++;
    found.letter = *at;
    found.end = at + (*at != 0);
    return found;
}

static int is_among(char letter, const char *letters)
{
    return letter != 0 && strchr(letters, letter) != NULL;
}

/* The conversion letter for a type: that of the format, if pleco accepts it for the type. */
static char suitable_letter(unsigned type, char letter)
{
    switch (type) {
    case LAT_I_LOG_F32:
    case LAT_I_LOG_F64:
        return is_among(letter, "fFeEgGaA") ? letter : 'g';
    case LAT_I_LOG_STRING:
        return letter == 's' ? 's' : 'p';
    case LAT_I_LOG_POINTER:
        return is_among(letter, "diuxXop") ? letter : 'p';
    case LAT_I_LOG_BOOL:
        return is_among(letter, "diuxXo") ? letter : 'd';
    case LAT_I_LOG_I8:
    case LAT_I_LOG_I16:
    case LAT_I_LOG_I32:
    case LAT_I_LOG_I64:
        return is_among(letter, "diuxXoc") ? letter : letter == 'p' ? 'x' : 'd';
    default:
        return is_among(letter, "diuxXoc") ? letter : letter == 'p' ? 'x' : 'u';
    }
}

/* Appends the conversion without the parts that are not kept. */
static void add_conversion(struct lat_i_text *out, const struct conversion *conversion, char letter)
{
    char number[16];
    lat_i_text_string(out, "%");
    /* Another letter may not support the same flags. */
    if (letter == conversion->letter) {
        for (uint32_t i = 0; i < conversion->flag_count; i++)
            if (conversion->flags[i] != 'I')
                lat_i_text_add(out, &conversion->flags[i], 1);
        if (conversion->width > 0) {
            snprintf(number, sizeof number, "%d", (int)conversion->width);
            lat_i_text_string(out, number);
        }
        if (conversion->precision >= 0) {
            snprintf(number, sizeof number, ".%d", (int)conversion->precision);
            lat_i_text_string(out, number);
        }
    }
    lat_i_text_add(out, &letter, 1);
}

static int is_star_argument(const struct lat_i_format *format, uint32_t argument)
{
    return argument < LAT_I_LOG_ARGUMENTS && (type_of(format, argument) == LAT_I_LOG_I32 ||
                                              type_of(format, argument) == LAT_I_LOG_U32);
}

/* Takes the argument of a `*`, which is not recorded. */
static void take_star(struct lat_i_format *format, uint32_t *argument)
{
    if (is_star_argument(format, *argument))
        format->width = (uint16_t)(format->width | 1u << *argument);
    if (*argument < argument_count(format))
        (*argument)++;
}

/* Rewrites the format for pleco, and sets the masks. */
static void rewrite(struct lat_i_text *out, struct lat_i_format *format)
{
    const uint32_t count = argument_count(format);
    const char *at = lat_i_format_text(format);
    uint32_t next = 0;
    format->width = format->bounded = format->address = 0;
    while (*at != 0 && out->used < DESCRIPTION_BYTES) {
        if (*at != '%') {
            lat_i_text_add(out, at++, 1);
            continue;
        }
        if (at[1] == '%') {
            lat_i_text_string(out, "%%");
            at += 2;
            continue;
        }
        const struct conversion conversion = read_conversion(at);
        if (conversion.width == -2)
            take_star(format, &next);
        if (conversion.precision == -2)
            take_star(format, &next);
        if (conversion.letter == 'm' || conversion.letter == 0 || next >= count) {
            /* Prints no argument: the text itself, with its `%` doubled. */
            lat_i_text_string(out, "%");
            lat_i_text_add(out, at, (size_t)(conversion.end - at));
        } else {
            const unsigned type = type_of(format, next);
            const char letter = suitable_letter(type, conversion.letter);
            if (type == LAT_I_LOG_STRING && letter != 's')
                format->address = (uint16_t)(format->address | 1u << next);
            if (type == LAT_I_LOG_STRING && letter == 's' && conversion.precision != -1)
                format->bounded = (uint16_t)(format->bounded | 1u << next);
            add_conversion(out, &conversion, letter);
            next++;
        }
        at = conversion.end;
    }
    for (; next < count; next++) {
        const struct conversion none = {"", 0, -1, -1, 0, NULL};
        const unsigned type = type_of(format, next);
        if (type == LAT_I_LOG_STRING)
            format->address = (uint16_t)(format->address | 1u << next);
        lat_i_text_string(out, " ");
        add_conversion(out, &none, suitable_letter(type, 0));
    }
    if (out->used == 0)
        lat_i_text_string(out, " "); /* pleco requires a non-empty format */
}

size_t lat_i_log_precision(const struct lat_i_format *format, uint32_t argument, int star)
{
    uint32_t next = 0;
    for (const char *at = lat_i_format_text(format); *at != 0;) {
        if (*at != '%' || at[1] == '%') {
            at += *at == '%' ? 2 : 1;
            continue;
        }
        const struct conversion conversion = read_conversion(at);
        next += (conversion.width == -2 ? 1u : 0u) + (conversion.precision == -2 ? 1u : 0u);
        if (conversion.letter != 'm') {
            if (next == argument && conversion.precision == -2)
                return star < 0 ? SIZE_MAX : (size_t)star;
            if (next == argument)
                return conversion.precision < 0 ? SIZE_MAX : (size_t)conversion.precision;
            next++;
        }
        at = conversion.end;
    }
    return SIZE_MAX;
}

/* ---- canonical text -------------------------------------------------------------- */

/* Code point at `at` and its length; a byte that is not UTF-8 is returned unchanged. */
static uint32_t code_point(const unsigned char *at, size_t left, size_t *length)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = at[0];
    const size_t bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t value = bytes == 1 ? first : first & (0x7fu >> bytes);
    *length = 1;
    if (bytes == 1)
        return value;
    if (first < 0xc2 || first > 0xf4 || bytes > left)
        return first;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return first;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return first;
    *length = bytes;
    return value;
}

/* Appends a string literal in pleco's canonical form: ASCII only, shortest escapes. */
static void add_literal(struct lat_i_text *text, const char *bytes, size_t count)
{
    int ends_in_number = 0;
    lat_i_text_string(text, "\"");
    for (size_t i = 0, length; i < count; i += length) {
        const uint32_t c = code_point((const unsigned char *)bytes + i, count - i, &length);
        char number[16];
        /* Keeps a digit from becoming part of the preceding escape. */
        if (ends_in_number && c < 0x80 && is_among((char)c, "0123456789abcdefABCDEF"))
            lat_i_text_string(text, "\\&");
        ends_in_number = 0;
        if (c == '"' || c == '\\') {
            lat_i_text_string(text, "\\");
            lat_i_text_add(text, &bytes[i], 1);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            lat_i_text_string(text, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (c >= ' ' && c <= '~') {
            lat_i_text_add(text, &bytes[i], 1);
        } else {
            snprintf(number, sizeof number, "\\x%x", (unsigned)c);
            lat_i_text_string(text, number);
            ends_in_number = 1;
        }
    }
    lat_i_text_string(text, "\"");
}

void lat_i_format_describe(struct lat_i_text *text, struct lat_i_format *format)
{
    static const char *const names[] = {"",    "u8",  "u16", "u32", "u64",  "i8",     "i16",
                                        "i32", "i64", "f32", "f64", "bool", "string", "u64 @hex"};
    /* The last conversions are appended after the truncated text, 3 bytes each. */
    char bytes[DESCRIPTION_BYTES + 1100];
    struct lat_i_text description = {bytes, 0, sizeof bytes, 0};
    const char *separator = "";

    rewrite(&description, format);
    add_literal(text, bytes, description.used);
    lat_i_text_string(text, " (");
    for (uint32_t i = 0; i < argument_count(format); i++) {
        char field[48];
        unsigned type = type_of(format, i);
        if (((uint32_t)format->width >> i & 1u) != 0)
            continue;
        if (((uint32_t)format->address >> i & 1u) != 0)
            type = LAT_I_LOG_POINTER;
        snprintf(field, sizeof field, "%sa%u: %s", separator, (unsigned)i, names[type % 14]);
        lat_i_text_string(text, field);
        separator = ", ";
    }
    lat_i_text_string(text, ") format");
}
