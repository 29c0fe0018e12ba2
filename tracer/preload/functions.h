// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Table of all functions of the C library that this library wraps:
 *
 *     F(result type, name, (parameters), (arguments), result if the function does not exist)
 *
 * real.c makes a pointer to the real function from each line; real.h documents its use.
 */
#ifndef PRELOAD_FUNCTIONS_H
#define PRELOAD_FUNCTIONS_H

/* errno for the functions that report by it. */
#define ABSENT_FD (errno = ENOSYS, -1)

/* A missing function allocates no memory. */
#define ABSENT_BLOCK (errno = ENOMEM, NULL)

#define PRELOAD_ALLOCATION(F)                                                                    \
    F(void *, malloc, (size_t size), (size), ABSENT_BLOCK)                                       \
    F(void *, calloc, (size_t count, size_t size), (count, size), ABSENT_BLOCK)                  \
    F(void *, realloc, (void *old, size_t size), (old, size), ABSENT_BLOCK)                      \
    F(void, free, (void *block), (block), (void)0)                                               \
    F(int, posix_memalign, (void **block, size_t align, size_t size), (block, align, size),      \
      ENOMEM)                                                                                    \
    F(void *, aligned_alloc, (size_t align, size_t size), (align, size), ABSENT_BLOCK)           \
    F(void *, memalign, (size_t align, size_t size), (align, size), ABSENT_BLOCK)                \
    F(void *, valloc, (size_t size), (size), ABSENT_BLOCK)                                       \
    F(void *, pvalloc, (size_t size), (size), ABSENT_BLOCK)

#define PRELOAD_LOCKS(F)                                                                         \
    F(int, pthread_mutex_lock, (pthread_mutex_t * m), (m), ENOSYS)                               \
    F(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m), ENOSYS)                            \
    F(int, pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t), (m, t),     \
      ENOSYS)                                                                                    \
    F(int, pthread_mutex_clocklock,                                                              \
      (pthread_mutex_t * m, clockid_t clock, const struct timespec *t), (m, clock, t), ENOSYS)   \
    F(int, pthread_mutex_unlock, (pthread_mutex_t * m), (m), ENOSYS)                             \
    F(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l), ENOSYS)                           \
    F(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l), ENOSYS)                        \
    F(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, const struct timespec *t), (l, t), \
      ENOSYS)                                                                                    \
    F(int, pthread_rwlock_clockrdlock,                                                           \
      (pthread_rwlock_t * l, clockid_t clock, const struct timespec *t), (l, clock, t), ENOSYS)  \
    F(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l), ENOSYS)                           \
    F(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l), ENOSYS)                        \
    F(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, const struct timespec *t), (l, t), \
      ENOSYS)                                                                                    \
    F(int, pthread_rwlock_clockwrlock,                                                           \
      (pthread_rwlock_t * l, clockid_t clock, const struct timespec *t), (l, clock, t), ENOSYS)  \
    F(int, pthread_rwlock_unlock, (pthread_rwlock_t * l), (l), ENOSYS)                           \
    F(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t * m), (c, m), ENOSYS)         \
    F(int, pthread_cond_timedwait,                                                               \
      (pthread_cond_t * c, pthread_mutex_t * m, const struct timespec *t), (c, m, t), ENOSYS)    \
    F(int, pthread_cond_clockwait,                                                               \
      (pthread_cond_t * c, pthread_mutex_t * m, clockid_t clock, const struct timespec *t),      \
      (c, m, clock, t), ENOSYS)                                                                  \
    F(int, pthread_cond_signal, (pthread_cond_t * c), (c), ENOSYS)                               \
    F(int, pthread_cond_broadcast, (pthread_cond_t * c), (c), ENOSYS)                            \
    F(int, sem_wait, (sem_t * s), (s), ABSENT_FD)                                                \
    F(int, sem_trywait, (sem_t * s), (s), ABSENT_FD)                                             \
    F(int, sem_timedwait, (sem_t * s, const struct timespec *t), (s, t), ABSENT_FD)              \
    F(int, sem_clockwait, (sem_t * s, clockid_t clock, const struct timespec *t), (s, clock, t), \
      ABSENT_FD)                                                                                 \
    F(int, sem_post, (sem_t * s), (s), ABSENT_FD)                                                \
    F(int, pthread_barrier_wait, (pthread_barrier_t * b), (b), ENOSYS)

#define PRELOAD_FILES(F)                                                                         \
    F(int, open, (const char *path, int flags, mode_t mode), (path, flags, mode), ABSENT_FD)     \
    F(int, open64, (const char *path, int flags, mode_t mode), (path, flags, mode), ABSENT_FD)   \
    F(int, openat, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode),  \
      ABSENT_FD)                                                                                 \
    F(int, openat64, (int at, const char *path, int flags, mode_t mode),                         \
      (at, path, flags, mode), ABSENT_FD)                                                        \
    F(int, __open_2, (const char *path, int flags), (path, flags), ABSENT_FD)                    \
    F(int, __open64_2, (const char *path, int flags), (path, flags), ABSENT_FD)                  \
    F(int, __openat_2, (int at, const char *path, int flags), (at, path, flags), ABSENT_FD)      \
    F(int, __openat64_2, (int at, const char *path, int flags), (at, path, flags), ABSENT_FD)    \
    F(int, creat, (const char *path, mode_t mode), (path, mode), ABSENT_FD)                      \
    F(int, creat64, (const char *path, mode_t mode), (path, mode), ABSENT_FD)                    \
    F(int, close, (int fd), (fd), ABSENT_FD)                                                     \
    F(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), ABSENT_FD)                       \
    F(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t max), (fd, to, n, max),           \
      ABSENT_FD)                                                                                 \
    F(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), ABSENT_FD)        \
    F(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), ABSENT_FD)    \
    F(ssize_t, __pread_chk, (int fd, void *to, size_t n, off_t at, size_t max),                  \
      (fd, to, n, at, max), ABSENT_FD)                                                           \
    F(ssize_t, __pread64_chk, (int fd, void *to, size_t n, off64_t at, size_t max),              \
      (fd, to, n, at, max), ABSENT_FD)                                                           \
    F(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), ABSENT_FD)             \
    F(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at),         \
      ABSENT_FD)                                                                                 \
    F(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at),     \
      ABSENT_FD)                                                                                 \
    F(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags),             \
      (fd, v, n, at, flags), ABSENT_FD)                                                          \
    F(ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags),        \
      (fd, v, n, at, flags), ABSENT_FD)                                                          \
    F(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), ABSENT_FD)            \
    F(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at),        \
      ABSENT_FD)                                                                                 \
    F(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at),    \
      ABSENT_FD)                                                                                 \
    F(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), ABSENT_FD)            \
    F(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at),        \
      ABSENT_FD)                                                                                 \
    F(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at),    \
      ABSENT_FD)                                                                                 \
    F(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags),            \
      (fd, v, n, at, flags), ABSENT_FD)                                                          \
    F(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags),       \
      (fd, v, n, at, flags), ABSENT_FD)                                                          \
    F(int, fsync, (int fd), (fd), ABSENT_FD)                                                     \
    F(int, fdatasync, (int fd), (fd), ABSENT_FD)                                                 \
    F(ssize_t, sendfile, (int to, int from, off_t *at, size_t n), (to, from, at, n), ABSENT_FD)  \
    F(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t n), (to, from, at, n),         \
      ABSENT_FD)                                                                                 \
    F(ssize_t, splice,                                                                           \
      (int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags),            \
      (from, from_at, to, to_at, n, flags), ABSENT_FD)                                           \
    F(ssize_t, copy_file_range,                                                                  \
      (int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags),            \
      (from, from_at, to, to_at, n, flags), ABSENT_FD)

#define PRELOAD_STREAMS(F)                                                                       \
    F(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)                   \
    F(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)                 \
    F(FILE *, freopen, (const char *path, const char *mode, FILE *file), (path, mode, file),     \
      NULL)                                                                                      \
    F(FILE *, freopen64, (const char *path, const char *mode, FILE *file), (path, mode, file),   \
      NULL)                                                                                      \
    F(int, fclose, (FILE * file), (file), EOF)                                                   \
    F(size_t, fread, (void *to, size_t size, size_t n, FILE *file), (to, size, n, file), 0)      \
    F(size_t, fread_unlocked, (void *to, size_t size, size_t n, FILE *file),                     \
      (to, size, n, file), 0)                                                                    \
    F(size_t, __fread_chk, (void *to, size_t max, size_t size, size_t n, FILE *file),            \
      (to, max, size, n, file), 0)                                                               \
    F(size_t, __fread_unlocked_chk, (void *to, size_t max, size_t size, size_t n, FILE *file),   \
      (to, max, size, n, file), 0)                                                               \
    F(size_t, fwrite, (const void *from, size_t size, size_t n, FILE *file),                     \
      (from, size, n, file), 0)                                                                  \
    F(size_t, fwrite_unlocked, (const void *from, size_t size, size_t n, FILE *file),            \
      (from, size, n, file), 0)                                                                  \
    F(int, fflush, (FILE * file), (file), EOF)

#define PRELOAD_SOCKETS(F)                                                                       \
    F(int, socket, (int domain, int type, int protocol), (domain, type, protocol), ABSENT_FD)    \
    F(int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t n), (fd, to, n), ABSENT_FD)      \
    F(int, accept, (int fd, __SOCKADDR_ARG from, socklen_t *n), (fd, from, n), ABSENT_FD)        \
    F(int, accept4, (int fd, __SOCKADDR_ARG from, socklen_t *n, int flags),                      \
      (fd, from, n, flags), ABSENT_FD)                                                           \
    F(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), ABSENT_FD)     \
    F(ssize_t, __recv_chk, (int fd, void *to, size_t n, size_t max, int flags),                  \
      (fd, to, n, max, flags), ABSENT_FD)                                                        \
    F(ssize_t, recvfrom,                                                                         \
      (int fd, void *to, size_t n, int flags, __SOCKADDR_ARG from, socklen_t *from_n),           \
      (fd, to, n, flags, from, from_n), ABSENT_FD)                                               \
    F(ssize_t, __recvfrom_chk,                                                                   \
      (int fd, void *to, size_t n, size_t max, int flags, __SOCKADDR_ARG from,                   \
       socklen_t *from_n),                                                                       \
      (fd, to, n, max, flags, from, from_n), ABSENT_FD)                                          \
    F(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), ABSENT_FD)        \
    F(int, recvmmsg,                                                                             \
      (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t),                    \
      (fd, m, n, flags, t), ABSENT_FD)                                                           \
    F(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags),      \
      ABSENT_FD)                                                                                 \
    F(ssize_t, sendto,                                                                           \
      (int fd, const void *from, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_n),  \
      (fd, from, n, flags, to, to_n), ABSENT_FD)                                                 \
    F(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), ABSENT_FD)  \
    F(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags),      \
      ABSENT_FD)

#define PRELOAD_POLLS(F)                                                                         \
    F(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout), ABSENT_FD)     \
    F(int, __poll_chk, (struct pollfd * fds, nfds_t n, int timeout, size_t max),                 \
      (fds, n, timeout, max), ABSENT_FD)                                                         \
    F(int, ppoll,                                                                                \
      (struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *mask),           \
      (fds, n, t, mask), ABSENT_FD)                                                              \
    F(int, __ppoll_chk,                                                                          \
      (struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *mask,            \
       size_t max),                                                                              \
      (fds, n, t, mask, max), ABSENT_FD)                                                         \
    F(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t),                  \
      (n, r, w, e, t), ABSENT_FD)                                                                \
    F(int, pselect,                                                                              \
      (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *mask),  \
      (n, r, w, e, t, mask), ABSENT_FD)                                                          \
    F(int, epoll_wait, (int fd, struct epoll_event *e, int n, int timeout),                      \
      (fd, e, n, timeout), ABSENT_FD)                                                            \
    F(int, epoll_pwait,                                                                          \
      (int fd, struct epoll_event *e, int n, int timeout, const sigset_t *mask),                 \
      (fd, e, n, timeout, mask), ABSENT_FD)                                                      \
    F(int, epoll_pwait2,                                                                         \
      (int fd, struct epoll_event *e, int n, const struct timespec *t, const sigset_t *mask),    \
      (fd, e, n, t, mask), ABSENT_FD)

#define PRELOAD_THREADS(F)                                                                       \
    F(int, pthread_create,                                                                       \
      (pthread_t * handle, const pthread_attr_t *a, void *(*routine)(void *), void *argument),   \
      (handle, a, routine, argument), ENOSYS)                                                    \
    F(int, pthread_join, (pthread_t handle, void **result), (handle, result), ENOSYS)            \
    F(int, pthread_timedjoin_np, (pthread_t handle, void **result, const struct timespec *t),    \
      (handle, result, t), ENOSYS)                                                               \
    F(int, pthread_clockjoin_np,                                                                 \
      (pthread_t handle, void **result, clockid_t clock, const struct timespec *t),              \
      (handle, result, clock, t), ENOSYS)                                                        \
    F(int, prctl, (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),  \
      (option, a, b, c, d), ABSENT_FD)                                                           \
    F(int, pthread_setname_np, (pthread_t handle, const char *name), (handle, name), ENOSYS)     \
    F(int, clone,                                                                                \
      (int (*function)(void *), void *stack, int flags, void *argument, pid_t *parent_tid,       \
       void *tls, pid_t *child_tid),                                                             \
      (function, stack, flags, argument, parent_tid, tls, child_tid), ABSENT_FD)                 \
    F(pid_t, _Fork, (void), (), ABSENT_FD)

#define PRELOAD_PROGRAMS(F)                                                                      \
    F(int, execve, (const char *path, char *const argv[], char *const envp[]),                   \
      (path, argv, envp), ABSENT_FD)                                                             \
    F(int, execvpe, (const char *file, char *const argv[], char *const envp[]),                  \
      (file, argv, envp), ABSENT_FD)                                                             \
    F(int, fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp),          \
      ABSENT_FD)                                                                                 \
    F(int, execveat,                                                                             \
      (int at, const char *path, char *const argv[], char *const envp[], int flags),             \
      (at, path, argv, envp, flags), ABSENT_FD)                                                  \
    F(int, posix_spawn,                                                                          \
      (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,                 \
       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),             \
      (pid, path, actions, attributes, argv, envp), ENOSYS)                                      \
    F(int, posix_spawnp,                                                                         \
      (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,                 \
       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),             \
      (pid, file, actions, attributes, argv, envp), ENOSYS)

#define PRELOAD_FUNCTIONS(F)                                                                     \
    PRELOAD_ALLOCATION(F)                                                                        \
    PRELOAD_LOCKS(F)                                                                             \
    PRELOAD_FILES(F)                                                                             \
    PRELOAD_STREAMS(F)                                                                           \
    PRELOAD_SOCKETS(F)                                                                           \
    PRELOAD_POLLS(F)                                                                             \
    PRELOAD_THREADS(F)                                                                           \
    PRELOAD_PROGRAMS(F)

#endif
