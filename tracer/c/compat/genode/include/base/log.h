/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Genode's text output, as far as tracing needs it: log, warning, error and raw write a line to standard
 * error, trace records it. Also probes of the processor's counter, which report every n-th call by log or
 * by trace.
 */
#ifndef GENODE_BASE_LOG_H
#define GENODE_BASE_LOG_H

#include <base/trace/events.h>
#include <trace/timestamp.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <type_traits>

namespace Genode {

namespace Log_text {

inline void print(std::string &out, char const *text) { out += text != nullptr ? text : "<null>"; }
inline void print(std::string &out, std::string const &text) { out += text; }
inline void print(std::string &out, bool value) { out += value ? '1' : '0'; }
inline void print(std::string &out, char value) { out += value; }
inline void print(std::string &out, void const *address)
{
    char text[24];
    std::snprintf(text, sizeof text, "%p", address);
    out += text;
}
template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
inline void print(std::string &out, T value)
{
    out += std::to_string(value);
}
template <typename... ARGS>
std::string made_of(ARGS &&...args)
{
    std::string out;
    (print(out, args), ...);
    return out;
}

inline void line(char const *prefix, std::string const &text)
{
    std::fprintf(stderr, "%s%s\n", prefix, text.c_str());
}

}

template <typename... ARGS>
void log(ARGS &&...args)
{
    Log_text::line("", Log_text::made_of(args...));
}
template <typename... ARGS>
void warning(ARGS &&...args)
{
    Log_text::line("Warning: ", Log_text::made_of(args...));
}
template <typename... ARGS>
void error(ARGS &&...args)
{
    Log_text::line("Error: ", Log_text::made_of(args...));
}
template <typename... ARGS>
void raw(ARGS &&...args)
{
    Log_text::line("", Log_text::made_of(args...));
}
/** Records an event `output:trace`. The original prefixes the time, which the record has anyway. The text is
    formatted only if it is recorded or a policy is loaded. */
template <typename... ARGS>
void trace(ARGS &&...args)
{
    if (!lat_output_trace_enabled() && !__atomic_load_n(&Trace::_has_policy, __ATOMIC_RELAXED))
        return;
    std::string const text = Log_text::made_of(args...);
    Trace::Log_output(text.c_str(), text.size());
}

/** Total ticks of the calls at one site, without those of its own recursion. */
class Tsc_stats {
  public:
    Tsc_stats(char const *name, unsigned sample_rate) : _name(name), _sample_rate(sample_rate) {}

    void enter()
    {
        std::lock_guard<std::mutex> guard(_mutex);
        _depth++;
    }
    /* @return the line to write; empty for most calls. */
    std::string leave(Trace::Timestamp ticks)
    {
        std::lock_guard<std::mutex> guard(_mutex);
        _calls++;
        if (--_depth == 0)
            _sum += ticks;
        if (++_since < _sample_rate)
            return {};
        _since = 0;
        return Log_text::made_of(" TSC ", _name, ": ", _sum, " (", _calls, " calls, last ", ticks, ")");
    }

  private:
    char const *_name;
    unsigned const _sample_rate;
    Trace::Timestamp _sum = 0;
    unsigned long _calls = 0;
    unsigned _since = 0;
    unsigned _depth = 0;
    std::mutex _mutex{};
};

template <bool TRACES>
class Tsc_probe {
  public:
    explicit Tsc_probe(Tsc_stats &stats) : _stats(stats)
    {
        _stats.enter();
        _start = Trace::timestamp();
    }
    ~Tsc_probe()
    {
        std::string const text = _stats.leave(Trace::timestamp() - _start);
        if (text.empty())
            return;
        if constexpr (TRACES)
            trace(text);
        else
            log(text);
    }
    Tsc_probe(Tsc_probe const &) = delete;
    Tsc_probe &operator=(Tsc_probe const &) = delete;

  private:
    Tsc_stats &_stats;
    Trace::Timestamp _start;
};

}

#define GENODE_I_TSC_(traces, n, name, line)                                                     \
    static Genode::Tsc_stats genode_tsc_stats_##line((name), (n));                               \
    Genode::Tsc_probe<traces> genode_tsc_probe_##line(genode_tsc_stats_##line);
#define GENODE_I_TSC(traces, n, name, line) GENODE_I_TSC_(traces, n, name, line)
/** After every n-th call, logs how many ticks the calls of this scope took. */
#define GENODE_LOG_TSC(n) GENODE_I_TSC(false, n, __PRETTY_FUNCTION__, __LINE__)
#define GENODE_LOG_TSC_NAMED(n, name) GENODE_I_TSC(false, n, name, __LINE__)
/** Like GENODE_LOG_TSC, by Genode::trace. */
#define GENODE_TRACE_TSC(n) GENODE_I_TSC(true, n, __PRETTY_FUNCTION__, __LINE__)
#define GENODE_TRACE_TSC_NAMED(n, name) GENODE_I_TSC(true, n, name, __LINE__)

#endif
