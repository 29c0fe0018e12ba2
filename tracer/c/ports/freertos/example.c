// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The FreeRTOS example: a producer and a consumer of 1000 items, a mutex with priority inheritance, an
 * interrupt that sends, a software timer, notifications, and each other kind of object once. Counts
 * its operations itself, and prints the counts at the end:
 *
 *   C WHAT COUNT       number of times an operation was done
 *   T NUMBER NAME      a task that exists at the end
 *   O NAME ADDRESS     an object; the last line is `done`
 */
#include <FreeRTOS.h>
#include <event_groups.h>
#include <message_buffer.h>
#include <queue.h>
#include <semphr.h>
#include <stream_buffer.h>
#include <task.h>
#include <timers.h>

#include <example.h>

#include "machine.h"
#include "text.h"

#define ITEMS 1000u
#define ROUNDS 5u
#define INTERRUPTS 20u
#define EXPIRIES 10u
#define NOTIFY_EACH 100u

#ifdef EXAMPLE_OVERWRITES
#define PACKETS 8u
#define MODE LAT_SMALL_MODE_OVERWRITE
#else
#define PACKETS 128u
#define MODE LAT_SMALL_MODE_DISCARD
#endif

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(freertos), LAT_SCHEMA(example)};

static QueueHandle_t items, from_interrupt, mailbox;
static SemaphoreHandle_t mutex, expired, recursive, counting, stolen;
static EventGroupHandle_t finished;
static StreamBufferHandle_t stream;
static MessageBufferHandle_t messages;
static TaskHandle_t high, medium, watcher, sleeper, in_vain;
static TimerHandle_t timer;

static uint32_t sent, received, interrupts, interrupt_sends, interrupt_items, expiries, timed, notified;
static uint32_t mediums, highs;
static volatile uint32_t work;

/* Read each time the kernel chooses the next task. The running task is still the previous one: if it differs
 * from the last reading, there was a switch. */
static TaskHandle_t last;
static uint32_t switches;

unsigned long example_count_switch(void)
{
    const TaskHandle_t now = xTaskGetCurrentTaskHandle();
    if (now != last) {
        last = now;
        switches++;
    }
    return 0;
}

void example_fault(const char *file, int line)
{
    put_text("fault ");
    put_text(file);
    put_field((uint64_t)line);
    board_put('\n');
    board_stop();
}

static void finish(unsigned bit)
{
    xEventGroupSetBits(finished, 1u << bit);
}

static void produce(void *unused)
{
    (void)unused;
    for (uint32_t item = 0; item < ITEMS; item++) {
        lat_example_produced(item);
        sent += xQueueSend(items, &item, portMAX_DELAY) == pdPASS;
    }
    finish(0);
    vTaskDelete(NULL);
}

static void consume(void *unused)
{
    (void)unused;
    for (uint32_t expected = 0; expected < ITEMS; expected++) {
        uint32_t item;
        received += xQueueReceive(items, &item, portMAX_DELAY) == pdPASS;
        configASSERT(item == expected);
        lat_example_consumed(item);
        if (item % NOTIFY_EACH == NOTIFY_EACH - 1u)
            xTaskNotify(watcher, item, eSetValueWithOverwrite);
    }
    finish(1);
    vTaskSuspend(NULL);
}

static void watch(void *unused)
{
    (void)unused;
    while (notified < ITEMS / NOTIFY_EACH) {
        uint32_t item;
        notified += xTaskNotifyWait(0, 0, &item, portMAX_DELAY) == pdTRUE;
    }
    finish(2);
    vTaskSuspend(NULL);
}

/* `low` holds the mutex when `high` needs it, and inherits its priority, so `medium` has to wait. */
static void be_low(void *unused)
{
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        xSemaphoreTake(mutex, portMAX_DELAY);
        xTaskNotifyGive(high);
        xTaskNotifyGive(medium);
        for (work = 0; work < 300; work = work + 1) {
        }
        configASSERT(mediums == round && highs == round);
        xSemaphoreGive(mutex);
        vTaskDelay(3);
    }
    finish(3);
    vTaskSuspend(NULL);
}

static void be_high(void *unused)
{
    (void)unused;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        /* The first attempt fails; the second one waits. */
        configASSERT(xSemaphoreTake(mutex, 0) == pdFALSE);
        xSemaphoreTake(mutex, portMAX_DELAY);
        highs++;
        xSemaphoreGive(mutex);
    }
}

static void be_medium(void *unused)
{
    (void)unused;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        mediums++;
    }
}

void vApplicationTickHook(void)
{
    if (interrupts < INTERRUPTS && xTaskGetTickCountFromISR() % 2u == 0)
        machine_interrupt_soon();
}

void example_interrupt(void)
{
    BaseType_t woken = pdFALSE;
#if defined(__riscv) || (defined(__unix__) && tskKERNEL_VERSION_MAJOR < 11)
    traceISR_ENTER();
#elif defined(__arm__)
    /* Every second handler begins without it: its events belong to the interrupt all the same, and its end is
     * not recorded either. */
    if (interrupts % 2u == 0)
        traceISR_ENTER();
#endif
    interrupts++;
    interrupt_sends += xQueueSendFromISR(from_interrupt, &interrupts, &woken) == pdPASS;
#if tskKERNEL_VERSION_MAJOR < 11
    traceISR_EXIT();
#endif
#ifndef __unix__
    portYIELD_FROM_ISR(woken);
#endif
}

static void be_woken(void *unused)
{
    (void)unused;
    while (interrupt_items < INTERRUPTS) {
        uint32_t number;
        interrupt_items += xQueueReceive(from_interrupt, &number, portMAX_DELAY) == pdPASS;
    }
    finish(4);
    vTaskSuspend(NULL);
}

static void expire(TimerHandle_t which)
{
    expiries++;
    xSemaphoreGive(expired);
    if (expiries == EXPIRIES)
        xTimerStop(which, 0);
}

static void be_timed(void *unused)
{
    (void)unused;
    while (timed < EXPIRIES)
        timed += xSemaphoreTake(expired, portMAX_DELAY) == pdTRUE;
    finish(5);
    vTaskSuspend(NULL);
}

static void sleep_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        vTaskSuspend(NULL);
}

static void wait_in_vain(void *unused)
{
    (void)unused;
    configASSERT(xSemaphoreTake(stolen, portMAX_DELAY) == pdTRUE);
    vTaskSuspend(NULL);
}

/* A waiting task is woken, finds the item taken by another task, and continues to wait. */
static void steal(void)
{
    while (eTaskGetState(in_vain) != eBlocked)
        vTaskDelay(1);
    vTaskSuspendAll();
    configASSERT(xSemaphoreGive(stolen) == pdTRUE);
    configASSERT(xSemaphoreTake(stolen, 0) == pdTRUE);
    (void)xTaskResumeAll();
    while (eTaskGetState(in_vain) != eBlocked)
        vTaskDelay(1);
    configASSERT(xSemaphoreGive(stolen) == pdTRUE);
    while (eTaskGetState(in_vain) != eSuspended)
        vTaskDelay(1);
}

/* Each kind of object once. */
static void each_kind(void)
{
    uint32_t value = 1;
    configASSERT(xQueueOverwrite(mailbox, &value) == pdPASS);
    value = 2;
    configASSERT(xQueueOverwrite(mailbox, &value) == pdPASS);
    configASSERT(xQueuePeek(mailbox, &value, 0) == pdPASS && value == 2);
    configASSERT(xQueueSend(mailbox, &value, 0) == errQUEUE_FULL);
    configASSERT(xQueueSend(mailbox, &value, 2) == errQUEUE_FULL);
    configASSERT(xQueueReceive(mailbox, &value, 0) == pdPASS && value == 2);
    configASSERT(xQueueReceive(mailbox, &value, 0) == errQUEUE_EMPTY);
    configASSERT(xQueueReceive(mailbox, &value, 2) == errQUEUE_EMPTY);
    configASSERT(xSemaphoreGive(counting) == pdTRUE);
    configASSERT(xSemaphoreGive(counting) == pdFALSE);
    configASSERT(xSemaphoreTake(counting, 0) == pdTRUE);
    configASSERT(xSemaphoreTake(counting, 1) == pdFALSE);
    configASSERT(xSemaphoreTakeRecursive(recursive, 0) == pdTRUE);
    configASSERT(xSemaphoreTakeRecursive(recursive, 0) == pdTRUE);
    configASSERT(xSemaphoreGiveRecursive(recursive) == pdTRUE);
    configASSERT(xSemaphoreGiveRecursive(recursive) == pdTRUE);
    configASSERT(xStreamBufferSend(stream, "bytes", 5, 0) == 5);
    char bytes[8];
    configASSERT(xStreamBufferReceive(stream, bytes, sizeof bytes, 0) == 5);
    configASSERT(xStreamBufferReceive(stream, bytes, sizeof bytes, 1) == 0);
    configASSERT(xMessageBufferSend(messages, "message", 7, 0) == 7);
    configASSERT(xMessageBufferReceive(messages, bytes, sizeof bytes, 0) == 7);
    configASSERT(xMessageBufferSend(messages, "far too long for it", 20, 0) == 20);
    configASSERT(xMessageBufferSend(messages, "another", 7, 0) == 0);
    configASSERT(xMessageBufferSend(messages, "another", 7, 1) == 0);
    configASSERT(xMessageBufferReset(messages) == pdPASS);
    vMessageBufferDelete(messages);
    configASSERT(xSemaphoreTake(counting, 0) == pdFALSE);
    vSemaphoreDelete(counting);
    /* Two notifications before the first is taken, and none. */
    configASSERT(xTaskNotifyIndexed(xTaskGetCurrentTaskHandle(), 1, 1, eSetBits) == pdPASS);
    configASSERT(xTaskNotifyIndexed(xTaskGetCurrentTaskHandle(), 1, 2, eSetBits) == pdPASS);
    configASSERT(xTaskNotifyWaitIndexed(1, 0, 3, NULL, 0) == pdTRUE);
    configASSERT(xTaskNotifyWaitIndexed(1, 0, 3, NULL, 0) == pdFALSE);
    const EventGroupHandle_t group = xEventGroupCreate();
    xEventGroupSetBits(group, 1);
    configASSERT(xEventGroupWaitBits(group, 1, pdFALSE, pdTRUE, 1) == 1);
    xEventGroupClearBits(group, 1);
    vEventGroupDelete(group);
    vTaskResume(sleeper);
    vTaskPrioritySet(sleeper, 2);
    vTaskDelay(1);
    vTaskDelete(sleeper);
    void *const memory = pvPortMalloc(100);
    configASSERT(memory != NULL);
    vPortFree(memory);
    configASSERT(xEventGroupWaitBits(finished, 1u << 20, pdFALSE, pdTRUE, 1) < 1u << 20);
    steal();
    TickType_t now = xTaskGetTickCount();
    xTaskDelayUntil(&now, 2);
}

static void object(const char *name, const void *address)
{
    put_text("O ");
    put_text(name);
    put_field((uint32_t)(uintptr_t)address);
    board_put('\n');
}

static void counter(const char *name, uint32_t value)
{
    put_text("C ");
    put_text(name);
    put_field(value);
    board_put('\n');
}

static void control(void *unused)
{
    (void)unused;
    each_kind();
    configASSERT(xEventGroupWaitBits(finished, 0x3f, pdTRUE, pdTRUE, portMAX_DELAY) == 0x3f);
    static TaskStatus_t tasks[16];
    const UBaseType_t count = uxTaskGetSystemState(tasks, 16, NULL);
#ifdef EXAMPLE_OVERWRITES
    LAT_FREERTOS_NAME_TASKS(tasks, count);
#endif
    /* No more events from here on. */
    taskENTER_CRITICAL();
    lat_small_enable(LAT_SCHEMA(freertos), LAT_SMALL_ALL, 0);
    example_count_switch();
    counter("sent", sent);
    counter("received", received);
    counter("switches", switches);
    counter("interrupts", interrupts);
    counter("interrupt-sends", interrupt_sends);
    counter("interrupt-items", interrupt_items);
    counter("expiries", expiries);
    counter("timed", timed);
    counter("notified", notified);
    counter("rounds", highs);
    counter("mediums", mediums);
    counter("heap-free", (uint32_t)xPortGetFreeHeapSize());
    object("items", items);
    object("from-interrupt", from_interrupt);
    object("mailbox", mailbox);
    object("mutex", mutex);
    object("expired", expired);
    object("stolen", stolen);
    object("timer", timer);
    for (UBaseType_t i = 0; i < count; i++) {
        put_text("T");
        put_field(tasks[i].xTaskNumber);
        board_put(' ');
        put_text(tasks[i].pcTaskName);
        board_put('\n');
    }
    put_text("done\n");
    board_stop();
}

static TaskHandle_t start(TaskFunction_t function, const char *name, UBaseType_t priority)
{
    TaskHandle_t task = NULL;
    configASSERT(xTaskCreate(function, name, configMINIMAL_STACK_SIZE, NULL, priority, &task) == pdPASS);
    return task;
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {board_area_bytes, 4096, PACKETS, MODE, schemas, 2};
    if (lat_small_init(&setup) != LAT_SMALL_OK)
        example_fault(__FILE__, __LINE__);
    lat_small_enable(LAT_SCHEMA(freertos), LAT_SMALL_ALL, 1);
    lat_small_enable(LAT_SCHEMA(example), LAT_SMALL_ALL, 1);
    lat_small_name("main");
    lat_freertos_name_interrupt(EXAMPLE_INTERRUPT, "items");
    machine_begin();

    items = xQueueCreate(8, sizeof(uint32_t));
    /* These have room for all events: on a busy host several ticks occur at once. */
    from_interrupt = xQueueCreate(INTERRUPTS, sizeof(uint32_t));
    expired = xSemaphoreCreateCounting(EXPIRIES, 0);
    mailbox = xQueueCreate(1, sizeof(uint32_t));
    mutex = xSemaphoreCreateMutex();
    recursive = xSemaphoreCreateRecursiveMutex();
    counting = xSemaphoreCreateCounting(1, 0);
    stolen = xSemaphoreCreateBinary();
    finished = xEventGroupCreate();
    stream = xStreamBufferCreate(16, 1);
    messages = xMessageBufferCreate(32);
    vQueueAddToRegistry(items, "items");
    vQueueAddToRegistry(mutex, "mutex");
    timer = xTimerCreate("beat", 4, pdTRUE, NULL, expire);

    high = start(be_high, "high", 5);
    medium = start(be_medium, "medium", 4);
    start(be_low, "low", 3);
    watcher = start(watch, "watcher", 3);
    start(be_woken, "woken", 6);
    start(be_timed, "timed", 3);
    start(produce, "producer", 1);
    start(consume, "consumer", 1);
    sleeper = start(sleep_for_ever, "sleeper", 1);
    in_vain = start(wait_in_vain, "in-vain", 2);
    start(control, "control", 2);
    xTimerStart(timer, 0);
    vTaskStartScheduler();
    example_fault(__FILE__, __LINE__);
    board_stop();
}
