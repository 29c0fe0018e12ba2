// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Waiting for descriptors. */
#include "real.h"

#include <limits.h>

#define POLL(n, timeout, epoll_fd, kind, call)                                                   \
    RECORD(io_poll, (uint32_t)(n), timeout, epoll_fd, IO_CALL(kind));                            \
    const int result = call;                                                                     \
    RECORD(io_poll_done, (int32_t)preload_outcome(result));                                      \
    return result

/* Milliseconds, rounded up. The C library reads these structures itself before the call, so
 * reading them here adds no fault; epoll_pwait2 leaves that to the kernel, which may reject them. */
static int32_t milliseconds(int64_t seconds, int64_t rest, int64_t rest_per_ms)
{
    if (seconds < 0 || rest < 0 || seconds >= INT_MAX / 1000 - 1)
        return INT_MAX;
    return (int32_t)(seconds * 1000 + (rest + rest_per_ms - 1) / rest_per_ms);
}
static int32_t of_timespec(const struct timespec *timeout)
{
    return timeout == NULL ? -1 : milliseconds(timeout->tv_sec, timeout->tv_nsec, 1000000);
}
static int32_t of_timeval(const struct timeval *timeout)
{
    return timeout == NULL ? -1 : milliseconds(timeout->tv_sec, timeout->tv_usec, 1000);
}

PRELOAD_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    POLL(n, timeout, -1, POLL, REAL(poll)(fds, n, timeout));
}
PRELOAD_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t max);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t max)
{
    POLL(n, timeout, -1, POLL, REAL(__poll_chk)(fds, n, timeout, max));
}
PRELOAD_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                         const sigset_t *mask)
{
    POLL(n, of_timespec(timeout), -1, PPOLL, REAL(ppoll)(fds, n, timeout, mask));
}
PRELOAD_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                               const sigset_t *mask, size_t max);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t max)
{
    POLL(n, of_timespec(timeout), -1, PPOLL, REAL(__ppoll_chk)(fds, n, timeout, mask, max));
}
PRELOAD_EXPORT int select(int n, fd_set *reading, fd_set *writing, fd_set *urgent,
                          struct timeval *timeout)
{
    POLL(n, of_timeval(timeout), -1, SELECT, REAL(select)(n, reading, writing, urgent, timeout));
}
PRELOAD_EXPORT int pselect(int n, fd_set *reading, fd_set *writing, fd_set *urgent,
                           const struct timespec *timeout, const sigset_t *mask)
{
    POLL(n, of_timespec(timeout), -1, PSELECT,
         REAL(pselect)(n, reading, writing, urgent, timeout, mask));
}
PRELOAD_EXPORT int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    POLL(n, timeout, fd, EPOLL_WAIT, REAL(epoll_wait)(fd, events, n, timeout));
}
PRELOAD_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout,
                               const sigset_t *mask)
{
    POLL(n, timeout, fd, EPOLL_PWAIT, REAL(epoll_pwait)(fd, events, n, timeout, mask));
}
PRELOAD_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n,
                                const struct timespec *timeout, const sigset_t *mask)
{
    POLL(n, timeout == NULL ? -1 : INT_MAX, fd, EPOLL_PWAIT2,
         REAL(epoll_pwait2)(fd, events, n, timeout, mask));
}
