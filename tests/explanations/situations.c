// SPDX-License-Identifier: Apache-2.0 OR MIT
// Requests with a known cause of delay: `situations NAME` makes one request that takes about 30 ms, caused
// only by the situation of that name. Threads have names, so that an explanation can be checked.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "request_events.h"

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            perror(#what);                                                                                   \
            exit(3);                                                                                         \
        }                                                                                                    \
    } while (0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t started, semaphore;
static int is_set, ends[2], event_fd;
static pid_t child;
static pthread_t helper, second, hogs[2];
static int has_helper, has_second, hog_count;

static void name(const char *text) { prctl(PR_SET_NAME, text); }

static void nap(int ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

// Measured in processor time, not wall time: other programs do not shorten it.
static void burn(int ms) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    int64_t until = now.tv_sec * 1000000000LL + now.tv_nsec + ms * 1000000LL;
    do {
        for (volatile int i = 0; i < 20000; i++) {
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000LL + now.tv_nsec < until);
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void take(void *(*does)(void *), const char *as) {
    CHECK(pthread_create(&helper, 0, does, (void *)as) == 0);
    has_helper = 1;
    sem_wait(&started);
    // The other thread is in the middle of its activity now.
    nap(2);
}

// Helpers that hold the lock during their activity.
static void *sleeps(void *unused) {
    (void)unused;
    name("holder");
    pthread_mutex_lock(&lock);
    sem_post(&started);
    nap(30);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *burns(void *unused) {
    (void)unused;
    name("holder");
    pthread_mutex_lock(&lock);
    sem_post(&started);
    burn(30);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *reads(void *unused) {
    (void)unused;
    char byte;
    name("holder");
    pthread_mutex_lock(&lock);
    sem_post(&started);
    CHECK(read(ends[0], &byte, 1) == 1);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *is_preempted(void *unused) {
    (void)unused;
    name("holder");
    pin(1);
    pthread_mutex_lock(&lock);
    sem_post(&started);
    burn(20);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *syncs(void *unused) {
    (void)unused;
    static char block[1 << 20];
    name("holder");
    pthread_mutex_lock(&lock);
    sem_post(&started);
    int file = open("explained.data", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    CHECK(file >= 0);
    for (int i = 0; i < 24; i++)
        CHECK(write(file, block, sizeof block) == (ssize_t)sizeof block);
    fsync(file);
    close(file);
    unlink("explained.data");
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *waits_for_inner(void *unused) {
    (void)unused;
    name("holder");
    pthread_mutex_lock(&lock);
    sem_post(&started);
    pthread_mutex_lock(&inner);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *holds_inner(void *unused) {
    (void)unused;
    name("innermost");
    pthread_mutex_lock(&inner);
    sem_post(&started);
    nap(40);
    pthread_mutex_unlock(&inner);
    return 0;
}
static void *writes_lock(void *unused) {
    (void)unused;
    name("holder");
    pthread_rwlock_wrlock(&shared_lock);
    sem_post(&started);
    nap(30);
    pthread_rwlock_unlock(&shared_lock);
    return 0;
}
// Helpers that work first and then end a wait.
static void *signals(void *unused) {
    (void)unused;
    name("worker");
    sem_post(&started);
    burn(30);
    pthread_mutex_lock(&lock);
    is_set = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
    return 0;
}
static void *posts(void *unused) {
    (void)unused;
    name("worker");
    sem_post(&started);
    burn(30);
    sem_post(&semaphore);
    return 0;
}
static void *arrives(void *unused) {
    (void)unused;
    name("worker");
    sem_post(&started);
    burn(30);
    pthread_barrier_wait(&barrier);
    return 0;
}
static void *finishes(void *unused) {
    (void)unused;
    name("worker");
    sem_post(&started);
    burn(30);
    return 0;
}
static void *writes_event(void *unused) {
    (void)unused;
    uint64_t one = 1;
    name("worker");
    sem_post(&started);
    burn(30);
    CHECK(write(event_fd, &one, 8) == 8);
    return 0;
}
static void *hog(void *unused) {
    (void)unused;
    name("hog");
    pin(1);
    burn(60);
    return 0;
}
static void add_hogs(int count) {
    for (; hog_count < count; hog_count++)
        CHECK(pthread_create(&hogs[hog_count], 0, hog, 0) == 0);
    nap(5);
}

static void lock_and_unlock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void request(const char *what) {
    char byte = 0;
    int status;
    uint64_t count;
    if (!strcmp(what, "sleep")) {
        lat_explained_begin(1);
        nap(30);
    } else if (!strcmp(what, "timerfd")) {
        int timer = timerfd_create(CLOCK_MONOTONIC, 0);
        struct itimerspec at = {{0, 0}, {0, 30000000}};
        lat_explained_begin(1);
        CHECK(timerfd_settime(timer, 0, &at, 0) == 0);
        CHECK(read(timer, &count, 8) == 8);
    } else if (!strcmp(what, "poll-timeout")) {
        struct pollfd of = {ends[0], POLLIN, 0};
        lat_explained_begin(1);
        CHECK(poll(&of, 1, 30) == 0);
    } else if (!strcmp(what, "own-work")) {
        lat_explained_begin(1);
        burn(30);
    } else if (!strcmp(what, "mutex-of-sleeper")) {
        take(sleeps, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "mutex-of-burner")) {
        take(burns, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "mutex-of-reader")) {
        child = fork();
        if (!child) {
            name("writer");
            burn(40);
            CHECK(write(ends[1], &byte, 1) == 1);
            _exit(0);
        }
        take(reads, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "mutex-of-preempted")) {
        pin(0);
        add_hogs(2);
        take(is_preempted, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "mutex-of-writer")) {
        take(syncs, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "chain-of-mutexes")) {
        CHECK(pthread_create(&second, 0, holds_inner, 0) == 0);
        has_second = 1;
        sem_wait(&started);
        take(waits_for_inner, "holder");
        lat_explained_begin(1);
        lock_and_unlock();
    } else if (!strcmp(what, "rwlock")) {
        take(writes_lock, "holder");
        lat_explained_begin(1);
        pthread_rwlock_rdlock(&shared_lock);
        pthread_rwlock_unlock(&shared_lock);
    } else if (!strcmp(what, "condition")) {
        take(signals, "worker");
        lat_explained_begin(1);
        pthread_mutex_lock(&lock);
        while (!is_set)
            pthread_cond_wait(&condition, &lock);
        pthread_mutex_unlock(&lock);
    } else if (!strcmp(what, "semaphore")) {
        take(posts, "worker");
        lat_explained_begin(1);
        sem_wait(&semaphore);
    } else if (!strcmp(what, "barrier")) {
        take(arrives, "worker");
        lat_explained_begin(1);
        pthread_barrier_wait(&barrier);
    } else if (!strcmp(what, "join")) {
        take(finishes, "worker");
        lat_explained_begin(1);
        pthread_join(helper, 0);
        has_helper = 0;
    } else if (!strcmp(what, "child")) {
        lat_explained_begin(1);
        pid_t own = fork();
        if (!own) {
            name("child");
            burn(30);
            _exit(0);
        }
        CHECK(waitpid(own, &status, 0) == own);
    } else if (!strcmp(what, "signal")) {
        sigset_t set;
        int number;
        pid_t self = getpid();
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, 0);
        lat_explained_begin(1);
        child = fork();
        if (!child) {
            name("sender");
            burn(30);
            kill(self, SIGUSR1);
            _exit(0);
        }
        sigwait(&set, &number);
    } else if (!strcmp(what, "epoll")) {
        int set = epoll_create1(0);
        struct epoll_event of = {.events = EPOLLIN};
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, event_fd, &of) == 0);
        take(writes_event, "worker");
        lat_explained_begin(1);
        CHECK(epoll_wait(set, &of, 1, -1) == 1);
    } else if (!strcmp(what, "server")) {
        int pair[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        child = fork();
        if (!child) {
            name("server");
            CHECK(read(pair[1], &byte, 1) == 1);
            burn(30);
            CHECK(write(pair[1], &byte, 1) == 1);
            _exit(0);
        }
        nap(2);
        lat_explained_begin(1);
        CHECK(write(pair[0], &byte, 1) == 1);
        CHECK(read(pair[0], &byte, 1) == 1);
    } else if (!strcmp(what, "page-faults")) {
        size_t size = 128 << 20;
        lat_explained_begin(1);
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        madvise(memory, size, MADV_NOHUGEPAGE);
        for (size_t at = 0; at < size; at += 4096)
            memory[at] = 1;
        munmap(memory, size);
    } else if (!strcmp(what, "other-program")) {
        pin(1);
        for (int i = 0; i < 2; i++) {
            pid_t other = fork();
            if (!other) {
                name("stranger");
                pin(1);
                burn(80);
                _exit(0);
            }
        }
        nap(5);
        lat_explained_begin(1);
        burn(20);
    } else if (!strcmp(what, "disk")) {
        static char block[1 << 20];
        int file = open("explained.disk", O_CREAT | O_WRONLY | O_TRUNC, 0600);
        CHECK(file >= 0);
        for (int i = 0; i < 24; i++)
            CHECK(write(file, block, sizeof block) == (ssize_t)sizeof block);
        lat_explained_begin(1);
        fsync(file);
    } else {
        fprintf(stderr, "error: no such situation: %s\n", what);
        exit(2);
    }
    lat_explained_end(1);
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: situations NAME\n");
        return 2;
    }
    name("main");
    sem_init(&started, 0, 0);
    sem_init(&semaphore, 0, 0);
    pthread_barrier_init(&barrier, 0, 2);
    event_fd = eventfd(0, 0);
    CHECK(pipe(ends) == 0 && event_fd >= 0);
    request(words[1]);
    if (has_helper)
        pthread_join(helper, 0);
    if (has_second)
        pthread_join(second, 0);
    for (int i = 0; i < hog_count; i++)
        pthread_join(hogs[i], 0);
    while (wait(0) > 0) {
    }
    unlink("explained.disk");
    return 0;
}
