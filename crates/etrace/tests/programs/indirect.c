// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls by tables, jumps by tables, tail calls, and a jump out of nested calls.

typedef int function(int);

static void *out[5];

__attribute__((noinline)) static int add(int n) { return n + 3; }
__attribute__((noinline)) static int twice(int n) { return n * 2; }
__attribute__((noinline)) static int less(int n) { return n - 1; }
static function *const table[] = {add, twice, less, twice, add};

__attribute__((noinline)) static int apply(function *f, int n) { return f(n) + 1; }
__attribute__((noinline)) static int tail(int n) { return table[n % 5](n); }

__attribute__((noinline)) static int choose(int n)
{
    switch (n % 8) {
    case 0: return add(n);
    case 1: return n ^ 5;
    case 2: return twice(n) + 1;
    case 3: return n >> 1;
    case 4: return less(n) + less(n);
    case 5: return n * 7;
    case 6: return -n;
    default: return 1;
    }
}

__attribute__((noinline)) static int leave(int n)
{
    if (n == 0)
        __builtin_longjmp(out, 1);
    return leave(n - 1) + n;
}

__attribute__((noinline)) static int nested(int n)
{
    if (__builtin_setjmp(out))
        return n;
    return leave(n);
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += apply(table[(unsigned)sum % 5], i);
        sum += tail(i) + choose(i);
        if (i % 50 == 0)
            sum += nested(i % 7 + 1);
    }
    return sum;
}
