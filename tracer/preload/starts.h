// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The session's table of programs that start and may not be recorded [ring-abi.md §8].
 *
 * The recorder makes the file, each process with this library maps it once. So a process writes into
 * it that has changed its user, its root or its mounts since, that may not write files any more, or that
 * has its parent's memory only: nothing here is a system call.
 */
#ifndef PRELOAD_STARTS_H
#define PRELOAD_STARTS_H

#include <stdint.h>
#include <sys/types.h>

struct preload_start;

/** Maps the table of the session that this process belongs to. Context: set-up. */
__attribute__((visibility("hidden"))) void preload_starts_map(void);
/** Whether there is one. */
__attribute__((visibility("hidden"))) int preload_starts_are_counted(void);
/** Whether a value of LATERALIS_RECORD is of the same session. */
__attribute__((visibility("hidden"))) int preload_is_of_session(const char *request);

/** Counts a program that will not be recorded; `reason`: a letter of ring-abi.md §8. */
__attribute__((visibility("hidden"))) void preload_not_recorded(char reason, const char *path);

/**
 * Notes that this process is about to become a program, which should say that it has begun.
 * @return what preload_start_failed takes; NULL if nothing was noted.
 */
__attribute__((visibility("hidden"))) struct preload_start *preload_starts(const char *path);
/** The program could not be started. */
__attribute__((visibility("hidden"))) void preload_start_failed(struct preload_start *start);
/** Notes that another process has become a program, which may have said so already. */
__attribute__((visibility("hidden"))) void preload_started(pid_t process, const char *path);

/** This process has begun: it is recorded, or was told not to be. Context: set-up. */
__attribute__((visibility("hidden"))) void preload_has_begun(void);

#endif
