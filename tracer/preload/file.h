// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The spans of reads and writes, for files, streams and sockets alike. */
#ifndef PRELOAD_FILE_H
#define PRELOAD_FILE_H

#include "real.h"

/** Records the end of an open. If `fd` < 0, errno is the reason. Stack: 1.3 KiB. */
PRELOAD_HIDDEN void preload_opened(int fd, const char *path);

/* Body of a wrapper: the event, the call, the event with its result. */
#define PRELOAD_READ(fd, kind, parts, count, call)                                               \
    RECORD(io_read, fd, IO_CALL(kind), (uint16_t)(parts), count);                                \
    const __typeof__(call) result = call;                                                        \
    RECORD(io_read_done, fd, preload_outcome(result));                                           \
    return result

#define PRELOAD_WRITE(fd, kind, parts, count, call)                                              \
    RECORD(io_write, fd, IO_CALL(kind), (uint16_t)(parts), count);                               \
    const __typeof__(call) result = call;                                                        \
    RECORD(io_write_done, fd, preload_outcome(result));                                          \
    return result

#endif
