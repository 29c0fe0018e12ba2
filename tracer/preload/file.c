// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Files by descriptor: open, read, write, synchronise, transfer. */
#include "file.h"
#include "real.h"

#include <stdarg.h>
#include <string.h>
#include <sys/sendfile.h>

#define PATH_BYTES_MAX 255u

/* The path may be any pointer: it is read only if the kernel could read it. */
void preload_opened(int fd, const char *path)
{
    char cut[PATH_BYTES_MAX + 1];
    const int error = fd >= 0 ? 0 : errno;
    switch (error) {
    case 0:
    case ENOENT:
    case EACCES:
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case EROFS:
    case EPERM:
        if (path != NULL)
            break;
        /* fall through */
    default:
        path = "";
    }
    const size_t bytes = strnlen(path, sizeof cut);
    if (bytes == sizeof cut) {
        memcpy(cut, path, PATH_BYTES_MAX);
        cut[PATH_BYTES_MAX] = 0;
        path = cut;
    }
    RECORD(io_opened, fd, error, path);
}

#define OPEN(directory, path, flags, kind, call)                                                 \
    RECORD(io_open, directory, (uint32_t)(flags), IO_CALL(kind));                                \
    const int fd = call;                                                                         \
    if (LAT_I_UNLIKELY(lat_io_opened_enabled()))                                                 \
        preload_opened(fd, path);                                                                \
    return fd

/* The mode is an argument only if a file may be created; passing 0 otherwise is what the C library
 * does itself. */
#define MODE(flags)                                                                              \
    mode_t mode = 0;                                                                             \
    if (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE) {                        \
        va_list list;                                                                            \
        va_start(list, flags);                                                                   \
        mode = va_arg(list, mode_t);                                                             \
        va_end(list);                                                                            \
    }

PRELOAD_EXPORT int open(const char *path, int flags, ...)
{
    MODE(flags)
    OPEN(AT_FDCWD, path, flags, OPEN, REAL(open)(path, flags, mode));
}
PRELOAD_EXPORT int open64(const char *path, int flags, ...)
{
    MODE(flags)
    OPEN(AT_FDCWD, path, flags, OPEN, REAL(open64)(path, flags, mode));
}
PRELOAD_EXPORT int openat(int at, const char *path, int flags, ...)
{
    MODE(flags)
    OPEN(at, path, flags, OPENAT, REAL(openat)(at, path, flags, mode));
}
PRELOAD_EXPORT int openat64(int at, const char *path, int flags, ...)
{
    MODE(flags)
    OPEN(at, path, flags, OPENAT, REAL(openat64)(at, path, flags, mode));
}
/* Compilers replace open and openat by these when they check that a mode is present. */
PRELOAD_EXPORT int __open_2(const char *path, int flags);
PRELOAD_EXPORT int __open64_2(const char *path, int flags);
PRELOAD_EXPORT int __openat_2(int at, const char *path, int flags);
PRELOAD_EXPORT int __openat64_2(int at, const char *path, int flags);
int __open_2(const char *path, int flags)
{
    OPEN(AT_FDCWD, path, flags, OPEN, REAL(__open_2)(path, flags));
}
int __open64_2(const char *path, int flags)
{
    OPEN(AT_FDCWD, path, flags, OPEN, REAL(__open64_2)(path, flags));
}
int __openat_2(int at, const char *path, int flags)
{
    OPEN(at, path, flags, OPENAT, REAL(__openat_2)(at, path, flags));
}
int __openat64_2(int at, const char *path, int flags)
{
    OPEN(at, path, flags, OPENAT, REAL(__openat64_2)(at, path, flags));
}
PRELOAD_EXPORT int creat(const char *path, mode_t mode)
{
    OPEN(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, CREAT, REAL(creat)(path, mode));
}
PRELOAD_EXPORT int creat64(const char *path, mode_t mode)
{
    OPEN(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, CREAT, REAL(creat64)(path, mode));
}

PRELOAD_EXPORT int close(int fd)
{
    RECORD(io_close, fd, IO_CALL(CLOSE));
    const int result = REAL(close)(fd);
    RECORD(io_closed, fd, (int32_t)preload_outcome(result));
    return result;
}

/* ---- read and write ---------------------------------------------------------- */

PRELOAD_EXPORT ssize_t read(int fd, void *to, size_t n)
{
    PRELOAD_READ(fd, READ, 0, n, REAL(read)(fd, to, n));
}
PRELOAD_EXPORT ssize_t __read_chk(int fd, void *to, size_t n, size_t max);
ssize_t __read_chk(int fd, void *to, size_t n, size_t max)
{
    PRELOAD_READ(fd, READ, 0, n, REAL(__read_chk)(fd, to, n, max));
}
PRELOAD_EXPORT ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    PRELOAD_READ(fd, PREAD, 0, n, REAL(pread)(fd, to, n, at));
}
PRELOAD_EXPORT ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    PRELOAD_READ(fd, PREAD, 0, n, REAL(pread64)(fd, to, n, at));
}
PRELOAD_EXPORT ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t max);
ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t max)
{
    PRELOAD_READ(fd, PREAD, 0, n, REAL(__pread_chk)(fd, to, n, at, max));
}
PRELOAD_EXPORT ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t max);
ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t max)
{
    PRELOAD_READ(fd, PREAD, 0, n, REAL(__pread64_chk)(fd, to, n, at, max));
}
PRELOAD_EXPORT ssize_t readv(int fd, const struct iovec *parts, int n)
{
    PRELOAD_READ(fd, READV, n, 0, REAL(readv)(fd, parts, n));
}
PRELOAD_EXPORT ssize_t preadv(int fd, const struct iovec *parts, int n, off_t at)
{
    PRELOAD_READ(fd, PREADV, n, 0, REAL(preadv)(fd, parts, n, at));
}
PRELOAD_EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int n, off64_t at)
{
    PRELOAD_READ(fd, PREADV, n, 0, REAL(preadv64)(fd, parts, n, at));
}
PRELOAD_EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int n, off_t at, int flags)
{
    PRELOAD_READ(fd, PREADV, n, 0, REAL(preadv2)(fd, parts, n, at, flags));
}
PRELOAD_EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off64_t at, int flags)
{
    PRELOAD_READ(fd, PREADV, n, 0, REAL(preadv64v2)(fd, parts, n, at, flags));
}
PRELOAD_EXPORT ssize_t write(int fd, const void *from, size_t n)
{
    PRELOAD_WRITE(fd, WRITE, 0, n, REAL(write)(fd, from, n));
}
PRELOAD_EXPORT ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    PRELOAD_WRITE(fd, PWRITE, 0, n, REAL(pwrite)(fd, from, n, at));
}
PRELOAD_EXPORT ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    PRELOAD_WRITE(fd, PWRITE, 0, n, REAL(pwrite64)(fd, from, n, at));
}
PRELOAD_EXPORT ssize_t writev(int fd, const struct iovec *parts, int n)
{
    PRELOAD_WRITE(fd, WRITEV, n, 0, REAL(writev)(fd, parts, n));
}
PRELOAD_EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at)
{
    PRELOAD_WRITE(fd, PWRITEV, n, 0, REAL(pwritev)(fd, parts, n, at));
}
PRELOAD_EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at)
{
    PRELOAD_WRITE(fd, PWRITEV, n, 0, REAL(pwritev64)(fd, parts, n, at));
}
PRELOAD_EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int n, off_t at, int flags)
{
    PRELOAD_WRITE(fd, PWRITEV, n, 0, REAL(pwritev2)(fd, parts, n, at, flags));
}
PRELOAD_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t at, int flags)
{
    PRELOAD_WRITE(fd, PWRITEV, n, 0, REAL(pwritev64v2)(fd, parts, n, at, flags));
}

/* ---- synchronise ------------------------------------------------------------- */

#define SYNC(fd, kind, call)                                                                     \
    RECORD(io_sync, fd, IO_CALL(kind));                                                          \
    const int result = call;                                                                     \
    RECORD(io_sync_done, fd, (int32_t)preload_outcome(result));                                  \
    return result

PRELOAD_EXPORT int fsync(int fd)
{
    SYNC(fd, FSYNC, REAL(fsync)(fd));
}
PRELOAD_EXPORT int fdatasync(int fd)
{
    SYNC(fd, FDATASYNC, REAL(fdatasync)(fd));
}

/* ---- transfer ---------------------------------------------------------------- */

#define TRANSFER(from, to, n, kind, call)                                                        \
    RECORD(io_transfer, from, to, n, IO_CALL(kind));                                             \
    const ssize_t result = call;                                                                 \
    RECORD(io_transfer_done, from, to, preload_outcome(result));                                 \
    return result

PRELOAD_EXPORT ssize_t sendfile(int to, int from, off_t *at, size_t n)
{
    TRANSFER(from, to, n, SENDFILE, REAL(sendfile)(to, from, at, n));
}
PRELOAD_EXPORT ssize_t sendfile64(int to, int from, off64_t *at, size_t n)
{
    TRANSFER(from, to, n, SENDFILE, REAL(sendfile64)(to, from, at, n));
}
PRELOAD_EXPORT ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t n,
                              unsigned flags)
{
    TRANSFER(from, to, n, SPLICE, REAL(splice)(from, from_at, to, to_at, n, flags));
}
PRELOAD_EXPORT ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t n,
                                       unsigned flags)
{
    TRANSFER(from, to, n, COPY_FILE_RANGE,
             REAL(copy_file_range)(from, from_at, to, to_at, n, flags));
}
