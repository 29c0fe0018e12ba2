// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Short texts of set-up: paths, numbers. The C library can do all of this, but lies in memory that a
 * short-lived program does not touch otherwise: each 4 KiB of it cost a page fault, 2 us.
 */
#ifndef LAT_LINE_H
#define LAT_LINE_H

#include <stddef.h>
#include <stdint.h>

/* A text under construction. */
struct lat_i_line {
    char *at;
    char *last; /* position of the NUL of the longest text; NULL: something did not fit */
};

/** Starts a text in a buffer of `bytes` bytes, at least 1. */
static inline struct lat_i_line lat_i_line_in(char *to, size_t bytes)
{
    const struct lat_i_line line = {to, to + bytes - 1};
    return line;
}

/** Adds at most `bytes` characters of a text. */
static inline void lat_i_line_part(struct lat_i_line *line, const char *text, size_t bytes)
{
    for (; bytes != 0 && *text != 0; bytes--, text++) {
        if (line->last == NULL || line->at == line->last) {
            line->last = NULL;
            return;
        }
        *line->at++ = *text;
    }
}

static inline void lat_i_line_add(struct lat_i_line *line, const char *text)
{
    lat_i_line_part(line, text, SIZE_MAX);
}

static inline void lat_i_line_decimal(struct lat_i_line *line, uint64_t value)
{
    char digits[21];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    lat_i_line_add(line, first);
}

/** Adds 16 hexadecimal digits. */
static inline void lat_i_line_hex(struct lat_i_line *line, uint64_t value)
{
    char digits[17];
    for (unsigned at = 0; at < 16; at++)
        digits[at] = "0123456789abcdef"[value >> (60 - 4 * at) & 15];
    digits[16] = 0;
    lat_i_line_add(line, digits);
}

/** Terminates the text. @return whether all of it fitted; if not, the text must not be used. */
static inline int lat_i_line_ends(struct lat_i_line *line)
{
    *line->at = 0;
    return line->last != NULL;
}

/** The number at the start of a text; 0 if there is none, or it is too large. `base`: 10 or 16. */
static inline uint64_t lat_i_number_at(const char *text, unsigned base)
{
    uint64_t value = 0;
    for (;; text++) {
        const unsigned char c = (unsigned char)*text, letter = c | 0x20;
        unsigned digit = base;
        if (c >= '0' && c <= '9')
            digit = c - (unsigned)'0';
        else if (letter >= 'a' && letter <= 'f')
            digit = letter - (unsigned)'a' + 10;
        if (digit >= base)
            return value;
        if (value > (UINT64_MAX - digit) / base)
            return 0;
        value = value * base + digit;
    }
}

/** The first occurrence of the character in `text` … `end`, else `end`. */
static inline const char *lat_i_find(const char *text, const char *end, char wanted)
{
    while (text < end && *text != wanted)
        text++;
    return text;
}

#endif
