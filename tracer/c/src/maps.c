// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reads /proc/PID/maps with a small buffer on the stack, without allocation. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "maps.h"
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int lat_i_maps_each(uint32_t pid, int (*visit)(const char *line, void *context), void *context)
{
    char text[4096 + 512]; /* a path has at most 4096 bytes */
    size_t used = 0;
    int found = 0;
    snprintf(text, sizeof text, "/proc/%u/maps", pid);
    const int file = lat_i_open(text, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0)
        return errno == ENOENT ? 0 : -1;
    for (;;) {
        const ssize_t length = lat_i_read(file, text + used, sizeof text - 1 - used);
        if (length <= 0) {
            /* A process that has ended meanwhile has no maps. */
            found = length < 0 && errno != ESRCH ? -1 : 0;
            break;
        }
        used += (size_t)length;
        text[used] = 0;
        char *line = text, *end;
        while ((end = strchr(line, '\n')) != NULL) {
            *end = 0;
            if (visit(line, context)) {
                lat_i_close(file);
                return 1;
            }
            line = end + 1;
        }
        used -= (size_t)(line - text);
        memmove(text, line, used);
        if (used == sizeof text - 1)
            used = 0; /* longer than any valid line: dropped */
    }
    lat_i_close(file);
    return found;
}
