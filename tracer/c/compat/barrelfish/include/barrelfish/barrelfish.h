/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The names of Barrelfish's library that programs need for tracing. */
#ifndef BARRELFISH_BARRELFISH_H
#define BARRELFISH_BARRELFISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t errval_t;
typedef uint8_t coreid_t;
typedef uintptr_t dispatcher_handle_t;

#define SYS_ERR_OK ((errval_t)0)
static inline bool err_is_ok(errval_t error)
{
    return error == SYS_ERR_OK;
}
static inline bool err_is_fail(errval_t error)
{
    return error != SYS_ERR_OK;
}

/** A callback and its argument. */
struct event_closure {
    void (*handler)(void *argument);
    void *arg;
};
#define MKCLOSURE(handler_, argument_) ((struct event_closure){(handler_), (argument_)})
#define NOP_CLOSURE ((struct event_closure){NULL, NULL})
#define NOP_CONT NOP_CLOSURE

/* Capabilities have no meaning here. */
struct cnoderef {
    uint32_t address;
};
struct capref {
    struct cnoderef cnode;
    uint32_t slot;
};

#endif
