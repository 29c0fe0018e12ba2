/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of <base/trace/events.h> that is compiled once: native policies, packets. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <base/trace/events.h>

#include <lat/packet.h>

#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <cstdio>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

namespace Genode::Trace {

/* ---- threads ---------------------------------------------------------------------------------- */

static __thread uint32_t thread_id;

uint32_t _thread_id()
{
    if (__builtin_expect(thread_id == 0, false))
        thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    return thread_id;
}

static void child_begins()
{
    thread_id = 0;
}

/* ---- policies --------------------------------------------------------------------------------- */

/* Maximum size of a record, on the stack of the traced thread. */
static constexpr size_t MOST_BYTES = 4096;

bool _has_policy;
/* A thread increments `inside` and then reads `module`; unloading clears `module` and then waits until
 * `inside` is 0: pair P2, both in sequentially consistent order. */
static Policy_module *module;
static uint32_t inside;
static std::mutex loading; /* protects all below */
static void *library;
static char why[512];

void _with_policy(Point point, size_t (*generate)(void const *, Policy_module &, char *), void const *event)
{
    char record[MOST_BYTES];
    __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST); /* pair P2 */
    Policy_module *const policy = __atomic_load_n(&module, __ATOMIC_SEQ_CST); /* pair P2 */
    if (policy != nullptr) {
        size_t const most = policy->max_event_size();
        size_t const bytes = generate(event, *policy, record);
        if (bytes > most || bytes > MOST_BYTES)
            lat_policy_overrun(point, bytes);
        else if (bytes != 0)
            lat_policy_record(point, record, static_cast<uint32_t>(bytes));
    }
    __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST); /* pair P2 */
}

static void unload()
{
    __atomic_store_n(&_has_policy, false, __ATOMIC_RELAXED);
    __atomic_store_n(&module, static_cast<Policy_module *>(nullptr), __ATOMIC_SEQ_CST); /* pair P2 */
    while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != 0) /* pair P2 */
        sched_yield();
    if (library != nullptr)
        dlclose(library);
    library = nullptr;
}

void unload_policy()
{
    std::lock_guard<std::mutex> guard(loading);
    unload();
}

char const *load_policy(char const *path)
{
    std::lock_guard<std::mutex> guard(loading);
    void *const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        std::snprintf(why, sizeof why, "%s", dlerror());
        return why;
    }
    auto *const table = static_cast<Policy_module *>(dlsym(opened, "policy_jump_table"));
    if (table == nullptr || table->max_event_size == nullptr || table->trace_eth_packet == nullptr ||
        table->checkpoint == nullptr || table->log_output == nullptr || table->rpc_call == nullptr ||
        table->rpc_returned == nullptr || table->rpc_dispatch == nullptr || table->rpc_reply == nullptr ||
        table->signal_submit == nullptr || table->signal_received == nullptr) {
        std::snprintf(why, sizeof why,
                      "%s: no policy_jump_table with ten functions: link policy/table.cc", path);
        dlclose(opened);
        return why;
    }
    size_t const most = table->max_event_size();
    if (most > MOST_BYTES) {
        std::snprintf(why, sizeof why, "%s: max_event_size is %zu: at most %zu bytes", path, most,
                      MOST_BYTES);
        dlclose(opened);
        return why;
    }
    unload();
    library = opened;
    __atomic_store_n(&module, table, __ATOMIC_SEQ_CST); /* pair P2 */
    __atomic_store_n(&_has_policy, true, __ATOMIC_RELAXED);
    return nullptr;
}

/* Loads a policy for programs that load none themselves. The user names it in the environment, so a program
   that runs with other rights than its user ignores it. */
static __attribute__((constructor(202))) void begin()
{
    pthread_atfork(nullptr, nullptr, child_begins);
    char const *const path = secure_getenv("LATERALIS_GENODE_POLICY");
    char const *const wrong = path != nullptr && *path != 0 ? load_policy(path) : nullptr;
    if (wrong != nullptr)
        std::fprintf(stderr, "error: LATERALIS_GENODE_POLICY: %s\n", wrong);
}

/* ---- packets ---------------------------------------------------------------------------------- */

uint32_t Ethernet_packet::captured_bytes = 100;

void Ethernet_packet::_record() const
{
    struct lat_interface const interface = {name, LAT_LINK_ETHERNET, captured_bytes};
    lat_record_packet(&interface, direction == SENT ? LAT_PACKET_OUTBOUND : LAT_PACKET_INBOUND, data, length);
}

}
