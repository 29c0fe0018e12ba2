// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The directory of areas (spec/ring-abi.md §2). */
#ifndef LAT_DIRECTORY_H
#define LAT_DIRECTORY_H

#include <stddef.h>

/** Finds the directory of areas, or makes it. @return whether there is one of this user alone. */
int lat_i_area_directory(char *path, size_t bytes);

/** Calls `look` for entries of a directory until it returns 0. At most `blocks` blocks of 2 KiB of entries
 * are read, 0: all. Allocates nothing: it may be this program's own allocator that is traced. */
void lat_i_entries_each(const char *path, unsigned blocks,
                        int (*look)(int directory, const char *name, void *argument),
                        void *argument);

#endif
