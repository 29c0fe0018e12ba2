// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Files of <stdio.h>. The C library reads and writes them without calling its own read and
 * write through a name that could be replaced, so the block operations are recorded here; the
 * span's length shows whether it was a copy or a transfer. Single characters and formatted
 * output are not recorded.
 */
#include "file.h"
#include "real.h"

/* Some headers have macros of these names. */
#undef fread_unlocked
#undef fwrite_unlocked

static int fd_of(FILE *file)
{
    const int saved_errno = errno;
    const int fd = file == NULL ? -1 : fileno_unlocked(file); /* -1: memory, or the program's own */
    errno = saved_errno;
    return fd;
}

#define OPEN(kind, path, call)                                                                   \
    RECORD(io_open, AT_FDCWD, 0, IO_CALL(kind));                                                 \
    FILE *result = call;                                                                         \
    if (LAT_I_UNLIKELY(lat_io_opened_enabled()))                                                 \
        preload_opened(result == NULL ? -1 : fd_of(result), path);                               \
    return result

PRELOAD_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    OPEN(FOPEN, path, REAL(fopen)(path, mode));
}
PRELOAD_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    OPEN(FOPEN, path, REAL(fopen64)(path, mode));
}
PRELOAD_EXPORT FILE *freopen(const char *restrict path, const char *restrict mode,
                             FILE *restrict file)
{
    OPEN(FREOPEN, path, REAL(freopen)(path, mode, file));
}
PRELOAD_EXPORT FILE *freopen64(const char *restrict path, const char *restrict mode,
                               FILE *restrict file)
{
    OPEN(FREOPEN, path, REAL(freopen64)(path, mode, file));
}

PRELOAD_EXPORT int fclose(FILE *file)
{
    const int traced = lat_io_close_enabled() | lat_io_closed_enabled();
    const int fd = LAT_I_UNLIKELY(traced) ? fd_of(file) : -1;
    RECORD(io_close, fd, IO_CALL(FCLOSE));
    const int result = REAL(fclose)(file);
    RECORD(io_closed, fd, (int32_t)preload_outcome(result));
    return result;
}

/* Bytes of the complete items that were moved; a file indicates an error by a flag, not by the
 * result. */
#define ITEMS(event, kind, call)                                                                 \
    RECORD(event, fd_of(file), IO_CALL(kind), 0, (uint64_t)(size * n));                          \
    const size_t items = call;                                                                   \
    RECORD(event##_done, fd_of(file), (int64_t)(items * size));                                  \
    return items

PRELOAD_EXPORT size_t fread(void *restrict to, size_t size, size_t n, FILE *restrict file)
{
    ITEMS(io_read, FREAD, REAL(fread)(to, size, n, file));
}
PRELOAD_EXPORT size_t fread_unlocked(void *restrict to, size_t size, size_t n, FILE *restrict file)
{
    ITEMS(io_read, FREAD, REAL(fread_unlocked)(to, size, n, file));
}
PRELOAD_EXPORT size_t __fread_chk(void *to, size_t max, size_t size, size_t n, FILE *file);
size_t __fread_chk(void *to, size_t max, size_t size, size_t n, FILE *file)
{
    ITEMS(io_read, FREAD, REAL(__fread_chk)(to, max, size, n, file));
}
PRELOAD_EXPORT size_t __fread_unlocked_chk(void *to, size_t max, size_t size, size_t n, FILE *file);
size_t __fread_unlocked_chk(void *to, size_t max, size_t size, size_t n, FILE *file)
{
    ITEMS(io_read, FREAD, REAL(__fread_unlocked_chk)(to, max, size, n, file));
}
PRELOAD_EXPORT size_t fwrite(const void *restrict from, size_t size, size_t n, FILE *restrict file)
{
    ITEMS(io_write, FWRITE, REAL(fwrite)(from, size, n, file));
}
PRELOAD_EXPORT size_t fwrite_unlocked(const void *restrict from, size_t size, size_t n,
                                      FILE *restrict file)
{
    ITEMS(io_write, FWRITE, REAL(fwrite_unlocked)(from, size, n, file));
}

/* NULL: all of them. */
PRELOAD_EXPORT int fflush(FILE *file)
{
    RECORD(io_write, fd_of(file), IO_CALL(FFLUSH), 0, 0);
    const int result = REAL(fflush)(file);
    RECORD(io_write_done, fd_of(file), preload_outcome(result));
    return result;
}
