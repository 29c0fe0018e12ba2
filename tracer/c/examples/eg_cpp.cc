// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The headers used from C++17. */
#include "eg.h"

#include <lat/log.h>

#include <cstdio>
#include <string>
#include <vector>

template <class Value> static void report(const char *what, const std::vector<Value> &values)
{
    LAT_LOG("%s: %zu values", what, values.size());
    for (const Value &value : values)
        lat_eg_found(std::to_string(value).c_str(), 1);
}

int main()
{
    {
        LAT_SPAN_EG_WORK(1);
        report("integers", std::vector<int>{1, 2, 3});
        report("doubles", std::vector<double>{0.5});
    }
    std::puts("done");
    return 0;
}
