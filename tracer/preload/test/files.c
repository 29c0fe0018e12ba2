// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Files, pipes and sockets: results and errno are those of the C library. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define FAILS(call, error)                                                                       \
    do {                                                                                         \
        errno = 0;                                                                               \
        CHECK((call) == -1);                                                                     \
        CHECK(errno == (error));                                                                 \
    } while (0)

/* Not a mapped address; volatile, so that compilers do not warn. */
static char *volatile nowhere = (char *)8;
static char *volatile null = NULL;

static void opening(void)
{
    struct stat status;
    char long_name[6000];
    umask(0);
    int fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0641);
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & 07777) == 0641);
    CHECK(close(fd) == 0);
    FAILS(open("file", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    FAILS(open("none", O_RDONLY), ENOENT);
    FAILS(open(nowhere, O_RDONLY), EFAULT);
    FAILS(open(null, O_RDONLY), EFAULT);
    FAILS(openat(99, "file", O_RDONLY), EBADF);
    FAILS(open("file/below", O_RDONLY), ENOTDIR);
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    FAILS(open(long_name, O_RDONLY), ENAMETOOLONG);
    memset(long_name, '/', 3000); /* a long path that exists */
    strcpy(long_name + 3000, "dev/null");
    fd = open(long_name, O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
    fd = open(".", O_TMPFILE | O_RDWR, 0604);
    if (fd >= 0) {
        CHECK(fstat(fd, &status) == 0 && (status.st_mode & 07777) == 0604);
        CHECK(close(fd) == 0);
    }
    fd = openat(AT_FDCWD, "second", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0);
    fd = open64("second", O_RDONLY);
    CHECK(fd >= 0 && close(fd) == 0);
    fd = creat("third", 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    FAILS(close(fd), EBADF);
    FAILS(close(-1), EBADF);
}

static void transfer(void)
{
    char text[32] = {0}, other[32] = {0};
    struct iovec parts[2] = {{text, 3}, {other, 4}};
    const int fd = open("file", O_RDWR);
    CHECK(write(fd, "0123456789", 10) == 10);
    CHECK(pread(fd, text, 4, 3) == 4 && memcmp(text, "3456", 4) == 0);
    CHECK(pwrite(fd, "ab", 2, 1) == 2);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, parts, 2) == 7);
    CHECK(memcmp(text, "0ab", 3) == 0 && memcmp(other, "3456", 4) == 0);
    CHECK(preadv(fd, parts, 2, 1) == 7 && memcmp(text, "ab3", 3) == 0);
    CHECK(pwritev(fd, parts, 2, 0) == 7 && writev(fd, parts, 1) == 3);
    CHECK(preadv2(fd, parts, 2, 0, 0) == 7 && pwritev2(fd, parts, 2, 0, 0) == 7);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    FAILS(read(fd, nowhere, 5), EFAULT);
    FAILS(readv(fd, (struct iovec *)(void *)nowhere, 2), EFAULT);
    FAILS(write(-1, "", 1), EBADF);
    FAILS(fsync(-1), EBADF);
    CHECK(read(fd, text, 0) == 0);

    int ends[2];
    off_t at = 0;
    CHECK(pipe(ends) == 0);
    CHECK(sendfile(ends[1], fd, &at, 5) == 5 && at == 5);
    CHECK(read(ends[0], text, sizeof text) == 5);
    loff_t from = 0;
    CHECK(splice(fd, &from, ends[1], NULL, 4, 0) == 4);
    CHECK(read(ends[0], text, sizeof text) == 4);
    FAILS(sendfile(-1, fd, NULL, 5), EBADF);
    CHECK(close(ends[0]) == 0);
    signal(SIGPIPE, SIG_IGN);
    FAILS(write(ends[1], "x", 1), EPIPE);
    CHECK(close(ends[1]) == 0 && close(fd) == 0);
}

static void streams(void)
{
    char text[100];
    FILE *file = fopen("stream", "w+");
    CHECK(file != NULL && fwrite("abcdef", 2, 3, file) == 3 && fflush(file) == 0);
    rewind(file);
    CHECK(fread(text, 1, sizeof text, file) == 6 && feof(file));
    file = freopen("stream", "r", file);
    CHECK(file != NULL && fread(text, 4, 5, file) == 1 && fclose(file) == 0);
    errno = 0;
    CHECK(fopen("none/none", "r") == NULL && errno == ENOENT);
    errno = 0;
    CHECK(fopen("stream", "bad mode") == NULL && errno == EINVAL);
    file = fmemopen(text, sizeof text, "w");
    CHECK(file != NULL && fwrite("x", 1, 1, file) == 1 && fclose(file) == 0);
    CHECK(fflush(NULL) == 0);
}

static void *serve(void *listener)
{
    char text[10];
    const int fd = accept(*(int *)listener, NULL, NULL);
    CHECK(fd >= 0 && recv(fd, text, sizeof text, 0) == 5);
    CHECK(send(fd, text, 5, MSG_NOSIGNAL) == 5);
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK(recvmsg(fd, &message, 0) == 3);
    CHECK(close(fd) == 0);
    return listener;
}

static void sockets(void)
{
    struct sockaddr name = {.sa_family = AF_UNIX}; /* the kernel chooses the rest */
    struct sockaddr_storage bound;
    socklen_t bound_bytes = sizeof bound;
    char text[10];
    pthread_t thread;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listener >= 0 && bind(listener, &name, sizeof name.sa_family) == 0);
    CHECK(listen(listener, 5) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&bound, &bound_bytes) == 0);
    CHECK(pthread_create(&thread, NULL, serve, &listener) == 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&bound, bound_bytes) == 0);
    CHECK(sendto(fd, "hello", 5, 0, NULL, 0) == 5);
    CHECK(recvfrom(fd, text, sizeof text, 0, NULL, NULL) == 5 && memcmp(text, "hello", 5) == 0);
    struct iovec part = {text, 3};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK(sendmsg(fd, &message, 0) == 3);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(recv(fd, text, 1, 0) == 0);
    FAILS(recv(-1, text, 1, 0), EBADF);
    FAILS(recvmsg(fd, (struct msghdr *)(void *)nowhere, 0), EFAULT);
    FAILS(accept(fd, NULL, NULL), EINVAL);
    FAILS(connect(fd, (struct sockaddr *)(void *)nowhere, 10), EFAULT);
    FAILS(socket(-1, 0, 0), EAFNOSUPPORT);

    int pair[2];
    struct mmsghdr messages[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    CHECK(sendmmsg(pair[0], messages, 2, 0) == 2);
    CHECK(recvmmsg(pair[1], messages, 2, 0, NULL) == 2);
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0 && close(fd) == 0 && close(listener) == 0);
}

static volatile int alarms;
static void on_alarm(int number)
{
    const int saved_errno = errno;
    char byte = (char)number;
    alarms++;
    if (write(-1, &byte, 1) != -1)
        _exit(9);
    errno = saved_errno;
}

static void waiting(void)
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    struct pollfd polled = {ends[0], POLLIN, 0};
    struct timespec soon = {0, 2000000};
    struct timeval soon_too = {0, 2000};
    fd_set set;
    CHECK(poll(&polled, 1, 2) == 0);
    CHECK(ppoll(&polled, 1, &soon, NULL) == 0);
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    CHECK(select(ends[0] + 1, &set, NULL, NULL, &soon_too) == 0 && soon_too.tv_usec == 0);
    FD_SET(ends[0], &set);
    CHECK(pselect(ends[0] + 1, &set, NULL, NULL, &soon, NULL) == 0 && soon.tv_nsec == 2000000);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_wait(epoll, &event, 1, 2) == 0);
    CHECK(epoll_pwait(epoll, &event, 1, 2, NULL) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(epoll_wait(epoll, &event, 1, -1) == 1 && poll(&polled, 1, -1) == 1);
    FAILS(poll((struct pollfd *)(void *)nowhere, 1, 0), EFAULT);
    FAILS(epoll_wait(epoll, &event, 0, 0), EINVAL);
    CHECK(read(ends[0], &byte, 1) == 1);

    /* Interrupted by a handler that is itself traced. */
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 0}, {0, 5000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    FAILS(read(ends[0], &byte, 1), EINTR);
    setitimer(ITIMER_REAL, &timer, NULL);
    FAILS(poll(&polled, 1, -1), EINTR);
    CHECK(alarms == 2);
    CHECK(close(epoll) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void)
{
    char folder[] = "/tmp/preload-files-XXXXXX";
    CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
    opening();
    transfer();
    streams();
    sockets();
    waiting();
    const char *const made[] = {"file", "second", "third", "stream"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        CHECK(unlink(made[i]) == 0);
    CHECK(chdir("/") == 0 && rmdir(folder) == 0);
    puts("files are as they should be");
    return 0;
}
