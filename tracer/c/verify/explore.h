// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Runs a few coroutines in every order (stateless model checking with a bound on the number of
 * switches, as in Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
 *
 * A run is determined by the choices made in it. The first run takes choice 0 everywhere; each
 * further one repeats the previous run up to the last point with an untried choice, and takes that.
 */
#ifndef VERIFY_EXPLORE_H
#define VERIFY_EXPLORE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define EXPLORE_CHOICES_MAX 100000u

static struct {
    uint8_t chosen[EXPLORE_CHOICES_MAX], options[EXPLORE_CHOICES_MAX];
    uint32_t made, known; /* in this run; repeated from the last one */
    uint32_t budget;      /* deviations from choice 0 that this run may still make */
    uint64_t runs;
} explore;

static void explore_begin(uint32_t budget)
{
    explore.made = 0;
    explore.budget = budget;
    explore.runs++;
}

/* One of `options`; 0 is free, every other costs one of the budget. */
static uint32_t explore_choose(uint32_t options)
{
    uint32_t choice = 0;
    if (explore.budget == 0)
        options = 1;
    if (options <= 1)
        return 0;
    if (explore.made == EXPLORE_CHOICES_MAX) {
        printf("FAIL a run without end\n");
        exit(1);
    }
    if (explore.made < explore.known) {
        choice = explore.chosen[explore.made];
    } else {
        explore.chosen[explore.made] = 0;
        explore.options[explore.made] = (uint8_t)options;
        explore.known = explore.made + 1;
    }
    explore.made++;
    explore.budget -= choice != 0;
    return choice;
}

/* Prepares the next run. @return whether there is one. */
static int explore_next(void)
{
    uint32_t at = explore.made;
    while (at > 0 && explore.chosen[at - 1] + 1u >= explore.options[at - 1])
        at--;
    explore.known = at;
    if (at == 0)
        return 0;
    explore.chosen[at - 1]++;
    return 1;
}

/* ---- coroutines ------------------------------------------------------------------- */

#define COROUTINES_MAX 4u
#define COROUTINE_STACK 65536u

struct coroutine {
    ucontext_t context;
    void (*body)(uint32_t number);
    int ended; /* or killed */
};

static struct {
    struct coroutine coroutine[COROUTINES_MAX];
    uint8_t stack[COROUTINES_MAX][COROUTINE_STACK];
    ucontext_t done;
    uint32_t count, current;
} world;

static void world_leave(uint32_t from);

static void world_run(int number)
{
    world.coroutine[number].body((uint32_t)number);
    world.coroutine[number].ended = 1;
    world_leave((uint32_t)number);
}

static void world_add(void (*body)(uint32_t))
{
    const uint32_t number = world.count++;
    struct coroutine *coroutine = &world.coroutine[number];
    getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = world.stack[number];
    coroutine->context.uc_stack.ss_size = COROUTINE_STACK;
    coroutine->context.uc_link = NULL;
    coroutine->body = body;
    coroutine->ended = 0;
    makecontext(&coroutine->context, (void (*)(void))(uintptr_t)world_run, 1, (int)number);
}

#endif
