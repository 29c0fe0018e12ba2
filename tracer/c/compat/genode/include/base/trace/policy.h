/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The interface between trace points and a native policy: ten functions, in the order of Genode's modules. */
#ifndef GENODE_BASE_TRACE_POLICY_H
#define GENODE_BASE_TRACE_POLICY_H

#include <base/stdint.h>

namespace Genode {

/** The message of a call, which policies can inspect. */
class Msgbuf_base {
  public:
    Msgbuf_base(void *data, size_t capacity, size_t data_size)
        : _data(data), _capacity(capacity), _data_size(data_size)
    {
    }
    void *data() const { return _data; }
    size_t capacity() const { return _capacity; }
    size_t data_size() const { return _data_size; }

  private:
    void *_data;
    size_t _capacity;
    size_t _data_size;
};

/** The context of a signal; trace points record its address. */
class Signal_context {};
class Rpc_object_base;

namespace Trace {

/** Each function writes at most max_event_size() bytes to its first argument and returns how many; 0 means no
 * record. They run in the traced thread, possibly several at once, and must not block, use trace points, or
 * raise exceptions. */
class Policy_module {
  public:
    size_t (*max_event_size)();
    size_t (*trace_eth_packet)(char *, char const *, bool, char *, size_t);
    size_t (*checkpoint)(char *, char const *, unsigned long, void *, unsigned char);
    size_t (*log_output)(char *, char const *, size_t);
    size_t (*rpc_call)(char *, char const *, Msgbuf_base const &);
    size_t (*rpc_returned)(char *, char const *, Msgbuf_base const &);
    size_t (*rpc_dispatch)(char *, char const *);
    size_t (*rpc_reply)(char *, char const *);
    size_t (*signal_submit)(char *, unsigned const);
    size_t (*signal_received)(char *, Signal_context const &, unsigned const);
};

/**
 * Loads a module (a shared object with `policy_jump_table`, see policy/table.cc) in place of the current
 * one. It is trusted: its code runs in this program. Each trace point is still recorded by its own
 * event as well. Context: any thread, no signal handler, no policy.
 * @return nullptr, or the reason why it was not loaded, valid until the next call.
 */
char const *load_policy(char const *path);
/** Unloads the module, once no thread executes it any more. */
void unload_policy();

}
}

#endif
