// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The directory of areas (spec/ring-abi.md §2). */
#ifndef LAT_DIRECTORY_H
#define LAT_DIRECTORY_H

#include <stddef.h>

/** Finds or creates the directory of areas. @return whether there is one that belongs to this user alone. */
int lat_i_area_directory(char *path, size_t bytes);

/** Calls `look` for entries of a directory until it returns 0. Reads at most `blocks` blocks of 2 KiB of
 * entries, 0: all. Allocates nothing: this program's own allocator may be the traced one. */
void lat_i_entries_each(const char *path, unsigned blocks,
                        int (*look)(int directory, const char *name, void *argument),
                        void *argument);

#endif
