// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Threads, locks, memory and exceptions of C++. Prints the number of locks acquired. */
#include <condition_variable>
#include <cstdio>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

int main()
{
    std::mutex mutex;
    std::shared_mutex shared;
    std::condition_variable condition;
    bool ready = false;
    long sum = 0, taken = 0, waits = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; i++) {
                auto number = std::make_unique<int>(i);
                try {
                    std::lock_guard<std::mutex> guard(mutex);
                    sum += *number;
                    taken++;
                    if (i % 100 == 0)
                        throw std::runtime_error("expected");
                } catch (const std::runtime_error &) {
                    std::shared_lock<std::shared_mutex> guard(shared);
                }
            }
            std::unique_lock<std::mutex> guard(mutex);
            taken++;
            while (!ready) {
                condition.wait(guard);
                waits++;
            }
        });
    {
        std::lock_guard<std::mutex> guard(mutex);
        ready = true;
        taken++;
    }
    condition.notify_all();
    for (auto &thread : threads)
        thread.join();
    std::future<int> answer = std::async(std::launch::async, [] { return 42; });
    const bool right = answer.get() == 42 && sum == 4L * 999 * 1000 / 2;
    std::printf("taken at least %ld\n", taken);
    return right && waits >= 0 ? 0 : 1;
}
