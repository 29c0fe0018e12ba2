// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A small multi-core kernel, made to be traced: preemptive threads of applications in user mode,
 * a run queue for each core, mutexes with hand-over, channels for messages between cores.
 *
 *   kernel.c    threads, system calls, mutexes, channels, scheduling
 *   apps.c      the applications
 *   riscv64/    machine.h and machine.c for QEMU's RISC-V `virt`: registers, start, traps, timer, interrupts
 *               between cores, console
 *   x86-64/     the same for QEMU's `microvm`
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define CORES 4u

struct core;
/* struct frame and the operations that take few instructions: the include path selects the machine. */
#include "machine.h"

/* ---- system calls, made by machine_call -------------------------------------------- */

enum call { CALL_NONE, CALL_YIELD, CALL_SEND, CALL_RECEIVE, CALL_LOCK, CALL_UNLOCK, CALL_PRINT, CALL_EXIT };

#define CHANNELS 4u
#define MUTEXES 2u

/* ---- threads --------------------------------------------------------------------- */

/* Numbered as in Linux, so that readers know them. */
enum state { RUNNABLE = 0, WAITING = 1, ENDED = 16 };

struct thread {
    struct frame frame;
    struct thread *next;  /* in its queue */
    uint32_t tid, pid, core;
    enum state state;
    enum call call;       /* the system call that it is executing */
    int waited;           /* it has waited for a mutex */
};

struct queue {
    struct thread *first, *last;
    uint32_t length;
};

/* Applications consist of this: apps.c. */
struct application {
    uint32_t pid;
    const char *name;
};
struct job {
    uint32_t application; /* index */
    uint32_t core;
    const char *name;
    void (*entry)(uint64_t argument);
    uint64_t argument;
};
extern const struct application applications[];
extern const uint32_t application_count;
extern const struct job jobs[];
extern const uint32_t job_count;

/* ---- cores ------------------------------------------------------------------------ */

/* Counted by the kernel itself, where each activity happens. */
struct counts {
    uint32_t switches, wakings, calls, returns, interrupts, locks, waits, handed, unlocks;
};

struct core {
    uint64_t stack;         /* of the kernel; machines depend on the first three members */
    struct frame *frame;    /* where registers are saved on entry to the kernel */
    uint64_t scratch;
    int64_t skew;           /* added to its clock */
    uint32_t number;
    uint32_t context;       /* what runs, for the tracer: a thread or the core itself */
    uint32_t process;
    int expired;            /* the time slice is over */
    struct thread *current; /* NULL: idle */
    struct queue runnable;
    struct counts counts;
    struct frame own;
    /* The exchange of clocks with core 0. */
    uint32_t question, answer;
    uint64_t received, sent;
};
extern struct core cores[CORES];

/* The clock of a core. The clocks are offset on purpose, forward and backward. */
static inline uint64_t cycles(void)
{
    return machine_cycles() + (uint64_t)this_core()->skew;
}

/* ---- kernel.c, called by machine.c ------------------------------------------------- */

/* Numbered as in RISC-V; machines with other numbers translate theirs. */
enum interrupt { INTERRUPT_MESSAGE = 3, INTERRUPT_TIMER = 7 };

/** Called by core 0, before the other cores begin. */
void kernel_begin(void);
/** Called by every core: compares clocks and runs threads. */
_Noreturn void kernel_core(struct core *core);
/** A thread was interrupted, or makes a system call. @return the frame to continue. */
struct frame *kernel_interrupt(struct core *core, enum interrupt which);
struct frame *kernel_call(struct core *core);
/** An error that cannot be handled: prints its position and the counts. */
_Noreturn void kernel_panic(struct core *core, uint64_t cause, uint64_t pc);
/** Called by cores without a thread, repeatedly: a place for sending packets of the trace. */
void kernel_idle_hook(struct core *core);

/* ---- interfaces.c, if it is compiled with the kernel ---------------------------------- */

#ifdef INTERFACES
/* From the headers that interfaces.c includes: their names and those of the kernel's schema would
 * conflict. */
extern const struct lat_schema lat_image_composite, lat_image_barrelfish, lat_image_trace_defs,
    lat_image_sel4;
#define INTERFACE_SCHEMAS                                                                       \
    , &lat_image_composite, &lat_image_barrelfish, &lat_image_trace_defs, &lat_image_sel4
void interface_begin(void);
void interface_switch(uint32_t pid);
void interface_message(int is_sent, uint32_t channel);
void interface_lock(uint32_t tid, uint32_t mutex);
void interface_interrupt(int begins, uint32_t which);
#else
#define INTERFACE_SCHEMAS
#define interface_begin() ((void)0)
#define interface_switch(pid) ((void)0)
#define interface_message(is_sent, channel) ((void)0)
#define interface_lock(tid, mutex) ((void)0)
#define interface_interrupt(begins, which) ((void)0)
#endif

/* ---- machine.c ----------------------------------------------------------------------- */

void console_put(char c);
/** Sends an interrupt to a core. */
void machine_send(uint32_t core);
/** Acknowledges that interrupt on this core. */
void machine_taken(void);
/** Requests the timer interrupt of this core in this number of units of 100 ns; 0: never. */
void machine_timer(uint32_t ticks);
/** Sleeps until an interrupt of this core is pending. @return the mask of pending interrupts. */
uint64_t machine_sleep(void);
/** Continues a thread. */
_Noreturn void machine_resume(struct frame *frame);
/** Whether this is memory of applications, which their pointers may refer to. */
int machine_is_user(uint64_t address, uint64_t bytes);
_Noreturn void machine_stop(void);
/** The next store to this address by this core traps, in the kernel too: cause MACHINE_WATCHED. */
void machine_watch(const void *address);

#endif
