// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Format-string events in C++: also in templates, inline functions, lambdas and members. */
#include "../support/log_cases.h"
#include "../support/log_test.h"

namespace {

template <class Value> void in_template(Value value)
{
    BOTH("from a template: %d", static_cast<int>(value));
    LAT_LOG("of %zu bytes", sizeof value); printf("of %zu bytes\n", sizeof value);
}

enum class Kind : short { good = 5 };

struct Object {
    int field = 6;
    void member() const
    {
        BOTH("from a member: %d", field);
        LAT_LOG("%hd", static_cast<short>(Kind::good)); printf("5\n");
    }
};

} // namespace

inline void in_inline_function(const char *text)
{
    BOTH("from an inline function: %s", text);
}

static int cases()
{
    log_cases();
    in_template(1);
    in_template(2L);
    in_template('c');
    Object().member();
    in_inline_function("yes");
    in_inline_function("again");
    [](double value) { BOTH("from a lambda: %f", value); }(0.25);
    LAT_LOG("%p", static_cast<void *>(nullptr)); printf("(nil)\n");
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return strcmp(arguments[1], "odd") == 0 ? (log_odd_cases(), 0) : cases();
    compare_with_printf("C++: formats as printf prints them", "cases", "log_log_cpp", "log_cpp_");
    compare_with_printf("C++: formats that do not suit", "odd", "log_log_cpp", nullptr);
    return check_status();
}
