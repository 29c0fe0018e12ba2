// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The schema text of format-string events (log_text.c), for their registration (log.c). */
#ifndef LAT_LOG_TEXT_H
#define LAT_LOG_TEXT_H

#include "lat/log.h"

/** Text that grows in a buffer of fixed size. An overflow is discarded and noted. */
struct lat_i_text {
    char *start;
    size_t used;
    size_t size;
    int overflowed;
};
void lat_i_text_add(struct lat_i_text *text, const char *bytes, size_t count);
void lat_i_text_string(struct lat_i_text *text, const char *string);

/** Format and file name of a descriptor. */
const char *lat_i_format_text(const struct lat_i_format *format);
const char *lat_i_format_file(const struct lat_i_format *format);

/**
 * Appends `"format" (a0: u32, …) format` in the canonical spelling of spec/schema-language.md, and
 * sets the descriptor's masks. Every conversion in it matches its field.
 */
void lat_i_format_describe(struct lat_i_text *text, struct lat_i_format *format);

#endif
