// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tracks which events of which writers were found: each exactly once, whole, and in order in its ring. */
#ifndef TEST_LEDGER_H
#define TEST_LEDGER_H

#include "values.h"

#include <stdlib.h>

struct ledger {
    const struct reader *reader;
    uint64_t writers, numbers;
    uint8_t *seen;     /* one bit an event of the main kind */
    uint64_t *handler; /* number of events of the signal handler, by writer; they are numbered */
    uint64_t *last;    /* by ring and writer: last number + 1 */
    uint32_t *tid;     /* by writer: its thread id */
    uint64_t found, torn, twice, disordered, misattributed, found_in_handler;
};

static inline void ledger_make(struct ledger *ledger, struct reader *reader, uint64_t writers,
                               uint64_t numbers)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->reader = reader;
    ledger->writers = writers;
    ledger->numbers = numbers;
    ledger->seen = (uint8_t *)calloc(writers * numbers / 8 + 1, 1);
    ledger->handler = (uint64_t *)calloc(writers, 8);
    ledger->last = (uint64_t *)calloc(writers * READER_RINGS_MAX, 8);
    ledger->tid = (uint32_t *)calloc(writers, 4);
    if (!ledger->seen || !ledger->handler || !ledger->last || !ledger->tid)
        abort();
}

static inline void ledger_free(struct ledger *ledger)
{
    free(ledger->seen);
    free(ledger->handler);
    free(ledger->last);
    free(ledger->tid);
}

static inline int ledger_has(const struct ledger *ledger, uint64_t writer, uint64_t number)
{
    const uint64_t bit = writer * ledger->numbers + number;
    return ledger->seen[bit / 8] >> (bit % 8) & 1;
}

/** A reader's `visit`. */
static inline void ledger_visit(void *context, const struct record *record)
{
    struct ledger *ledger = (struct ledger *)context;
    const uint32_t event = record->id - ledger->reader->tests_base;
    uint64_t value;
    if (record->id < LAT_INTERNAL_EVENT_COUNT || event > 12)
        return;
    if (!value_read(record, event, &value) || value_writer(value) >= ledger->writers) {
        ledger->torn++;
        return;
    }
    const uint64_t writer = value_writer(value), number = value_number(value);
    if (ledger->tid[writer] == 0)
        ledger->tid[writer] = record->tid;
    ledger->misattributed += ledger->tid[writer] != record->tid;
    if (event == 10) { /* HANDLER */
        ledger->handler[writer]++;
        ledger->found_in_handler++;
        return;
    }
    if (number >= ledger->numbers) {
        ledger->torn++;
        return;
    }
    uint64_t *last = &ledger->last[writer * READER_RINGS_MAX + record->ring];
    ledger->disordered += number < *last;
    *last = number + 1;
    ledger->twice += (uint64_t)ledger_has(ledger, writer, number);
    const uint64_t bit = writer * ledger->numbers + number;
    ledger->seen[bit / 8] = (uint8_t)(ledger->seen[bit / 8] | 1u << (bit % 8));
    ledger->found++;
}

#endif
