// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Threads, system calls, mutexes, channels. One lock for the whole kernel; a waiting thread has no stack in
 * the kernel: its call is tried again when it is woken (finish_call).
 *
 * Each activity is counted where it happens, next to the event that records it. At the end all counts are
 * printed, preceded by this line if the kernel has panicked:
 *
 *   P CORE CAUSE PC CONTEXT BUSY  where, and whether it happened inside a record
 *
 *   C CORE COUNTS...          for each core, in the order of struct counts
 *   M CHANNEL SENT RECEIVED   messages
 *   X CORE SKEW COUNT         offset that was added to its clock, number of exchanges with core 0
 *   A ADDRESS BYTES           position of the tracer's area; the last line is `done`
 */
#include <kernel-schema.h>

#include "kernel.h"
#include "lat_port.h"

#define SLICE_TICKS 100u  /* of 100 ns: 10 us */
#define SPIN_TICKS 10u
#define EXCHANGES 8u      /* at the beginning, and as many at the end */
#define CHANNEL_SLOTS 4u
#define THREADS 16u
#define THREAD_STACK_BYTES 1024u

struct channel {
    uint64_t values[CHANNEL_SLOTS];
    uint32_t sent, received;
    struct queue senders, receivers;
};

struct mutex {
    struct thread *owner;
    struct queue waiting;
};

#ifdef CLOCKS_ALIKE
struct core cores[CORES];
#else
/* One ahead, one late, and one so late that its times are negative. */
struct core cores[CORES] = {{.skew = 0}, {.skew = 1234567}, {.skew = -98765}, {.skew = -987654321}};
#endif
static struct thread threads[THREADS];
static struct channel channels[CHANNELS];
static struct mutex mutexes[MUTEXES];
static uint32_t living, exchanges[CORES];
static uint32_t stopped, has_panicked;
static uint8_t kernel_lock;

__attribute__((section(".user"), aligned(16))) char thread_stacks[THREADS][THREAD_STACK_BYTES];

#ifndef AREA_BYTES
#define AREA_BYTES 0x80000u
#endif
__attribute__((section(".noinit"), aligned(8))) uint64_t lat_port_area[AREA_BYTES / 8u];
static const struct lat_schema *const schemas[] = {LAT_SCHEMA(kernel) INTERFACE_SCHEMAS};
#define SCHEMAS (sizeof schemas / sizeof schemas[0])

/* ---- console ----------------------------------------------------------------------- */

static void put_text(const char *text)
{
    while (*text != '\0')
        console_put(*text++);
}

static void put_number(uint64_t value)
{
    if (value >= 10)
        put_number(value / 10);
    console_put((char)('0' + value % 10));
}

static void put_field(int64_t value)
{
    put_text(value < 0 ? " -" : " ");
    put_number(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_counts(void)
{
    for (uint32_t i = 0; i < CORES; i++) {
        const struct counts *counts = &cores[i].counts;
        put_text("C");
        put_field(i);
        put_field(counts->switches);
        put_field(counts->wakings);
        put_field(counts->calls);
        put_field(counts->returns);
        put_field(counts->interrupts);
        put_field(counts->locks);
        put_field(counts->waits);
        put_field(counts->handed);
        put_field(counts->unlocks);
        console_put('\n');
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        put_text("M");
        put_field(i);
        put_field(channels[i].sent);
        put_field(channels[i].received);
        console_put('\n');
    }
    for (uint32_t i = 1; i < CORES; i++) {
        put_text("X");
        put_field(i);
        put_field(cores[i].skew);
        put_field(exchanges[i]);
        console_put('\n');
    }
    put_text("A");
    put_field((int64_t)(uintptr_t)lat_port_area);
    put_field(lat_small_left(AREA_BYTES));
    put_text("\ndone\n");
}

/* ---- locking, and the end ------------------------------------------------------------- */

/* If another core has panicked, this core changes nothing any more. */
static void look_for_panic(void)
{
    /* Pairs with the store in kernel_panic. */
    if (__atomic_load_n(&has_panicked, __ATOMIC_ACQUIRE) != 0) {
        __atomic_fetch_add(&stopped, 1, __ATOMIC_RELEASE);
        machine_stop();
    }
}

static void lock_kernel(void)
{
    int waited = 0;
    /* Pairs with the release below. */
    while (__atomic_exchange_n(&kernel_lock, 1, __ATOMIC_ACQUIRE) != 0) {
        look_for_panic();
        /* With -icount QEMU runs one core until a timer is due: a short one lets the lock's owner run. */
        machine_timer(SPIN_TICKS);
        waited = 1;
    }
    look_for_panic();
    if (waited)
        machine_timer(SLICE_TICKS);
}

static void unlock_kernel(void)
{
    __atomic_store_n(&kernel_lock, 0, __ATOMIC_RELEASE);
}

static const struct lat_small_ring *ring_of(const struct core *core)
{
    const struct lat_small_header *const header = (const void *)lat_port_area;
    return (const void *)((const char *)header + header->ring_offset + core->number * header->ring_stride);
}

_Noreturn void kernel_panic(struct core *core, uint64_t cause, uint64_t pc)
{
    __atomic_store_n(&has_panicked, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < CORES; i++)
        if (i != core->number)
            machine_send(i);
    while (__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) != CORES - 1) {
    }
    const struct lat_small_ring *const ring = ring_of(core);
    put_text("P");
    put_field(core->number);
    put_field((int64_t)cause);
    put_field((int64_t)pc);
    put_field(core->context);
    put_field(ring->busy);
    console_put('\n');
    /* If the panic happened inside a record, this one is lost, and counted. */
    lat_mark("panic");
    put_counts();
    machine_stop();
}

/* ---- clocks ------------------------------------------------------------------------------ */

static void wait_for(uint32_t *word, uint32_t number)
{
    /* Pairs with the stores of the other core in `ask` and `answer`. */
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != number) {
        machine_sleep();
        machine_taken();
    }
}

/* Core 0 asks another core for its clock. */
static void ask(struct core *other, uint32_t first)
{
    for (uint32_t n = first; n < first + EXCHANGES; n++) {
        const uint64_t asked = cycles();
        __atomic_store_n(&other->question, n, __ATOMIC_RELEASE);
        machine_send(other->number);
        wait_for(&other->answer, n);
        const uint64_t answered = cycles();
        exchanges[other->number]++;
        lat_clocks_exchange(other->number, asked, other->received, other->sent, answered);
    }
}

static void answer(struct core *core, uint32_t first)
{
    for (uint32_t n = first; n < first + EXCHANGES; n++) {
        wait_for(&core->question, n);
        core->received = cycles();
        core->sent = cycles();
        __atomic_store_n(&core->answer, n, __ATOMIC_RELEASE);
        machine_send(0);
    }
}

static void compare_clocks(struct core *core, uint32_t first)
{
    if (core->number != 0) {
        answer(core, first);
        return;
    }
    for (uint32_t other = 1; other < CORES; other++)
        ask(&cores[other], first);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void put(struct queue *queue, struct thread *thread)
{
    thread->next = NULL;
    if (queue->first == NULL)
        queue->first = thread;
    else
        queue->last->next = thread;
    queue->last = thread;
    queue->length++;
}

static struct thread *take(struct queue *queue)
{
    struct thread *const thread = queue->first;
    if (thread != NULL) {
        queue->first = thread->next;
        queue->length--;
    }
    return thread;
}

static void make_runnable(struct thread *thread)
{
    thread->state = RUNNABLE;
    put(&cores[thread->core].runnable, thread);
}

static void wake(struct core *core, struct thread *thread)
{
    if (thread == NULL)
        return;
    core->counts.wakings++;
    lat_kernel_sched_waking(thread->tid, thread->core);
    make_runnable(thread);
    if (thread->core != core->number)
        machine_send(thread->core);
}

static void wait(struct thread *thread, struct queue *queue)
{
    thread->state = WAITING;
    put(queue, thread);
}

static void switch_to(struct core *core, struct thread *next)
{
    const struct thread *const last = core->current;
    core->expired = 0;
    machine_timer(next == NULL ? 0 : SLICE_TICKS);
    if (next == last)
        return;
    core->counts.switches++;
    lat_kernel_sched_switch(last == NULL ? 0 : last->tid, last == NULL ? 0 : (uint32_t)last->state,
                            next == NULL ? 0 : next->tid);
    interface_switch(next == NULL ? 0 : next->pid);
    core->current = next;
    /* Context numbers 0 and 1 have a special meaning in traces. */
    core->context = next == NULL ? core->number + 2u : next->tid;
    core->process = next == NULL ? 1u : next->pid;
    core->frame = next == NULL ? &core->own : &next->frame;
}

/* ---- system calls ------------------------------------------------------------------------------ */

static int send(struct core *core, struct thread *thread)
{
    struct channel *const channel = &channels[*machine_first(&thread->frame)];
    const uint64_t value = *machine_second(&thread->frame);
    if (channel->sent - channel->received == CHANNEL_SLOTS) {
        wait(thread, &channel->senders);
        return 0;
    }
    const uint32_t sequence = channel->sent++;
    channel->values[sequence % CHANNEL_SLOTS] = value;
    lat_message_send((uint32_t)*machine_first(&thread->frame), sequence, value);
    interface_message(1, (uint32_t)*machine_first(&thread->frame));
    *machine_first(&thread->frame) = 0;
    wake(core, take(&channel->receivers));
    return 1;
}

static int receive(struct core *core, struct thread *thread)
{
    struct channel *const channel = &channels[*machine_first(&thread->frame)];
    if (channel->sent == channel->received) {
        wait(thread, &channel->receivers);
        return 0;
    }
    const uint32_t sequence = channel->received++;
    const uint64_t value = channel->values[sequence % CHANNEL_SLOTS];
    lat_message_receive((uint32_t)*machine_first(&thread->frame), sequence, value);
    interface_message(0, (uint32_t)*machine_first(&thread->frame));
    *machine_first(&thread->frame) = value;
    wake(core, take(&channel->senders));
    return 1;
}

static int lock(struct core *core, struct thread *thread)
{
    const uint32_t number = (uint32_t)*machine_first(&thread->frame);
    struct mutex *const mutex = &mutexes[number];
    if (mutex->owner != NULL && mutex->owner != thread) {
        core->counts.waits++;
        thread->waited = 1;
        lat_mutex_wait(number, thread->tid);
        wait(thread, &mutex->waiting);
        return 0;
    }
    mutex->owner = thread;
    if (thread->waited) {
        core->counts.handed++;
        lat_mutex_waited(number, thread->tid);
    }
    thread->waited = 0;
    core->counts.locks++;
    lat_mutex_lock(number);
    interface_lock(thread->tid, number);
    *machine_first(&thread->frame) = 0;
    return 1;
}

static int unlock(struct core *core, struct thread *thread)
{
    const uint32_t number = (uint32_t)*machine_first(&thread->frame);
    struct mutex *const mutex = &mutexes[number];
    if (mutex->owner != thread) {
        *machine_first(&thread->frame) = UINT64_MAX;
        return 1;
    }
    core->counts.unlocks++;
    lat_mutex_unlock(number);
    *machine_first(&thread->frame) = 0;
    /* Hand-over: the next thread owns the mutex before it runs. */
    mutex->owner = take(&mutex->waiting);
    wake(core, mutex->owner);
    return 1;
}

static int print(struct thread *thread)
{
    for (uint64_t at = *machine_first(&thread->frame); machine_is_user(at, 1); at++) {
        const char c = *(const char *)(uintptr_t)at;
        if (c == '\0')
            break;
        console_put(c);
    }
    *machine_first(&thread->frame) = 0;
    return 1;
}

static void exit_thread(struct thread *thread)
{
    thread->state = ENDED;
    if (--living == 0)
        for (uint32_t i = 0; i < CORES; i++)
            machine_send(i);
}

static void trace_call(struct thread *thread, int begins)
{
    /* The result is returned in the place of the first argument. */
    const uint32_t first = (uint32_t)*machine_first(&thread->frame);
    const int64_t result = (int64_t)*machine_first(&thread->frame);
#define CALL(NAME, name, ...)                                                                   \
    case CALL_##NAME:                                                                           \
        if (begins)                                                                             \
            lat_kernel_syscall_entry_##name(__VA_ARGS__);                                       \
        else                                                                                    \
            lat_kernel_syscall_exit_##name(result);                                                   \
        break
    switch (thread->call) {
        CALL(YIELD, yield);
        CALL(SEND, send, first);
        CALL(RECEIVE, receive, first);
        CALL(LOCK, lock, first);
        CALL(UNLOCK, unlock, first);
        CALL(PRINT, print);
    case CALL_EXIT:
        lat_kernel_syscall_entry_exit();
        break;
    case CALL_NONE:
        break;
    }
#undef CALL
}

/* Whether the call of a thread is complete; otherwise it waits, and this function is called again. */
static int finish_call(struct core *core, struct thread *thread)
{
    int is_done = 1;
    switch (thread->call) {
    case CALL_YIELD: core->expired = 1; break;
    case CALL_SEND: is_done = send(core, thread); break;
    case CALL_RECEIVE: is_done = receive(core, thread); break;
    case CALL_LOCK: is_done = lock(core, thread); break;
    case CALL_UNLOCK: is_done = unlock(core, thread); break;
    case CALL_PRINT: is_done = print(thread); break;
    case CALL_EXIT: exit_thread(thread); return 0;
    case CALL_NONE: return 1;
    }
    if (is_done) {
        core->counts.returns++;
        trace_call(thread, 0);
        thread->call = CALL_NONE;
    }
    return is_done;
}

static int is_call(uint64_t number, uint64_t first)
{
    switch (number) {
    case CALL_SEND:
    case CALL_RECEIVE: return first < CHANNELS;
    case CALL_LOCK:
    case CALL_UNLOCK: return first < MUTEXES;
    default: return number >= CALL_YIELD && number <= CALL_EXIT;
    }
}

/* ---- scheduling ----------------------------------------------------------------------------------- */

static void handle(struct core *core, enum interrupt which)
{
    core->counts.interrupts++;
    lat_kernel_irq_handler_entry((uint32_t)which);
    interface_interrupt(1, (uint32_t)which);
    if (which == INTERRUPT_MESSAGE) {
        machine_taken();
    } else {
        core->expired = 1;
        machine_timer(SLICE_TICKS);
    }
    interface_interrupt(0, (uint32_t)which);
    lat_kernel_irq_handler_exit((uint32_t)which);
}

__attribute__((weak)) void kernel_idle_hook(struct core *core)
{
    (void)core;
}

static _Noreturn void end(struct core *core)
{
    unlock_kernel();
    compare_clocks(core, EXCHANGES + 1);
    if (core->number == 0)
        put_counts();
    machine_stop();
}

/* Sleeps until a thread is runnable. */
static void idle(struct core *core)
{
    if (living == 0)
        end(core);
    unlock_kernel();
    kernel_idle_hook(core);
    const uint64_t pending = machine_sleep();
    lock_kernel();
    for (uint32_t which = INTERRUPT_MESSAGE; which <= INTERRUPT_TIMER; which += 4)
        if ((pending >> which & 1u) != 0)
            handle(core, (enum interrupt)which);
}

/* The thread that this core runs next. */
static struct frame *choose(struct core *core)
{
    for (;;) {
        struct thread *const thread = core->current;
        const int could = thread != NULL && thread->state == RUNNABLE;
        if (could && !core->expired) {
            if (finish_call(core, thread) && !core->expired)
                break;
            continue;
        }
        if (could && core->runnable.first != NULL)
            make_runnable(thread);
        struct thread *const next = could && core->runnable.first == NULL ? thread : take(&core->runnable);
        switch_to(core, next);
        if (next == NULL)
            idle(core);
    }
    unlock_kernel();
    return &core->current->frame;
}

#ifdef CRASH_AFTER
/* For the crash test: a trap interrupts the next record of core 2 where its first field is stored. */
static void crash_soon(const struct core *core)
{
    const struct lat_small_ring *const ring = ring_of(core);
    if (core->number == 2 && core->counts.calls == CRASH_AFTER)
        machine_watch((const char *)ring + ring->cursor + 8);
}
#endif

struct frame *kernel_interrupt(struct core *core, enum interrupt which)
{
    lock_kernel();
    handle(core, which);
    return choose(core);
}

struct frame *kernel_call(struct core *core)
{
    struct thread *const thread = core->current;
    struct frame *const frame = &thread->frame;
    const uint64_t number = *machine_number(frame);
    if (!is_call(number, *machine_first(frame))) {
        *machine_first(frame) = UINT64_MAX;
        return frame;
    }
    lock_kernel();
    core->counts.calls++;
    thread->call = (enum call)number;
    trace_call(thread, 1);
#ifdef CRASH_AFTER
    crash_soon(core);
#endif
    return choose(core);
}

void kernel_begin(void)
{
    struct core *const core = &cores[0];
    const struct lat_small_setup setup = {AREA_BYTES, 4096, 16, LAT_SMALL_MODE_DISCARD, schemas,
                                          SCHEMAS};
    for (uint32_t i = 0; i < CORES; i++) {
        cores[i].number = i;
        cores[i].context = i + 2u;
        cores[i].process = 1;
    }
    if (lat_small_init(&setup) != LAT_SMALL_OK)
        kernel_panic(core, 0, 0);
    for (uint32_t i = 0; i < SCHEMAS; i++)
        lat_small_enable(schemas[i], LAT_SMALL_ALL, 1);
    interface_begin();
    lat_small_name_process(1, "kernel");
    for (uint32_t i = 0; i < application_count; i++)
        lat_small_name_process(applications[i].pid, applications[i].name);
    uint32_t in_application[THREADS] = {0};
    for (uint32_t i = 0; i < job_count; i++) {
        const struct job *const job = &jobs[i];
        struct thread *const thread = &threads[i];
        thread->pid = applications[job->application].pid;
        thread->tid = thread->pid + 1 + in_application[job->application]++;
        thread->core = job->core;
        machine_make(&thread->frame, job->entry, job->argument, thread_stacks[i + 1]);
        lat_kernel_sched_process_fork(thread->tid, thread->pid, job->name);
        living++;
        make_runnable(thread);
    }
}

_Noreturn void kernel_core(struct core *core)
{
    static const char *const names[CORES] = {"core 0", "core 1", "core 2", "core 3"};
    lat_small_name(names[core->number]);
    compare_clocks(core, 1);
    lock_kernel();
    machine_resume(choose(core));
}
