/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Trace points as a Genode component uses them: a client that calls a server, signals, checkpoints of all
 * types, durations, packets, texts; and a native policy that is loaded while the program runs.
 *
 *     example POLICY.so NO-POLICY.so
 *
 * Prints each event that must be recorded, as a line of JSON. Failed checks are printed on lines that
 * begin with `wrong`.
 */
#include <base/log.h>
#include <base/trace/events.h>
#include <trace/probe.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace Genode;

static int wrongs;
static void check(bool holds, char const *what)
{
    if (!holds) {
        std::printf("wrong: %s\n", what);
        wrongs++;
    }
}

template <typename... ARGS>
static void said(char const *name, char const *format, ARGS... args)
{
    flockfile(stdout);
    std::printf("{\"tid\":%ld,\"name\":\"%s\",\"fields\":{", syscall(SYS_gettid), name);
    std::printf(format, args...);
    std::printf("}}\n");
    funlockfile(stdout);
}
static void said(char const *name, char const *fields)
{
    said(name, "%s", fields);
}
static void said_rpc(char const *event, char const *name, char const *state)
{
    said(event, "\"name\":\"%s\",\"component\":\"%s\"", name, state);
}
static void said_checkpoint(char const *event, unsigned long data, void const *addr, char const *name)
{
    said(event, "\"data\":%lu,\"addr\":%lu,\"name\":\"%s\"", data, (unsigned long)(addr_t)addr, name);
}
static void said_duration(char const *event, unsigned long data, char const *name)
{
    said(event, "\"data\":%lu,\"addr\":0,\"thread\":%ld,\"name\":\"%s\"", data, syscall(SYS_gettid), name);
}

static constexpr unsigned ROUNDS = 100;
static std::atomic<unsigned> asked, answered;
static bool has_policy;

/* Prints what the policy records for a name. */
static void said_policy(char const *point, char const *name)
{
    if (!has_policy)
        return;
    char bytes[300] = "";
    for (unsigned i = 0; name[i] != 0 && i < 64; i++)
        std::snprintf(bytes + std::strlen(bytes), 5, "%s%u", i == 0 ? "" : ",",
                      (unsigned)(unsigned char)name[i]);
    said("policy:record", "\"point\":\"%s\",\"data\":[%s]", point, bytes);
}

static void server()
{
    for (unsigned i = 1; i <= ROUNDS; i++) {
        while (asked.load(std::memory_order_acquire) != i)
            std::this_thread::yield();
        Trace::Rpc_dispatch("trigger_once");
        said_rpc("rpc:dispatch", "trigger_once", "ready");
        said_policy("rpc_dispatch", "trigger_once");
        {
            GENODE_TRACE_DURATION_NAMED(i, "schedule");
            said_duration("checkpoint:START", i, "schedule");
            GENODE_TRACE_DURATION_NAMED(0, "inner");
            said_duration("checkpoint:START", 0, "inner");
        }
        said_duration("checkpoint:END", 0, "inner");
        said_duration("checkpoint:END", i, "schedule");
        Trace::Rpc_reply("trigger_once");
        said_rpc("rpc:reply", "trigger_once", "await_rpc");
        answered.store(i, std::memory_order_release);
    }
}

static void function(unsigned i)
{
    GENODE_TRACE_CHECKPOINT(i);
    said_checkpoint("checkpoint:LEVEL", i, nullptr, __PRETTY_FUNCTION__);
    GENODE_TRACE_DURATION(i)
    said_duration("checkpoint:START", i, __PRETTY_FUNCTION__);
    GENODE_TRACE_TSC_NAMED(50, "function");
    GENODE_LOG_TSC(1000000); /* never reports here; tests that several compile in one scope */
}

static void client()
{
    char message[64] = "a message";
    Msgbuf_base const msg(message, sizeof message, 10);
    Signal_context const context{};
    char frame[128] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x06};
    for (unsigned i = 1; i <= ROUNDS; i++) {
        Trace::Rpc_call("trigger_once", msg);
        said_rpc("rpc:call", "trigger_once", "await_reply");
        said_policy("rpc_call", "trigger_once");
        asked.store(i, std::memory_order_release);
        while (answered.load(std::memory_order_acquire) != i)
            std::this_thread::yield();
        Trace::Rpc_returned("trigger_once", msg);
        said_rpc("rpc:returned", "trigger_once", "ready");
        Trace::Signal_submit{i};
        said("signal:submit", "\"number\":%u", i);
        if (has_policy)
            said("policy:overrun", "\"point\":\"signal_submit\",\"size\":128");
        Trace::Signal_received(context, i);
        said("signal:receive", "\"number\":%u,\"context\":%lu,\"component\":\"ready\"", i,
             (unsigned long)(addr_t)&context);
        GENODE_TRACE_CHECKPOINT_NAMED(i % 32, "submit queue");
        said_checkpoint("checkpoint:LEVEL", i % 32, nullptr, "submit queue");
        function(i);
        if (i % 50 == 0) /* the probe was constructed last, so it ends first */
            said("output:trace", "\"text\":\"TSC\"");
        said_duration("checkpoint:END", i, "void function(unsigned int)");
        {
            int object = 0;
            Trace::Checkpoint("object", 1, &object, Trace::Checkpoint::Type::OBJ_NEW);
            said_checkpoint("checkpoint:OBJ_NEW", 1, &object, "object");
            Trace::Checkpoint("object", 2, &object, Trace::Checkpoint::Type::OBJ_STATE);
            said_checkpoint("checkpoint:OBJ_STATE", 2, &object, "object");
            Trace::Checkpoint("object", 3, &object, Trace::Checkpoint::Type::OBJ_DEL);
            said_checkpoint("checkpoint:OBJ_DEL", 3, &object, "object");
        }
        auto const way = i % 2 == 0 ? Trace::Ethernet_packet::Direction::RECV
                                    : Trace::Ethernet_packet::Direction::SENT;
        frame[14] = (char)i;
        Trace::Ethernet_packet("uplink", way, frame, sizeof frame);
        said("packets:packet", "\"first\":%u,\"direction\":\"%s\"", i, i % 2 == 0 ? "inbound" : "outbound");
        if (has_policy)
            said("policy:record", "\"point\":\"eth_packet\",\"data\":[128,0,0,0,0,0,0,0]");
    }
    Trace::Checkpoint("exception", 1, nullptr, Trace::Checkpoint::Type::EXCEPTION);
    said_checkpoint("checkpoint:EXCEPTION", 1, nullptr, "exception");
    Trace::Checkpoint("failure", 2, nullptr, Trace::Checkpoint::Type::FAILURE);
    said_checkpoint("checkpoint:FAILURE", 2, nullptr, "failure");
    Trace::Checkpoint("of its own", 3, nullptr, (Trace::Checkpoint::Type)0x42);
    said("checkpoint:OTHER", "\"data\":3,\"addr\":0,\"type\":66,\"name\":\"of its own\"");
    trace("text ", 7, " of ", 8u, ", ", true, ' ', "end");
    said("output:trace", "\"text\":\"text 7 of 8, 1 end\"");
}

static void both()
{
    asked = answered = 0;
    std::thread first(client), second(server);
    first.join();
    second.join();
}

/* A policy is loaded and unloaded while threads execute it. */
static void load_and_unload(char const *path)
{
    std::atomic<bool> stop{false};
    auto const calls = [&stop] {
        while (!stop.load(std::memory_order_relaxed)) {
            for (unsigned i = 0; i < 20; i++)
                Trace::Rpc_dispatch("meanwhile");
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    };
    std::thread first(calls), second(calls);
    for (unsigned i = 0; i < 200; i++) {
        check(Trace::load_policy(path) == nullptr, "a policy is loaded again");
        std::this_thread::yield();
        Trace::unload_policy();
    }
    stop = true;
    first.join();
    second.join();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    both();
    check(Trace::load_policy("/nowhere/policy.so") != nullptr, "a policy that is not there");
    check(Trace::load_policy(argv[2]) != nullptr, "a library that is no policy");
    check(Trace::load_policy(argv[1]) == nullptr, "a policy is loaded");
    has_policy = true;
    both();
    Trace::unload_policy();
    has_policy = false;
    both();
    std::fflush(stdout);
    load_and_unload(argv[1]);
    return wrongs != 0;
}
