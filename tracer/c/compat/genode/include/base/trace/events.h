/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Genode's trace points over the rings of Lateralis: constructing one records it.
 *
 *     Genode::Trace::Checkpoint("queue", slots_free, &queue);
 * Genode::Trace::Ethernet_packet("uplink", Genode::Trace::Ethernet_packet::Direction::SENT, frame,
 * bytes);
 *
 * Each is an event of genode.pleco for `lat record`. A native policy (base/trace/policy.h), while loaded,
 * makes a record of its own in addition. Compile genode.cc with the program, and
 * link the tracer.
 *
 * Context: any thread; any signal handler while no policy is loaded.
 */
#ifndef GENODE_BASE_TRACE_EVENTS_H
#define GENODE_BASE_TRACE_EVENTS_H

#include <base/stdint.h>
#include <base/trace/policy.h>

#include <genode_events.h>

namespace Genode::Trace {

/* ---- native policies ------------------------------------------------------------------------- */

/* Whether a policy may be loaded: a hint, read without ordering; _with_policy checks. */
extern bool _has_policy;
uint32_t _thread_id();

using Point = lat_enum_genode_trace_point;
/* Runs `generate(policy, destination)` and records what it wrote. */
void _with_policy(Point point, size_t (*generate)(void const *event, Policy_module &policy, char *dst),
                  void const *event);

template <typename EVENT>
inline void _apply_policy(Point point, EVENT const *event)
{
    if (__builtin_expect(__atomic_load_n(&_has_policy, __ATOMIC_RELAXED), false)) {
        auto const generate = [](void const *traced, Policy_module &policy, char *dst) {
            return static_cast<EVENT const *>(traced)->generate(policy, dst);
        };
        _with_policy(point, generate, event);
    }
}

/* ---- trace points ----------------------------------------------------------------------------- */

struct Rpc_call {
    char const *rpc_name;
    Msgbuf_base const &msg;

    Rpc_call(char const *name, Msgbuf_base const &message) : rpc_name(name), msg(message)
    {
        lat_rpc_call(name, LAT_ENUM_GENODE_COMPONENT_STATE_AWAIT_REPLY);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_RPC_CALL, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.rpc_call(dst, rpc_name, msg);
    }
};

struct Rpc_returned {
    char const *rpc_name;
    Msgbuf_base const &msg;

    Rpc_returned(char const *name, Msgbuf_base const &message) : rpc_name(name), msg(message)
    {
        lat_rpc_returned(name, LAT_ENUM_GENODE_COMPONENT_STATE_READY);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_RPC_RETURNED, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.rpc_returned(dst, rpc_name, msg);
    }
};

struct Rpc_dispatch {
    char const *rpc_name;

    explicit Rpc_dispatch(char const *name) : rpc_name(name)
    {
        lat_rpc_dispatch(name, LAT_ENUM_GENODE_COMPONENT_STATE_READY);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_RPC_DISPATCH, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.rpc_dispatch(dst, rpc_name);
    }
};

struct Rpc_reply {
    char const *rpc_name;

    explicit Rpc_reply(char const *name) : rpc_name(name)
    {
        lat_rpc_reply(name, LAT_ENUM_GENODE_COMPONENT_STATE_AWAIT_RPC);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_RPC_REPLY, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.rpc_reply(dst, rpc_name);
    }
};

struct Signal_submit {
    unsigned const num;

    explicit Signal_submit(unsigned number) : num(number)
    {
        lat_signal_submit(number);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_SIGNAL_SUBMIT, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.signal_submit(dst, num);
    }
};

struct Signal_received {
    Signal_context const &signal_context;
    unsigned const num;

    Signal_received(Signal_context const &context, unsigned number) : signal_context(context), num(number)
    {
        lat_signal_receive(number, reinterpret_cast<uintptr_t>(&context),
                           LAT_ENUM_GENODE_COMPONENT_STATE_READY);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_SIGNAL_RECEIVED, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.signal_received(dst, signal_context, num);
    }
};

struct Checkpoint {
    enum Type : unsigned char {
        UNDEF = 0x0, /* `data` is a counter sample: free slots, length of a queue */
        START = 0x1, /* a duration, by name */
        END = 0x2,
        OBJ_NEW = 0x10, /* the life of an object, by address */
        OBJ_DEL = 0x11,
        OBJ_STATE = 0x12,
        EXCEPTION = 0xfe,
        FAILURE = 0xff
    };

    char const *name;
    unsigned long const data;
    Type const type;
    void *addr;

    Checkpoint(char const *name_, unsigned long data_, void *addr_, Type type_ = Type::UNDEF)
        : name(name_), data(data_), type(type_), addr(addr_)
    {
        _record(reinterpret_cast<uintptr_t>(addr_));
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_CHECKPOINT, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.checkpoint(dst, name, data, addr, type);
    }

  private:
    void _record(uint64_t address) const
    {
        switch (type) {
        case UNDEF: lat_checkpoint_level(data, address, name); break;
        case START:
            if (lat_checkpoint_start_enabled())
                lat_checkpoint_start(data, address, _thread_id(), name);
            break;
        case END:
            if (lat_checkpoint_end_enabled())
                lat_checkpoint_end(data, address, _thread_id(), name);
            break;
        case OBJ_NEW: lat_checkpoint_obj_new(data, address, name); break;
        case OBJ_DEL: lat_checkpoint_obj_del(data, address, name); break;
        case OBJ_STATE: lat_checkpoint_obj_state(data, address, name); break;
        case EXCEPTION: lat_checkpoint_exception(data, address, name); break;
        case FAILURE: lat_checkpoint_failure(data, address, name); break;
        default: lat_checkpoint_other(data, address, type, name); break;
        }
    }
};

struct Ethernet_packet {
    enum Direction : bool { RECV = false, SENT = true };

    /** Bytes kept of each packet, 0 for all. Default 100, as in Genode's policy. */
    static uint32_t captured_bytes;

    char const *name;
    Direction const direction;
    char *data;
    size_t length;

    Ethernet_packet(char const *interface, Direction way, void *packet, size_t bytes)
        : name(interface), direction(way), data(static_cast<char *>(packet)), length(bytes)
    {
        _record();
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_ETH_PACKET, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.trace_eth_packet(dst, name, direction == SENT, data, length);
    }

  private:
    void _record() const;
};

/* The output of Genode::trace and Genode::log. */
struct Log_output {
    char const *text;
    size_t length;

    Log_output(char const *string, size_t bytes) : text(string), length(bytes)
    {
        lat_output_trace(string);
        _apply_policy(LAT_ENUM_GENODE_TRACE_POINT_LOG_OUTPUT, this);
    }
    size_t generate(Policy_module &policy, char *dst) const
    {
        return policy.log_output(dst, text, length);
    }
};

}

#endif
