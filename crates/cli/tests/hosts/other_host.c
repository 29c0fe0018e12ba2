/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Preloaded library that simulates the clocks of another machine. rdtsc traps, and returns a counter with
 * another start and another rate; the date differs, too. CLOCK_MONOTONIC and the kernel are not changed.
 *
 *   OTHER_TICKS  added to the counter    OTHER_PPM  increase of its rate, in ppm
 *   OTHER_NS     added to the date
 *
 * A signal aborts a restartable sequence, so a sequence with rdtsc would never complete: the programs run
 * without rseq (GLIBC_TUNABLES=glibc.pthread.rseq=0), with one ring per thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static uintptr_t kernel_code; /* the vDSO, which reads the true counter */
static int64_t ppm, ns;
static uint64_t ticks;

static uint64_t true_counter(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static void trapped(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    static const uint8_t rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};
    const int has_cpu = at != NULL && memcmp(at, rdtscp, sizeof(rdtscp)) == 0;
    (void)info;
    if (at == NULL || (!has_cpu && memcmp(at, rdtsc, sizeof(rdtsc)) != 0)) {
        signal(number, SIG_DFL);
        return;
    }
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    uint64_t counter = true_counter();
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    if ((uintptr_t)at - kernel_code >= 0x2000)
        counter += ticks + (uint64_t)((__int128)counter * ppm / 1000000);
    registers[REG_RAX] = (uint32_t)counter;
    registers[REG_RDX] = (greg_t)(counter >> 32);
    if (has_cpu)
        registers[REG_RCX] = 0;
    registers[REG_RIP] += has_cpu ? sizeof(rdtscp) : sizeof(rdtsc);
}

static int64_t number(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : strtoll(text, NULL, 10);
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    kernel_code = getauxval(AT_SYSINFO_EHDR);
    ticks = (uint64_t)number("OTHER_TICKS");
    ppm = number("OTHER_PPM");
    ns = number("OTHER_NS");
    sigaction(SIGSEGV, &action, NULL);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) {
        const int64_t date = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + ns;
        time->tv_sec = date / 1000000000;
        time->tv_nsec = date % 1000000000;
    }
    return result;
}

/* The dynamic linker reads the counter before rdtsc can be trapped. */
int execvp(const char *file, char *const arguments[])
{
    int (*const real)(const char *, char *const[]) = dlsym(RTLD_NEXT, "execvp");
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    const int result = real(file, arguments);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    return result;
}
