// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Interface between the creation of the area (area.c) and the rest of the Linux port (linux.c). */
#ifndef LAT_AREA_H
#define LAT_AREA_H

#include <pthread.h>
#include <stdint.h>

/** Path of this process's area; valid once there is one. */
extern char lat_i_area_path[];

/** Whether the area is that of LATERALIS_AREA: other programs may join it at any time. */
extern int lat_i_area_shared;
/** Whether this process made the area and has not forked since: no other process registers in it. */
extern int lat_i_area_alone;

/** Makes an area, with rings if a launcher requested them. With a path the area gets this name, unless
 * another area has it by then. `text_bytes`: of the schema that is registered first. Context: start-up. */
void lat_i_area_make(const char *path, uint64_t text_bytes);
/** Whether LATERALIS_RECORD requests records from this program, and its recorder is still recording. */
int lat_i_launcher_asks(void);
/** Maps an area that another program made. Context: start-up. */
void lat_i_area_join(const char *path);

/** NULL-terminated; set by a loader of the tracer (the preload library) into programs not built for tracing,
 * of which many are short-lived: rings begin with little memory unless events of these subsystems are
 * enabled. NULL: they begin with much memory. Context: before the area is made. */
extern const char *const *lat_i_frequent_subsystems;

/** The arguments of the program, NULL-terminated, if the tracer's loader knows them; else NULL. Context:
 * before the area is made. */
extern char *const *lat_i_arguments;

/** Whether restartable sequences work in this process; also determines the address of their state. */
int lat_i_rseq_works(void);
/** Takes a slot of the process table for this process. Async-signal-safe. */
void lat_i_register_process(void);

/** Ids of the calling process and thread: no system call, unless the process was forked without the
 * handlers or libc does not know them. Async-signal-safe. */
uint32_t lat_i_this_process(void);
uint32_t lat_i_this_thread(void);

/** Set if the names of all threads are reported by the functions below. */
extern int lat_i_names_are_told;
/** Sets the name of a starting thread. Context: that thread, before its first event. */
void lat_i_begin_thread(const char *name);
/** Sets the name of the calling thread. */
void lat_i_rename_thread(const char *name);
/** Sets the name of another thread. */
void lat_i_name_thread(uint32_t thread, const char *name);
/** Id of a thread of this process, 0 if unknown. No system call. */
uint32_t lat_i_thread_of(pthread_t handle);
/** Name of the calling thread, as far as it was reported. */
const char *lat_i_name_of_thread(void);

#endif
