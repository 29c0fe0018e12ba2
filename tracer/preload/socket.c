// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sockets. Addresses and messages belong to the program: none is read. */
#include "file.h"
#include "real.h"

PRELOAD_EXPORT int socket(int domain, int type, int protocol)
{
    const int fd = REAL(socket)(domain, type, protocol);
    RECORD(io_socket, (int32_t)preload_outcome(fd), domain, type, protocol);
    return fd;
}

PRELOAD_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t n)
{
    RECORD(io_connect, fd);
    const int result = REAL(connect)(fd, to, n);
    RECORD(io_connected, fd, (int32_t)preload_outcome(result));
    return result;
}

#define ACCEPT(call)                                                                             \
    RECORD(io_accept, fd);                                                                       \
    const int result = call;                                                                     \
    RECORD(io_accepted, fd, (int32_t)preload_outcome(result));                                   \
    return result

PRELOAD_EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *n)
{
    ACCEPT(REAL(accept)(fd, from, n));
}
PRELOAD_EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t *n, int flags)
{
    ACCEPT(REAL(accept4)(fd, from, n, flags));
}

PRELOAD_EXPORT ssize_t recv(int fd, void *to, size_t n, int flags)
{
    PRELOAD_READ(fd, RECV, 0, n, REAL(recv)(fd, to, n, flags));
}
PRELOAD_EXPORT ssize_t __recv_chk(int fd, void *to, size_t n, size_t max, int flags);
ssize_t __recv_chk(int fd, void *to, size_t n, size_t max, int flags)
{
    PRELOAD_READ(fd, RECV, 0, n, REAL(__recv_chk)(fd, to, n, max, flags));
}
PRELOAD_EXPORT ssize_t recvfrom(int fd, void *to, size_t n, int flags, __SOCKADDR_ARG from,
                                socklen_t *from_n)
{
    PRELOAD_READ(fd, RECVFROM, 0, n, REAL(recvfrom)(fd, to, n, flags, from, from_n));
}
PRELOAD_EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t max, int flags,
                                      __SOCKADDR_ARG from, socklen_t *from_n);
ssize_t __recvfrom_chk(int fd, void *to, size_t n, size_t max, int flags, __SOCKADDR_ARG from,
                       socklen_t *from_n)
{
    PRELOAD_READ(fd, RECVFROM, 0, n, REAL(__recvfrom_chk)(fd, to, n, max, flags, from, from_n));
}
PRELOAD_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    PRELOAD_READ(fd, RECVMSG, 0, 0, REAL(recvmsg)(fd, message, flags));
}
/* The two functions for several messages return a number of messages. */
PRELOAD_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags,
                            struct timespec *timeout)
{
    PRELOAD_READ(fd, RECVMMSG, n, 0, REAL(recvmmsg)(fd, messages, n, flags, timeout));
}

PRELOAD_EXPORT ssize_t send(int fd, const void *from, size_t n, int flags)
{
    PRELOAD_WRITE(fd, SEND, 0, n, REAL(send)(fd, from, n, flags));
}
PRELOAD_EXPORT ssize_t sendto(int fd, const void *from, size_t n, int flags,
                              __CONST_SOCKADDR_ARG to, socklen_t to_n)
{
    PRELOAD_WRITE(fd, SENDTO, 0, n, REAL(sendto)(fd, from, n, flags, to, to_n));
}
PRELOAD_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    PRELOAD_WRITE(fd, SENDMSG, 0, 0, REAL(sendmsg)(fd, message, flags));
}
PRELOAD_EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
    PRELOAD_WRITE(fd, SENDMMSG, n, 0, REAL(sendmmsg)(fd, messages, n, flags));
}
