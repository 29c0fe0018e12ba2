// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A small kernel for several cores, made to be traced: preemptive threads of applications in user mode,
 * a run queue for each core, mutexes that are handed over, channels for messages between cores.
 *
 *   kernel.c    threads, system calls, mutexes, channels, what runs where
 *   machine.c   QEMU's RISC-V `virt`: start, traps, timer, interrupts between harts, console
 *   apps.c      the applications
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define HARTS 4u

/* ---- system calls: number in a7, arguments in a0 and a1 ------------------------ */

enum call { CALL_NONE, CALL_YIELD, CALL_SEND, CALL_RECEIVE, CALL_LOCK, CALL_UNLOCK, CALL_PRINT, CALL_EXIT };

#define CHANNELS 4u
#define MUTEXES 2u

/* ---- threads --------------------------------------------------------------------- */

/* Registers of a thread: machine.c knows the offsets. */
struct frame {
    uint64_t pc;
    uint64_t x[32];
};
enum { RA = 1, SP = 2, A0 = 10, A1 = 11, A7 = 17 };

/* As Linux numbers them, so that readers know them. */
enum state { RUNNABLE = 0, WAITING = 1, ENDED = 16 };

struct thread {
    struct frame frame;
    struct thread *next;  /* in the queue that it is in */
    uint32_t tid, pid, hart;
    enum state state;
    enum call call;       /* the system call that it is in */
    int waited;           /* for a mutex */
};

struct queue {
    struct thread *first, *last;
    uint32_t length;
};

/* What applications are made of: apps.c. */
struct application {
    uint32_t pid;
    const char *name;
};
struct job {
    uint32_t application; /* index */
    uint32_t hart;
    const char *name;
    void (*entry)(uint64_t argument);
    uint64_t argument;
};
extern const struct application applications[];
extern const uint32_t application_count;
extern const struct job jobs[];
extern const uint32_t job_count;

/* ---- harts ------------------------------------------------------------------------ */

/* What the kernel counts for itself, where it happens. */
struct counts {
    uint32_t switches, wakings, calls, returns, interrupts, locks, waits, handed, unlocks;
};

struct hart {
    uint64_t stack;         /* of the kernel; machine.c knows the first three */
    struct frame *frame;    /* where registers of what it executes are kept */
    uint64_t scratch;
    int64_t skew;           /* of its clock */
    uint32_t number;
    uint32_t context;       /* who runs, for the tracer: a thread or the hart itself */
    uint32_t process;
    int expired;            /* the time slice is over */
    struct thread *current; /* NULL: none */
    struct queue runnable;
    struct counts counts;
    struct frame own;
    /* The exchange of clocks with hart 0. */
    uint32_t question, answer;
    uint64_t received, sent;
};
extern struct hart harts[HARTS];

static inline struct hart *this_hart(void)
{
    struct hart *hart;
    __asm__("mv %0, tp" : "=r"(hart));
    return hart;
}

/* The clock of a hart. They are set apart on purpose, forward and back. */
static inline uint64_t cycles(void)
{
    uint64_t now;
    __asm__ volatile("csrr %0, mcycle" : "=r"(now) : : "memory");
    return now + (uint64_t)this_hart()->skew;
}

/* ---- kernel.c, called by machine.c ------------------------------------------------- */

enum interrupt { INTERRUPT_MESSAGE = 3, INTERRUPT_TIMER = 7 };

/** Hart 0, before the others begin. */
void kernel_begin(void);
/** Every hart: compares clocks and runs threads. */
_Noreturn void kernel_hart(struct hart *hart);
/** A thread was interrupted, or calls. @return what to go on with. */
struct frame *kernel_interrupt(struct hart *hart, enum interrupt which);
struct frame *kernel_call(struct hart *hart);
/** All that can be done is done wrong: says where, and what was counted. */
_Noreturn void kernel_panic(struct hart *hart, uint64_t cause, uint64_t pc);
/** Called by harts without a thread, again and again: a place to send packets of the trace from. */
void kernel_idle_hook(struct hart *hart);

/* ---- machine.c ----------------------------------------------------------------------- */

void console_put(char c);
/** An interrupt for a hart. */
void machine_send(uint32_t hart);
/** That interrupt of this hart is taken. */
void machine_taken(void);
/** The timer interrupt of this hart comes in so many of its ticks, 0: never. */
void machine_timer(uint32_t ticks);
/** Sleeps until an interrupt of this hart is pending. @return the mask of those that are. */
uint64_t machine_sleep(void);
/** Goes on with a thread. */
_Noreturn void machine_resume(struct frame *frame);
/** Memory of applications: what they may point into. */
int machine_is_user(uint64_t address, uint64_t bytes);
_Noreturn void machine_stop(void);
/** The next store to this address by this hart traps, in the kernel too. */
void machine_watch(const void *address);

#endif
