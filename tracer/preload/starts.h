// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The session's table of started programs that may not be recorded [ring-abi.md §8].
 *
 * The recorder creates the file, and each process with this library maps it once. So a process can write to
 * it even if it has since changed its user, root or mounts, may not write files any more, or
 * shares its parent's memory: after the mapping only getpid and stat of /proc are called.
 */
#ifndef PRELOAD_STARTS_H
#define PRELOAD_STARTS_H

#include <stdint.h>
#include <sys/types.h>

struct preload_start;

/** Maps the table of the session of this process. Context: set-up. */
__attribute__((visibility("hidden"))) void preload_starts_map(void);
/** Whether there is one. */
__attribute__((visibility("hidden"))) int preload_starts_are_counted(void);
/** Whether a value of LATERALIS_RECORD belongs to the same session. */
__attribute__((visibility("hidden"))) int preload_is_of_session(const char *request);

/** Counts a program that will not be recorded; `reason`: a letter of ring-abi.md §8. */
__attribute__((visibility("hidden"))) void preload_not_recorded(char reason, const char *path);

/**
 * Notes that this process is about to execute a program, which should report its start.
 * @return the argument for preload_start_failed; NULL if nothing was noted.
 */
__attribute__((visibility("hidden"))) struct preload_start *preload_starts(const char *path);
/** The program could not be started. */
__attribute__((visibility("hidden"))) void preload_start_failed(struct preload_start *start);
/** Notes that another process has executed a program, which may have reported its start already. */
__attribute__((visibility("hidden"))) void preload_started(pid_t process, const char *path);

/** Reports the start of this process: it is recorded, or was requested not to be. Context: set-up. */
__attribute__((visibility("hidden"))) void preload_has_begun(void);

#endif
