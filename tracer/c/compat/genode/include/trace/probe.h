/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Macros for checkpoints: a counter, or the duration of a scope, named by the function or by an argument. */
#ifndef GENODE_TRACE_PROBE_H
#define GENODE_TRACE_PROBE_H

#include <base/trace/events.h>

namespace Genode::Trace {

class Duration {
  public:
    Duration(char const *name, unsigned long data) : _name(name), _data(data)
    {
        Checkpoint(_name, _data, nullptr, Checkpoint::Type::START);
    }
    ~Duration() { Checkpoint(_name, _data, nullptr, Checkpoint::Type::END); }
    Duration(Duration const &) = delete;
    Duration &operator=(Duration const &) = delete;

  private:
    char const *_name;
    unsigned long const _data;
};

}

#define GENODE_TRACE_CHECKPOINT(data)                                                            \
    Genode::Trace::Checkpoint(__PRETTY_FUNCTION__, (unsigned long)(data), nullptr);
#define GENODE_TRACE_CHECKPOINT_NAMED(data, name)                                                \
    Genode::Trace::Checkpoint((name), (unsigned long)(data), nullptr);

/* Unlike the original, several may be in one scope. */
#define GENODE_TRACE_I_PASTE_(a, b) a##b
#define GENODE_TRACE_I_PASTE(a, b) GENODE_TRACE_I_PASTE_(a, b)
#define GENODE_TRACE_DURATION(data)                                                              \
    Genode::Trace::Duration GENODE_TRACE_I_PASTE(genode_duration_, __LINE__)(                     \
        __PRETTY_FUNCTION__, (unsigned long)(data));
#define GENODE_TRACE_DURATION_NAMED(data, name)                                                  \
    Genode::Trace::Duration GENODE_TRACE_I_PASTE(genode_duration_, __LINE__)(                     \
        (name), (unsigned long)(data));

#endif
