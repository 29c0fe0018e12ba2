// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Processes created in every way, while other threads allocate and lock. Prints the number of
 * children.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5 };
extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static int children;
static volatile int told; /* set by a child that shares our memory */

static void *busy(void *unused)
{
    while (!stop) {
        char *volatile block = malloc(100);
        free(block);
        CHECK(pthread_mutex_lock(&lock) == 0);
        CHECK(pthread_mutex_unlock(&lock) == 0);
        usleep(20);
    }
    return unused;
}

static void expect(pid_t child, int status_expected)
{
    int status;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == status_expected);
    children++;
}

static void forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
        pthread_t thread;
        stop = 1;
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
        CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        const pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(4);
        expect(grandchild, 4);
        _exit(5);
    }
    expect(child, 5);
    child = _Fork();
    if (child == 0) {
        close(99);
        _exit(6);
    }
    expect(child, 6);
}

static void vforks(void)
{
    pid_t child = vfork();
    if (child == 0) {
        const int fd = open("/dev/null", O_RDONLY);
        told++;
        close(fd);
        _exit(7);
    }
    expect(child, 7);
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
        _exit(127);
    }
    expect(child, 8);
}

static int shares_memory(void *number)
{
    close(99);
    told++;
    return *(int *)number;
}

static void others(void)
{
    static char stack[65536] __attribute__((aligned(64)));
    char *arguments[] = {"sh", "-c", "exit 9", NULL};
    int number = 10;
    pid_t child;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    expect(child, 9);
    expect(clone(shares_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &number),
           10);
    CHECK(system("exit 11") == 11 << 8);
    FILE *pipe = popen("echo heard", "r");
    char line[20];
    CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "heard\n") == 0);
    CHECK(pclose(pipe) == 0);
    children += 2;
}

static jmp_buf back;
static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}
static void leaves_by_jump(void)
{
    int ends[2];
    char byte;
    struct sigaction action = {.sa_handler = jump};
    CHECK(pipe(ends) == 0);
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        ualarm(5000, 0);
        CHECK(read(ends[0], &byte, 1) == 99);
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void refused(void)
{
    /* A failing vfork must be reported as such. */
    struct rlimit none = {0, 0}, before;
    CHECK(getrlimit(RLIMIT_NPROC, &before) == 0);
    none.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    if (getuid() != 0) {
        const pid_t child = vfork();
        if (child == 0)
            _exit(0);
        CHECK(child == -1 && errno == EAGAIN);
    }
    CHECK(setrlimit(RLIMIT_NPROC, &before) == 0);
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        forks();
        vforks();
        others();
    }
    leaves_by_jump();
    refused();
    stop = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(told == 2 * ROUNDS);
    printf("children %d\n", children);
    fflush(stdout);
    kill(getpid(), SIGTERM);
    return 0;
}
