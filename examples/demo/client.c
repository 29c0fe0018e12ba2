// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The client of the demonstration: several threads, each with its own connection. Each sends an order, waits
 * for the answer and sends the next one. From time to time a signal interrupts a thread, and its handler
 * records events as well.
 *
 *     client SOCKET FIRST_ID THREADS ORDERS
 *
 * SOCKET is a name in the abstract Unix socket namespace. An order consists of two words, id and item; an
 * answer of id and pieces. Every id is used once, so that messages sent can be matched with messages
 * received, across processes.
 */
#define _GNU_SOURCE

#include "demo.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ITEMS = 64, ORDERS_PER_SIGNAL = 64, THREADS_MAX = 64 };

struct shopper {
    pthread_t thread;
    const char *socket_name;
    uint32_t first_id;
    uint32_t order_count;
    int failed;
};

static _Atomic uint32_t reminders;

static void on_signal(int signal_number)
{
    (void)signal_number;
    lat_client_reminder(atomic_fetch_add_explicit(&reminders, 1u, memory_order_relaxed));
}

static int connect_to(const char *name)
{
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    const size_t name_bytes = strlen(name);
    if (name_bytes + 1 > sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path + 1, name, name_bytes);
    const socklen_t address_bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_bytes);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, address_bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Whole messages: a signal or a full socket may split a transfer. */
static int transfer(int fd, void *data, size_t bytes, int outwards)
{
    char *at = data;
    while (bytes > 0) {
        const ssize_t moved = outwards ? write(fd, at, bytes) : read(fd, at, bytes);
        if (moved <= 0) {
            if (moved < 0 && errno == EINTR)
                continue;
            return -1;
        }
        at += moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

/* Computation of some microseconds which compilers cannot remove. */
static uint32_t think(uint32_t seed)
{
    volatile uint32_t state = seed;
    for (uint32_t step = 0; step < 2000u + (seed & 0xfffu); step++)
        state = state * 1664525u + 1013904223u;
    return state;
}

static int order(int fd, uint32_t id, uint32_t item)
{
    uint32_t message[2] = {id, item};
    lat_client_order(id, item);
    lat_client_send(id, (uint32_t)sizeof message);
    if (transfer(fd, message, sizeof message, 1) != 0)
        return -1;
    lat_client_state(LAT_ENUM_CLIENT_STATE_STATE_WAITING);
    if (transfer(fd, message, sizeof message, 0) != 0 || message[0] != id)
        return -1;
    lat_client_receive(id, (uint32_t)sizeof message);
    lat_client_done(id, message[1]);
    return 0;
}

static void *shop(void *argument)
{
    struct shopper *const me = argument;
    const int fd = connect_to(me->socket_name);
    me->failed = fd < 0;
    uint32_t random = me->first_id;
    for (uint32_t n = 0; n < me->order_count && !me->failed; n++) {
        lat_client_state(LAT_ENUM_CLIENT_STATE_STATE_THINKING);
        random = think(random);
        if (n % ORDERS_PER_SIGNAL == ORDERS_PER_SIGNAL - 1)
            pthread_kill(pthread_self(), SIGUSR1);
        me->failed = order(fd, me->first_id + n, (random >> 8) % ITEMS) != 0;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s SOCKET FIRST_ID THREADS ORDERS\n", argv[0]);
        return 2;
    }
    const uint32_t first_id = (uint32_t)strtoul(argv[2], NULL, 10);
    const uint32_t thread_count = (uint32_t)strtoul(argv[3], NULL, 10);
    const uint32_t order_count = (uint32_t)strtoul(argv[4], NULL, 10);
    if (thread_count == 0 || thread_count > THREADS_MAX)
        return 2;

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);

    static struct shopper shoppers[THREADS_MAX];
    int failed = 0;
    for (uint32_t i = 0; i < thread_count; i++) {
        shoppers[i].socket_name = argv[1];
        shoppers[i].first_id = first_id + i * order_count;
        shoppers[i].order_count = order_count;
        if (pthread_create(&shoppers[i].thread, NULL, shop, &shoppers[i]) != 0)
            return 1;
    }
    for (uint32_t i = 0; i < thread_count; i++) {
        pthread_join(shoppers[i].thread, NULL);
        failed |= shoppers[i].failed;
    }
    return failed;
}
