// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Between the making of the area (area.c) and the rest of the Linux port (linux.c). */
#ifndef LAT_AREA_H
#define LAT_AREA_H

#include <stdint.h>

/** The file of this process's area; valid once there is one. */
extern char lat_i_area_path[];

/** Whether the area is LATERALIS_AREA's: other programs may join it at any time. */
extern int lat_i_area_shared;

/** Makes an area, with rings if a launcher asked for them. With a path it gets this name, unless
 * another area has it by then. Context: start-up. */
void lat_i_area_make(const char *path);
/** Maps an area that another program made. Context: start-up. */
void lat_i_area_join(const char *path);
/** Whether a line of /proc/PID/maps shows this process's area. */
int lat_i_area_in_line(const char *line, void *unused);

/** Whether restartable sequences work in this process; finds out where their state is. */
int lat_i_rseq_works(void);
/** Takes a slot of the process table. Async-signal-safe, but for errno. */
void lat_i_register_process(uint32_t pid);

#endif
