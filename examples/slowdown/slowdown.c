// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A small shop: threads answer requests, and send orders and notices to two desks over pipes.
 * Each pipe leads through a courier, a thread without events that acts like a network.
 *
 *     slowdown [--price PERCENT] [--order MICROSECONDS] [--requests N]
 *
 * --price makes one function slower by this percentage, --order delays one path of messages by this
 * number of microseconds. Everything else is the same work in each run: loops of a fixed length.
 */
#define _GNU_SOURCE

#include "slowdown.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, PARSE_STEPS = 20000, PRICE_STEPS = 60000, STORE_STEPS = 30000 };
enum { PACK_STEPS = 15000, PAUSE_US = 4000 };

struct path {
    const char *name;
    int in[2];
    int out[2];
    unsigned delay_us;
};

static struct path order_path = {.name = "order"};
static struct path notice_path = {.name = "notice"};
static unsigned price_percent;
static unsigned request_count = 300;

static void rest(unsigned microseconds)
{
    struct timespec time = {microseconds / 1000000u, (long)(microseconds % 1000000u) * 1000};
    while (nanosleep(&time, &time) != 0) {
    }
}

/* Computation which compilers cannot remove. */
static uint32_t work(uint32_t seed, unsigned steps)
{
    volatile uint32_t state = seed;
    for (unsigned step = 0; step < steps; step++)
        state = state * 1664525u + 1013904223u;
    return state;
}

struct letter {
    uint32_t id;
    struct timespec posted;
};

static void give(int fd, const struct letter *letter)
{
    if (write(fd, letter, sizeof *letter) != (ssize_t)sizeof *letter)
        exit(1);
}

static int take(int fd, struct letter *letter)
{
    return read(fd, letter, sizeof *letter) == (ssize_t)sizeof *letter;
}

static void post(const struct path *path, uint32_t id)
{
    struct letter letter = {.id = id};
    clock_gettime(CLOCK_MONOTONIC, &letter.posted);
    give(path->in[1], &letter);
}

static void price(uint32_t item)
{
    lat_shop_price(item);
    work(item, PRICE_STEPS + PRICE_STEPS / 100u * price_percent);
    lat_shop_priced(item);
}

static void request(uint32_t id)
{
    lat_shop_request(id);
    lat_shop_parse();
    work(id, PARSE_STEPS);
    lat_shop_parsed();
    price(id % 7u);
    lat_shop_order(id);
    post(&order_path, id);
    lat_shop_store();
    work(id, STORE_STEPS);
    lat_shop_stored();
    lat_shop_notice(id);
    post(&notice_path, id);
    lat_shop_answered(id);
}

static void *shop(void *first)
{
    const uint32_t first_id = *(const uint32_t *)first;
    pthread_setname_np(pthread_self(), "shop");
    for (uint32_t n = 0; n < request_count; n++) {
        request(first_id + n);
        rest(PAUSE_US);
    }
    return NULL;
}

/* Waits until this delay after the letter was posted, however many others are in transit. */
static void arrive(const struct letter *letter, unsigned delay_us)
{
    struct timespec time = letter->posted;
    time.tv_nsec += (long)delay_us * 1000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
    }
}

static void *courier(void *argument)
{
    struct path *const path = argument;
    pthread_setname_np(pthread_self(), "courier");
    for (struct letter letter; take(path->in[0], &letter);) {
        if (path->delay_us > 0)
            arrive(&letter, path->delay_us);
        give(path->out[1], &letter);
    }
    close(path->out[1]);
    return NULL;
}

static void *desk(void *argument)
{
    struct path *const path = argument;
    const int packs = path == &order_path;
    pthread_setname_np(pthread_self(), packs ? "order-desk" : "notice-desk");
    for (struct letter letter; take(path->out[0], &letter);) {
        if (!packs) {
            lat_desk_notice(letter.id);
            continue;
        }
        lat_desk_order(letter.id);
        lat_desk_pack(letter.id);
        work(letter.id, PACK_STEPS);
        lat_desk_packed(letter.id);
    }
    return NULL;
}

static int option(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const unsigned value = (unsigned)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--price") == 0)
            price_percent = value;
        else if (strcmp(argv[i], "--order") == 0)
            order_path.delay_us = value;
        else if (strcmp(argv[i], "--requests") == 0)
            request_count = value;
        else
            return -1;
    }
    return argc % 2 == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (option(argc, argv) != 0) {
        fprintf(stderr,
            "usage: %s [--price PERCENT] [--order MICROSECONDS] [--requests N]\n", argv[0]);
        return 2;
    }
    struct path *const paths[] = {&order_path, &notice_path};
    pthread_t couriers[2], desks[2], shops[THREADS];
    uint32_t first_ids[THREADS];
    for (int i = 0; i < 2; i++) {
        if (pipe(paths[i]->in) != 0 || pipe(paths[i]->out) != 0
            || pthread_create(&couriers[i], NULL, courier, paths[i]) != 0
            || pthread_create(&desks[i], NULL, desk, paths[i]) != 0)
            return 1;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        first_ids[i] = i * request_count;
        if (pthread_create(&shops[i], NULL, shop, &first_ids[i]) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(shops[i], NULL);
    for (int i = 0; i < 2; i++) {
        close(paths[i]->in[1]);
        pthread_join(couriers[i], NULL);
        pthread_join(desks[i], NULL);
    }
    return 0;
}
