// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Interface between registration (register.c) and the port. */
#ifndef LAT_REGISTER_H
#define LAT_REGISTER_H

#include "lat/lat.h"

/** Makes or joins the area, once. `text_bytes`: of the schema that is registered next; space for it is
 * allocated. Context: start-up or dlopen. */
void lat_i_port_start(uint64_t text_bytes);
/** Prevents other processes from publishing schemas in the same area; gives up after 0.1 s, e.g. if
 * one is stopped inside. The kernel releases the lock of a process that dies. @return a token for
 * lat_i_port_area_unlock. Context: start-up or dlopen. */
int lat_i_port_area_lock(void);
void lat_i_port_area_unlock(int token);
/** Allocates the first `bytes` of the schema heap. @return whether they exist. */
int lat_i_port_heap_grow(uint64_t bytes);

/** Allocates the first `bytes` bytes of a table at `offset`. @return whether they exist. */
int lat_i_port_table_grow(uint64_t offset, uint64_t bytes);

/** Whether a list of patterns enables events of a subsystem. */
int lat_i_patterns_enable_any(const char *list, const char *subsystem);
/** Glob with * and ?. */
int lat_i_glob_matches(const char *pattern, size_t pattern_bytes, const char *text,
                       size_t text_bytes);

/** Block registrations while the process forks. */
void lat_i_register_lock(void);
void lat_i_register_unlock(void);

/** Patchable sites of all objects of this process; newest first. */
extern struct lat_i_patch_table *lat_i_patch_tables;

#endif
