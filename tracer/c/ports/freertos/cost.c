// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The cost of the trace macros: the runner counts the instructions between the markers in images without
 * them, with them and all events off, and with them on. Prints `I WHAT` in the order of the markers.
 */
#include <FreeRTOS.h>
#include <queue.h>
#include <semphr.h>
#include <task.h>

#include "machine.h"
#include "text.h"

__attribute__((noinline)) void mark_begin(void);
__attribute__((noinline)) void mark_end(void);
void mark_begin(void)
{
    __asm__ volatile("" ::: "memory");
}
void mark_end(void)
{
    __asm__ volatile("" ::: "memory");
}

static QueueHandle_t queue;
static SemaphoreHandle_t mutex;
static volatile int is_counted;

unsigned long example_count_switch(void)
{
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

void example_interrupt(void)
{
}

void vApplicationTickHook(void)
{
}

static void one(void *unused)
{
    (void)unused;
    uint32_t item = 7;
    /* The other task waits in its own yield. Its first record includes a WRITER record and may open a
     * packet. */
    taskYIELD();
    taskYIELD();
    mark_begin();
    mark_end();
    is_counted = 1;
    mark_begin();
    taskYIELD();
    /* The task has already recorded an event since it was switched in. */
    xQueueSend(queue, &item, 0);
    mark_begin();
    taskYIELD();
    is_counted = 0;
    /* The first event of a task records its name: it is not the counted one. */
    xQueueSend(queue, &item, 0);
    mark_begin();
    xQueueSend(queue, &item, 0);
    mark_end();
    mark_begin();
    xQueueReceive(queue, &item, 0);
    mark_end();
    mark_begin();
    xSemaphoreTake(mutex, 0);
    mark_end();
    mark_begin();
    xSemaphoreGive(mutex);
    mark_end();
    put_text("I nothing\nI a switch\nI a switch after an event\nI xQueueSend\nI xQueueReceive\n"
             "I mutex taken\nI mutex given\ndone\n");
    board_stop();
}

static void other(void *unused)
{
    (void)unused;
    for (;;) {
        taskYIELD();
        if (is_counted)
            mark_end();
    }
}

_Noreturn void program(void)
{
#ifndef EXAMPLE_WITHOUT_TRACE
    static const struct lat_schema *const schemas[] = {LAT_SCHEMA(freertos)};
    const struct lat_small_setup setup = {board_area_bytes, 16384, 8, LAT_SMALL_MODE_DISCARD, schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK)
        example_fault(__FILE__, __LINE__);
#ifndef EXAMPLE_OFF
    lat_small_enable(LAT_SCHEMA(freertos), LAT_SMALL_ALL, 1);
#endif
#endif
    machine_begin();
    queue = xQueueCreate(8, sizeof(uint32_t));
    mutex = xSemaphoreCreateMutex();
    xTaskCreate(one, "one", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    xTaskCreate(other, "other", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    vTaskStartScheduler();
    board_stop();
}
