/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions that a native policy defines; policy/table.cc makes a module of them. */
#ifndef GENODE_TRACE_POLICY_H
#define GENODE_TRACE_POLICY_H

#include <base/trace/policy.h>

extern "C" {
Genode::size_t max_event_size();
Genode::size_t trace_eth_packet(char *dst, char const *if_name, bool out, char *packet,
                                Genode::size_t bytes);
Genode::size_t checkpoint(char *dst, char const *name, unsigned long data, void *addr,
                          unsigned char type);
Genode::size_t log_output(char *dst, char const *text, Genode::size_t bytes);
Genode::size_t rpc_call(char *dst, char const *rpc_name, Genode::Msgbuf_base const &message);
Genode::size_t rpc_returned(char *dst, char const *rpc_name, Genode::Msgbuf_base const &message);
Genode::size_t rpc_dispatch(char *dst, char const *rpc_name);
Genode::size_t rpc_reply(char *dst, char const *rpc_name);
Genode::size_t signal_submit(char *dst, unsigned const number);
Genode::size_t signal_received(char *dst, Genode::Signal_context const &context, unsigned const number);
}

#endif
