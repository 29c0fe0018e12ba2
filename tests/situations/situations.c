// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Programs in situations: `situations NAME [ARGUMENT]`. Each prints what it observed itself, and uses
 * write(2) to /dev/null as the activity that is counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int null;
static void writes(int n)
{
    for (int i = 0; i < n; i++)
        if (write(null, "x", 1) != 1)
            _exit(99);
}
static void opened(void) { null = open("/dev/null", O_WRONLY | O_CLOEXEC); }
static int ended(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
static void *thread(void *n)
{
    writes((int)(long)n);
    return NULL;
}
static volatile sig_atomic_t forked, wrong;
static void forks(int signal)
{
    (void)signal;
    const pid_t child = fork();
    if (child == 0) {
        writes(10);
        _exit(7);
    }
    if (ended(child) != 7)
        wrong = 1;
    forked++;
}
static void caught(int signal)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "signal %d\n", signal);
    if (write(1, text, (size_t)length) != length || signal == SIGTERM)
        _exit(6);
}
static int in_clone(void *n)
{
    writes((int)(long)n);
    return 0;
}
static void *waits(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}
static void *execs(void *words)
{
    char **word = words, *list[] = {word[0], "writes", word[2], NULL};
    execv(word[0], list);
    return NULL;
}
static void uring_writes(int ring, const struct io_uring_params *params, int count)
{
    const size_t bytes = params->sq_off.array + params->sq_entries * sizeof(unsigned);
    const int shared = PROT_READ | PROT_WRITE;
    char *queue = mmap(NULL, bytes, shared, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, params->sq_entries * sizeof *entries, shared, MAP_SHARED, ring,
                                        IORING_OFF_SQES);
    if (queue == MAP_FAILED || entries == MAP_FAILED)
        _exit(99);
    unsigned *tail = (unsigned *)(void *)(queue + params->sq_off.tail);
    unsigned *places = (unsigned *)(void *)(queue + params->sq_off.array);
    const unsigned mask = params->sq_entries - 1;
    for (int i = 0; i < count; i++) {
        const unsigned at = *tail & mask;
        memset(&entries[at], 0, sizeof entries[at]);
        entries[at].opcode = IORING_OP_WRITE;
        entries[at].fd = null;
        entries[at].addr = (unsigned long)"x";
        entries[at].len = 1;
        places[at] = at;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
            _exit(98);
    }
}
static void only(const int *calls, size_t count, unsigned otherwise)
{
    struct sock_filter code[80];
    size_t n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (size_t i = 0; i < count; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    struct sock_fprog program = {(unsigned short)n, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    const int n = count > 2 ? atoi(words[2]) : 0;
#define IS(name) (strcmp(how, name) == 0)
    opened();
    if (IS("writes")) {
        writes(n);
        return 3;
    }
    if (IS("close-loop")) {
        for (int i = 0; i < 1024; i++)
            if (i != 1)
                close(i);
        opened();
        writes(n);
        return 3;
    }
    if (IS("close-range")) {
        syscall(SYS_close_range, 3, ~0u, 0);
        opened();
        writes(n);
        return 3;
    }
    if (IS("closefrom")) {
        closefrom(3);
        opened();
        writes(n);
        return 3;
    }
    if (IS("close-raw")) {
        for (int i = 3; i < 1024; i++)
            syscall(SYS_close, i);
        opened();
        writes(n);
        return 3;
    }
    if (IS("daemon")) {
        if (daemon(1, 1))
            return 9;
        opened();
        usleep(100000);
        writes(n);
        return 3;
    }
    if (IS("double-fork")) {
        if (fork())
            _exit(0);
        setsid();
        if (fork())
            _exit(0);
        writes(n);
        _exit(0);
    }
    if (IS("spawn") || IS("spawnp")) {
        for (int i = 0; i < 10; i++) {
            char text[16];
            snprintf(text, sizeof text, "%d", n / 10);
            char *list[] = {words[0], "writes", text, NULL};
            pid_t child;
            if ((IS("spawn") ? posix_spawn : posix_spawnp)(&child, words[0], NULL, NULL, list,
                                                           environ))
                return 9;
            printf("%d", ended(child));
        }
        puts("");
        return 4;
    }
    if (IS("vfork")) {
        for (int i = 0; i < 10; i++) {
            char text[16];
            snprintf(text, sizeof text, "%d", n / 10);
            const pid_t child = vfork();
            if (child == 0) {
                execl(words[0], words[0], "writes", text, NULL);
                _exit(99);
            }
            printf("%d", ended(child));
        }
        puts("");
        return 4;
    }
    if (IS("popen")) {
        char line[512];
        snprintf(line, sizeof line, "%s writes %d; echo $?", words[0], n);
        FILE *file = popen(line, "r");
        printf("%d\n", fgetc(file));
        const int status = pclose(file);
        return status == 0 ? system("exit 4") >> 8 : 9;
    }
    if (IS("clone-vm")) {
        static char stack[65536] __attribute__((aligned(16)));
        writes(100);
        const pid_t child = clone(in_clone, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)1L);
        printf("%d\n", ended(child));
        writes(n - 100);
        return 4;
    }
    if (IS("fork-in-handler")) {
        signal(SIGALRM, forks);
        struct itimerval timer = {{0, 2000}, {0, 2000}};
        setitimer(ITIMER_REAL, &timer, NULL);
        while (forked < 30)
            free(malloc(100));
        struct itimerval off = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &off, NULL);
        return wrong ? 9 : 4;
    }
    if (IS("threads")) {
        for (int i = 0; i < n; i++) {
            pthread_t one[8];
            for (int j = 0; j < 8; j++)
                if (pthread_create(&one[j], NULL, thread, (void *)5L))
                    return 9;
            for (int j = 0; j < 8; j++)
                pthread_join(one[j], NULL);
        }
        return 4;
    }
    if (IS("thread-execs")) {
        pthread_t one, other;
        pthread_create(&other, NULL, waits, NULL);
        pthread_create(&one, NULL, execs, words);
        pthread_join(one, NULL);
        return 9;
    }
    if (IS("cancel")) {
        pthread_t one[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&one[i], NULL, waits, NULL);
        writes(n);
        for (int i = 0; i < 3; i++) {
            void *how = NULL;
            pthread_cancel(one[i]);
            pthread_join(one[i], &how);
            printf("%d", how == PTHREAD_CANCELED);
        }
        puts("");
        return 4;
    }
    if (IS("dlmopen")) {
        void *library = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
        double (*root)(double) = library ? (double (*)(double))dlsym(library, "sqrt") : NULL;
        writes(n);
        printf("%g\n", root ? root(16) : 0);
        return 4;
    }
    if (IS("io_uring")) {
        /* Not a call of the C library: a request in memory that is shared with the kernel. */
        struct io_uring_params params = {0};
        const int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
        printf("io_uring %d\n", ring >= 0);
        if (ring >= 0)
            uring_writes(ring, &params, 5);
        writes(n);
        return 4;
    }
    if (IS("exit")) {
        writes(n);
        exit(5);
    }
    if (IS("_exit")) {
        writes(n);
        _exit(5);
    }
    if (IS("quick_exit")) {
        writes(n);
        quick_exit(5);
    }
    if (IS("abort")) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        writes(n);
        abort();
    }
    if (IS("kill")) {
        writes(n);
        kill(getpid(), SIGKILL);
    }
    if (IS("pthread_exit")) {
        writes(n);
        pthread_exit(NULL);
    }
    if (IS("signals")) {
        for (int i = 1; i < 32; i++)
            if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD)
                signal(i, caught);
        if (write(1, "ready\n", 6) != 6)
            return 9;
        for (;;)
            pause();
    }
    if (IS("state")) {
        sigset_t set;
        sigprocmask(SIG_SETMASK, NULL, &set);
        for (int i = 1; i < 65; i++) {
            struct sigaction a;
            if (sigaction(i, NULL, &a))
                continue;
            if (a.sa_handler == SIG_IGN)
                printf("ignored %d\n", i);
            if (sigismember(&set, i))
                printf("blocked %d\n", i);
        }
        for (int i = 0; i < 20; i++)
            if (i != null && fcntl(i, F_GETFD) >= 0)
                printf("open %d\n", i);
        for (int i = 0; i < RLIM_NLIMITS; i++) {
            struct rlimit l;
            getrlimit(i, &l);
            printf("limit %d %lu %lu\n", i, (long)l.rlim_cur, (long)l.rlim_max);
        }
        const mode_t mask = umask(0);
        char folder[4096];
        printf("umask %o nice %d folder %s leader %d group %d\n", mask,
               getpriority(PRIO_PROCESS, 0), getcwd(folder, sizeof folder), getsid(0) == getpid(),
               getpgrp() == getpid());
        return 4;
    }
    if (IS("strict")) {
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            writes(n);
            syscall(SYS_exit, 3);
        }
        printf("worker %d\n", ended(child));
        return 4;
    }
    if (IS("usual") || IS("errno")) {
        const int calls[] = {SYS_read,  SYS_write,  SYS_exit,   SYS_exit_group,
                             SYS_mmap,  SYS_munmap, SYS_brk,    SYS_rt_sigreturn,
                             SYS_futex, SYS_close,  SYS_openat, SYS_fstat};
        const pid_t child = fork();
        if (child == 0) {
            only(calls, sizeof calls / sizeof *calls,
                 IS("usual") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
            writes(n);
            free(malloc(100));
            exit(3);
        }
        printf("worker %d\n", ended(child));
        return 4;
    }
    if (IS("many")) {
        for (int i = 0; i < n; i++) {
            const pid_t child = fork();
            if (child == 0) {
                writes(1);
                _exit(0);
            }
            ended(child);
        }
        return 4;
    }
    if (IS("workers")) {
        for (int i = 0; i < n; i++)
            if (fork() == 0) {
                writes(1);
                usleep(200000);
                _exit(0);
            }
        while (wait(NULL) > 0) {
        }
        return 4;
    }
    if (IS("no-new-privs")) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        writes(n);
        return 4;
    }
    if (IS("undumpable")) {
        prctl(PR_SET_DUMPABLE, 0);
        writes(n);
        return 4;
    }
    if (IS("clear-env")) {
        char *list[] = {words[0], "writes", "5", NULL}, *none[] = {NULL};
        execve(words[0], list, none);
        return 9;
    }
    if (IS("fexecve")) {
        const int fd = open(words[0], O_RDONLY | O_CLOEXEC);
        char *list[] = {words[0], "writes", words[2], NULL};
        fexecve(fd, list, environ);
        return 9;
    }
    if (IS("execlp")) {
        execlp("sh", "sh", "-c", "exit 6", NULL);
        return 9;
    }
    if (IS("execle")) {
        execle("/bin/sh", "sh", "-c", "echo $only; exit 6", NULL, (char *[]){"only=this", NULL});
        return 9;
    }
    if (IS("no-program")) {
        execlp("no-such-program", "x", NULL);
        printf("%d\n", errno);
        execl("/etc/passwd", "x", NULL);
        printf("%d\n", errno);
        execl("/", "x", NULL);
        printf("%d\n", errno);
        return 4;
    }
    return 98;
}
