// SPDX-License-Identifier: Apache-2.0 OR MIT
// Recursion that is deeper than any return stack.

__attribute__((noinline)) int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) int depth(int n)
{
    volatile int here = n;
    return n == 0 ? here : depth(n - 1) + here;
}

int main(void)
{
    return fib(12) + ackermann(2, 4) + depth(60);
}
