/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table at the start of a module: compile it with the policy into a shared object. */
#include <trace/policy.h>

extern "C" {
extern Genode::Trace::Policy_module policy_jump_table;
Genode::Trace::Policy_module policy_jump_table = {
    max_event_size, trace_eth_packet, checkpoint, log_output,    rpc_call,
    rpc_returned,   rpc_dispatch,     rpc_reply,  signal_submit, signal_received,
};
}
