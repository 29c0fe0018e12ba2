// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Filters of events (filter.c). */
#ifndef LAT_FILTER_H
#define LAT_FILTER_H

#include "lat/lat.h"

/** Whether an event with this payload is recorded. Never reads outside of the payload, and ends
 * after LAT_FILTER_STEPS steps, whatever the filter contains. Async-signal-safe. */
int lat_i_filter_passes(const struct lat_area_filter *filter, const struct lat_i_piece *pieces,
                        uint32_t count);
/** The first eight bytes of a payload, missing ones zero: the value that triggers compare. */
uint64_t lat_i_first_word(const struct lat_i_piece *pieces, uint32_t count);

#endif
