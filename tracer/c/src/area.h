// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Between the making of the area (area.c) and the rest of the Linux port (linux.c). */
#ifndef LAT_AREA_H
#define LAT_AREA_H

#include <pthread.h>
#include <stdint.h>

/** The file of this process's area; valid once there is one. */
extern char lat_i_area_path[];

/** Whether the area is LATERALIS_AREA's: other programs may join it at any time. */
extern int lat_i_area_shared;
/** Whether this process made the area and has not forked since: no other process registers in it. */
extern int lat_i_area_alone;

/** Makes an area, with rings if a launcher asked for them. With a path it gets this name, unless
 * another area has it by then. `text_bytes`: of the schema that is registered first. Context: start-up. */
void lat_i_area_make(const char *path, uint64_t text_bytes);
/** Whether LATERALIS_RECORD asks this program for records, and its recorder still records. */
int lat_i_launcher_asks(void);
/** Maps an area that another program made. Context: start-up. */
void lat_i_area_join(const char *path);

/** Ends with NULL; set by who loads the tracer into programs that nobody prepared, of which many live
 * for a moment: rings begin with little memory unless events of these subsystems are asked for. NULL:
 * they begin with much. Context: before the area is made. */
extern const char *const *lat_i_frequent_subsystems;

/** The arguments of the program, ended by NULL, where the tracer's loader knows them; else NULL. Context:
 * before the area is made. */
extern char *const *lat_i_arguments;

/** Whether restartable sequences work in this process; finds out where their state is. */
int lat_i_rseq_works(void);
/** Takes a slot of the process table for this process. Async-signal-safe. */
void lat_i_register_process(void);

/** Numbers of the calling process and thread: no system call, unless it was forked past the
 * handlers or libc does not know. Async-signal-safe. */
uint32_t lat_i_this_process(void);
uint32_t lat_i_this_thread(void);

/** Set by who tells the names of all threads by the two functions below. */
extern int lat_i_names_are_told;
/** What a thread is called as it starts. Context: that thread, before its first event. */
void lat_i_begin_thread(const char *name);
/** The calling thread is called so from now on. */
void lat_i_rename_thread(const char *name);
/** Another thread is. */
void lat_i_name_thread(uint32_t thread, const char *name);
/** Number of a thread of this process, 0 if it is not known. No system call. */
uint32_t lat_i_thread_of(pthread_t handle);
/** What the calling thread is called, as far as it was told. */
const char *lat_i_name_of_thread(void);

#endif
