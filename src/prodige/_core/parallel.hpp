// Threads over independent jobs, joined before the call returns, and the wish to stop early.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace prodige {

struct Cancelled : std::exception {
    const char* what() const noexcept override { return "cancelled"; }
};

// Long loops call check() now and then; it throws Cancelled once somebody wants the call to end. Only the thread that
// made the call asks the outside world (Python handles signals on that thread alone), at most every 50 ms.
class Watch {
   public:
    Watch() = default;
    explicit Watch(std::function<bool()> wants_to_stop) : wants_to_stop_(std::move(wants_to_stop)) {}

    void check() {
        if (stopped_.load(std::memory_order_relaxed)) throw Cancelled();
        if (!wants_to_stop_ || std::this_thread::get_id() != caller_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        if (wants_to_stop_()) {
            stop();
            throw Cancelled();
        }
    }

    void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

   private:
    std::function<bool()> wants_to_stop_;
    std::atomic<bool> stopped_{false};
    std::thread::id caller_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

// Runs job(worker, index) for every index below count; a worker takes the next index when it is free, so uneven jobs
// balance. The calling thread is worker 0. The first exception ends the others and is thrown here.
template <class Job>
void parallel_for(std::size_t count, int n_jobs, Watch& watch, Job&& job) {
    const std::size_t n_workers = std::min<std::size_t>(std::max(n_jobs, 1), count);
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;

    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
                watch.check();
                job(worker, index);
            }
        } catch (...) {
            const std::scoped_lock lock(failure_lock);
            if (!failure) failure = std::current_exception();
            watch.stop();
        }
    };

    std::vector<std::jthread> helpers;  // joined by their destructors, also when starting one of them fails
    if (n_workers > 1) {
        helpers.reserve(n_workers - 1);
        for (std::size_t worker = 1; worker < n_workers; ++worker) helpers.emplace_back(work, worker);
    }
    work(0);
    helpers.clear();
    if (failure) std::rethrow_exception(failure);
}

// Splits [0, length) into about equal ranges, one job each. The ranges only ever decide who writes what, never a sum.
template <class Job>
void parallel_ranges(std::size_t length, int n_jobs, Watch& watch, Job&& job) {
    const std::size_t n_ranges = std::min<std::size_t>(std::max(n_jobs, 1), length);
    parallel_for(n_ranges, n_jobs, watch, [&](std::size_t, std::size_t range) {
        job(length * range / n_ranges, length * (range + 1) / n_ranges);
    });
}

}  // namespace prodige
