// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a process has mapped [proc(5), /proc/PID/maps]. */
#ifndef LAT_MAPS_H
#define LAT_MAPS_H

#include <stdint.h>

/**
 * Shows each line of a process's memory map, without its line feed, until `visit` returns
 * non-zero.
 * @return 1 if `visit` ended it, 0 if it never did or there is no such process, -1 if the map
 * can not be read.
 * Context: thread. Cost: some 100 us; 5 KiB of stack.
 */
int lat_i_maps_each(uint32_t pid, int (*visit)(const char *line, void *context), void *context);

#endif
