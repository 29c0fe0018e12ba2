// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A simulated kernel in a process that calls the hooks in the order of Zephyr's sources (kernel/sem.c,
 * mutex.c, msg_q.c, sched.c), with threads that are contexts of this process, priorities, and a tick that
 * interrupts where it is called. It is not Zephyr: Zephyr's own records on a machine are not tested by it.
 *
 * `replay FILE` writes the memory of the area to FILE, and prints its own counts:
 *
 *   C EVENT COUNT    number of such events         T NUMBER NAME    a thread
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <zephyr/tracing/tracing.h>

#include "lat_port.h"
#include "lateralis_zephyr.h"

#define ITEMS 200u
#define STACK_BYTES 65536u
#define EAGAIN_ 11
#define EBUSY_ 16

struct task {
    struct k_thread thread; /* must be first: the hooks get this address */
    ucontext_t context;
    void (*entry)(void);
    const void *waits_for;
    int result;
    unsigned order; /* when it became ready */
};

static struct task tasks[5];
static unsigned task_count, ready_count;
static struct task *current;
static uint64_t cycles_passed = 0xfffff000u; /* the low 32 bits wrap soon */

/* ---- its own counts --------------------------------------------------------------- */

enum counted {
    SWITCH, WAKING, IRQ, CREATE, END, PRIORITY, SUSPEND, RESUME, SEM_INIT, SEM_GIVE, SEM_FULL, SEM_WANT,
    SEM_BLOCK, SEM_TAKE, SEM_FAILED, MUTEX_WANT, MUTEX_BLOCK, MUTEX_LOCKED, MUTEX_HOLD, MUTEX_FREE,
    MUTEX_AGAIN, MUTEX_STILL, PUT_WANT, PUT_BLOCK, PUT, PUT_FAILED, GET_WANT, GET_BLOCK, GET, COUNTED
};
static const char *const counted_names[COUNTED] = {
    "sched_switch", "sched_waking", "irq_handler_entry", "THREAD_CREATE", "THREAD_END", "THREAD_PRIORITY",
    "THREAD_SUSPEND", "THREAD_RESUME", "SEMAPHORE_INIT", "SEMAPHORE_GIVE", "SEMAPHORE_GIVE_FULL",
    "SEMAPHORE_WANT", "SEMAPHORE_BLOCK", "SEMAPHORE_TAKE", "SEMAPHORE_TAKE_FAILED", "MUTEX_WANT",
    "MUTEX_BLOCK", "MUTEX_LOCKED", "MUTEX_HOLD", "MUTEX_FREE", "MUTEX_AGAIN", "MUTEX_STILL",
    "MSGQ_PUT_WANT", "MSGQ_PUT_BLOCK", "MSGQ_PUT", "MSGQ_PUT_FAILED", "MSGQ_GET_WANT", "MSGQ_GET_BLOCK",
    "MSGQ_GET"};
static unsigned counts[COUNTED];
static int counts_now; /* from lat_zephyr_begin on */

static void count(enum counted what)
{
    counts[what] += (unsigned)counts_now;
}

/* ---- functions of the kernel that the tracer calls --------------------------------- */

k_tid_t k_sched_current_thread_query(void)
{
    return &current->thread;
}

const char *k_thread_name_get(k_tid_t thread)
{
    return thread->name;
}

void k_thread_foreach(k_thread_user_cb_t user_cb, void *user_data)
{
    for (unsigned i = 0; i < task_count; i++)
        user_cb(&tasks[i].thread, user_data);
}

uint32_t k_cycle_get_32(void)
{
    cycles_passed += 7;
    return (uint32_t)cycles_passed;
}

unsigned int arch_irq_lock(void)
{
    return 0;
}

void arch_irq_unlock(unsigned int key)
{
    (void)key;
}

/* ---- scheduling ----------------------------------------------------------------------- */

static int is_ready(const struct task *task)
{
    return task->thread.base.thread_state == _THREAD_QUEUED;
}

static struct task *best(void)
{
    struct task *found = NULL;
    for (struct task *task = tasks; task < tasks + task_count; task++) {
        if (!is_ready(task))
            continue;
        if (found == NULL || task->thread.base.prio < found->thread.base.prio ||
            (task->thread.base.prio == found->thread.base.prio && task->order < found->order))
            found = task;
    }
    return found;
}

/* z_swap: other threads run until this one is chosen again. */
static void swap(void)
{
    sys_trace_thread_switched_out_user();
    struct task *const last = current, *const next = best();
    if (next != last) {
        current = next;
        count(SWITCH);
        swapcontext(&last->context, &next->context);
    }
    sys_trace_thread_switched_in_user();
}

static void reschedule(void)
{
    const struct task *const next = best();
    if (!is_ready(current) || next->thread.base.prio < current->thread.base.prio)
        swap();
}

static void ready(struct task *task)
{
    task->thread.base.thread_state = _THREAD_QUEUED;
    task->order = ++ready_count;
    count(WAKING);
    sys_trace_thread_sched_ready_user(&task->thread);
}

/* z_pend_curr. */
static int pend(const void *object)
{
    current->waits_for = object;
    current->thread.base.thread_state = _THREAD_PENDING;
    swap();
    return current->result;
}

static struct task *waiter_of(const void *object)
{
    struct task *found = NULL;
    for (struct task *task = tasks; task < tasks + task_count; task++)
        if (task->waits_for == object && (found == NULL || task->thread.base.prio < found->thread.base.prio))
            found = task;
    return found;
}

/* Wakes a thread that waits for this object, with a result. */
static struct task *wake(const void *object, int result)
{
    struct task *const task = waiter_of(object);
    if (task != NULL) {
        task->waits_for = NULL;
        task->result = result;
        ready(task);
    }
    return task;
}

static void begin_task(void)
{
    sys_trace_thread_switched_in_user();
    current->entry();
    count(END);
    sys_trace_thread_abort_user(&current->thread);
    current->thread.base.thread_state = _THREAD_DEAD;
    swap();
}

static struct task *create(const char *name, int prio, void (*entry)(void))
{
    struct task *const task = &tasks[task_count++];
    strncpy(task->thread.name, name, sizeof task->thread.name - 1);
    task->thread.base.prio = (int8_t)prio;
    task->entry = entry;
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = malloc(STACK_BYTES);
    task->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->context, begin_task, 0);
    count(CREATE);
    sys_trace_thread_create_user(&task->thread);
    ready(task);
    return task;
}

/* ---- semaphores, mutexes, message queues -------------------------------------------------- */

static const k_timeout_t forever = {-1}, no_wait = {0};

static void sem_init(struct k_sem *sem, unsigned initial, unsigned limit)
{
    sem->count = initial;
    sem->limit = limit;
    count(SEM_INIT);
    sys_trace_k_sem_init_user(sem, 0);
}

static void sem_give(struct k_sem *sem)
{
    count(sem->count == sem->limit ? SEM_FULL : SEM_GIVE);
    sys_trace_k_sem_give_enter_user(sem);
    if (wake(sem, 0) == NULL)
        sem->count += sem->count != sem->limit;
}

static int sem_take(struct k_sem *sem, k_timeout_t timeout)
{
    int ret = 0;
    count(SEM_WANT);
    sys_trace_k_sem_take_enter_user(sem, timeout);
    if (sem->count > 0) {
        sem->count--;
    } else if (timeout.ticks == 0) {
        ret = -EBUSY_;
    } else {
        count(SEM_BLOCK);
        sys_trace_k_sem_take_blocking_user(sem, timeout);
        ret = pend(sem);
    }
    count(ret == 0 ? SEM_TAKE : SEM_FAILED);
    sys_trace_k_sem_take_exit_user(sem, timeout, ret);
    return ret;
}

static void mutex_lock(struct k_mutex *mutex)
{
    count(MUTEX_WANT);
    sys_trace_k_mutex_lock_enter_user(mutex, forever);
    if (mutex->lock_count == 0 || mutex->owner == &current->thread) {
        mutex->lock_count++;
        mutex->owner = &current->thread;
    } else {
        count(MUTEX_BLOCK);
        sys_trace_k_mutex_lock_blocking_user(mutex, forever);
        pend(mutex);
    }
    count(MUTEX_LOCKED);
    count(mutex->lock_count == 1 ? MUTEX_HOLD : MUTEX_AGAIN);
    sys_trace_k_mutex_lock_exit_user(mutex, forever, 0);
}

static void mutex_unlock(struct k_mutex *mutex)
{
    count(mutex->lock_count == 1 ? MUTEX_FREE : MUTEX_STILL);
    sys_trace_k_mutex_unlock_enter_user(mutex);
    if (mutex->lock_count > 1) {
        mutex->lock_count--;
        return;
    }
    struct task *const next = wake(mutex, 0);
    mutex->owner = next == NULL ? NULL : &next->thread;
    mutex->lock_count = next == NULL ? 0 : 1;
    reschedule();
}

/* For one sender and one receiver; the content of messages does not matter here. */
static int msgq_put(struct k_msgq *msgq, k_timeout_t timeout)
{
    int ret = 0;
    count(PUT_WANT);
    sys_trace_k_msgq_put_enter_user(msgq, timeout);
    if (msgq->used_msgs < msgq->max_msgs) {
        if (wake(msgq, 0) == NULL)
            msgq->used_msgs++;
    } else if (timeout.ticks == 0) {
        ret = -EAGAIN_;
    } else {
        count(PUT_BLOCK);
        sys_trace_k_msgq_put_blocking_user(msgq, timeout);
        ret = pend(msgq);
    }
    count(ret == 0 ? PUT : PUT_FAILED);
    sys_trace_k_msgq_put_exit_user(msgq, timeout, ret);
    reschedule();
    return ret;
}

static void msgq_get(struct k_msgq *msgq)
{
    count(GET_WANT);
    sys_trace_k_msgq_get_enter_user(msgq, forever);
    if (msgq->used_msgs > 0) {
        msgq->used_msgs--;
        if (waiter_of(msgq) != NULL) {
            count(GET_BLOCK);
            sys_trace_k_msgq_get_blocking_user(msgq, forever);
            msgq->used_msgs++;
            wake(msgq, 0);
        }
    } else {
        count(GET_BLOCK);
        sys_trace_k_msgq_get_blocking_user(msgq, forever);
        pend(msgq);
    }
    count(GET);
    sys_trace_k_msgq_get_exit_user(msgq, forever, 0);
    reschedule();
}

/* ---- the threads -------------------------------------------------------------------------- */

static struct k_sem pulse, spare;
static struct k_mutex table;
static struct k_msgq queue;
static unsigned ticks;
static struct task *consumer_task;

/* An interrupt: every third gives the semaphore; the interrupted thread may be preempted after it. */
static void tick(void)
{
    cycles_passed += 1000;
    count(IRQ);
    sys_trace_isr_enter_user();
    if (++ticks % 3 == 0)
        sem_give(&pulse);
    sys_trace_isr_exit_user();
    reschedule();
}

static void producer(void)
{
    for (unsigned n = 0; n < ITEMS; n++) {
        sem_take(&pulse, forever);
        mutex_lock(&table);
        if (n % 10 == 0)
            mutex_lock(&table);
        tick();
        if (n % 10 == 0)
            mutex_unlock(&table);
        mutex_unlock(&table);
        msgq_put(&queue, forever);
        if (n % 4 == 0) {
            /* The queue has room for two. */
            msgq_put(&queue, forever);
            msgq_put(&queue, no_wait);
            msgq_put(&queue, no_wait);
            msgq_put(&queue, forever);
        }
        sem_take(&pulse, no_wait);
    }
}

static void consumer(void)
{
    for (unsigned n = 0; n < ITEMS + ITEMS / 4 * 4 - counts[PUT_FAILED]; n++) {
        msgq_get(&queue);
        mutex_lock(&table);
        cycles_passed += 300;
        mutex_unlock(&table);
    }
}

static void background(void)
{
    for (unsigned n = 0; n < ITEMS / 2; n++) {
        mutex_lock(&table);
        tick();
        cycles_passed += 200;
        tick();
        mutex_unlock(&table);
        if (n == 50) {
            sem_give(&spare);
            sem_give(&spare);
            sem_take(&spare, forever);
            count(SUSPEND);
            sys_trace_thread_suspend_user(&consumer_task->thread);
            count(RESUME);
            sys_trace_thread_resume_user(&consumer_task->thread);
            count(PRIORITY);
            sys_trace_thread_priority_set_user(&current->thread, current->thread.base.prio);
        }
    }
}

static void idle(void)
{
    unsigned left = task_count - 2;
    while (left != 0) {
        sys_trace_idle_user();
        cycles_passed += 2000;
        tick();
        left = 0;
        for (unsigned i = 2; i < task_count; i++)
            left += tasks[i].thread.base.thread_state != _THREAD_DEAD;
    }
    tasks[0].waits_for = NULL;
    ready(&tasks[0]);
    reschedule();
}

int main(int argc, char **argv)
{
    static const struct lat_schema *const schemas[] = {LAT_SCHEMA(zephyr)};
    const struct lat_small_setup setup = {
        LAT_ZEPHYR_AREA_BYTES, 4096, 64, LAT_SMALL_MODE_DISCARD, schemas, 1};
    if (argc != 2)
        return 2;
    task_count = 1;
    current = &tasks[0];
    strncpy(current->thread.name, "main", sizeof current->thread.name - 1);
    current->thread.base.thread_state = _THREAD_QUEUED;
    create("idle", K_IDLE_PRIO, idle);
    if (lat_zephyr_begin(&setup) != LAT_SMALL_OK)
        return 3;
    counts_now = 1;
    count(SWITCH); /* to `main`, from what was before */
    sem_init(&pulse, 0, 2);
    sem_init(&spare, 0, 1);
    queue.msg_size = 4;
    queue.max_msgs = 2;
    sys_trace_k_msgq_init_user(&queue);
    create("producer", 5, producer);
    consumer_task = create("consumer", 6, consumer);
    create("background", 7, background);
    pend(&setup);
    lat_small_close();
    FILE *const file = fopen(argv[1], "wb");
    if (file == NULL || fwrite(lat_port_area, 1, LAT_ZEPHYR_AREA_BYTES, file) != LAT_ZEPHYR_AREA_BYTES ||
        fclose(file) != 0)
        return 4;
    for (unsigned i = 0; i < COUNTED; i++)
        printf("C %s %u\n", counted_names[i], counts[i]);
    for (unsigned i = 0; i < task_count; i++)
        printf("T %u %s\n", (unsigned)(uint32_t)(uintptr_t)&tasks[i].thread, tasks[i].thread.name);
    return 0;
}
