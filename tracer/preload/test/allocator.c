// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program with an allocator of its own, as in browsers: it is used by constructors of libraries,
 * before any of the library under test, and calls wrapped functions while it holds its lock. It
 * must not be re-entered meanwhile. Its lock is no mutex: it would wait for itself forever.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(64) char memory[1 << 20];
static size_t used;
static int locked, prepared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void)
{
    prctl(0x53564d41 /* PR_SET_VMA */, 0, memory, sizeof memory, "memory");
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        close(file);
}

void *malloc(size_t size)
{
    static const char entered[] = "the allocator was entered while it held its lock\n";
    if (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE) != 0) {
        if (write(2, entered, sizeof entered - 1) < 0)
            _exit(10);
        _exit(9);
    }
    if (!prepared) {
        prepared = 1;
        prepare();
    }
    const size_t at = (used + 15) / 16 * 16;
    void *block = NULL;
    if (size <= sizeof memory - at - 16) {
        memcpy(memory + at, &size, sizeof size);
        block = memory + at + 16;
        used = at + 16 + size;
    }
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* memory is never reused */
}

void *realloc(void *old, size_t size)
{
    void *block = malloc(size);
    size_t had;
    if (block != NULL && old != NULL) {
        memcpy(&had, (char *)old - 16, sizeof had);
        memcpy(block, old, had < size ? had : size);
    }
    return block;
}

static void *work(void *text)
{
    return strdup(text);
}

int main(void)
{
    pthread_t thread;
    void *text = NULL;
    int status = 0;
    if (pthread_create(&thread, NULL, work, "of a thread") != 0 || pthread_join(thread, &text) != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0)
        _exit(strcmp(strdup("child"), "child"));
    waitpid(child, &status, 0);
    printf("%s, child %d\n", (char *)text, status);
    return 5;
}
