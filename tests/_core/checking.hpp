// What the core's tests are written with: checks that name the place and the case, numbers drawn alike everywhere,
// callers who lose patience, and the runner.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"
#include "types.hpp"

namespace prodige {

// -- checking

inline int n_failed_checks = 0;
inline int n_shown_checks = 0;  // of the running test: one bug fails a thousand checks
inline std::string context;     // the graph at hand, for the message

inline bool check(bool passed, const char* file, int line, const char* expression) {
    if (passed) return true;
    ++n_failed_checks;
    if (++n_shown_checks <= 5) std::printf("%s:%d: %s   [%s]\n", file, line, expression, context.c_str());
    return false;
}

#define CHECK(...) check(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)

#define CHECK_THROWS(Exception, ...)                                                       \
    do {                                                                                   \
        bool thrown = false;                                                               \
        try {                                                                              \
            __VA_ARGS__;                                                                   \
        } catch (const Exception&) {                                                       \
            thrown = true;                                                                 \
        }                                                                                  \
        check(thrown, __FILE__, __LINE__, #__VA_ARGS__ " should have thrown " #Exception); \
    } while (false)

template <class T>
bool close(T a, T b) {
    return a == b || std::abs(a - b) <= 512 * std::numeric_limits<T>::epsilon() * std::max(std::abs(a), std::abs(b));
}

template <class T>
bool agree(T a, T b, bool exact) {
    return exact ? a == b : close(a, b);
}

template <class T>
bool all_agree(const std::vector<T>& a, const std::vector<T>& b, bool exact) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [=](T x, T y) { return agree(x, y, exact); });
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The distributions of the standard library differ between implementations; these do not.
class Random {
   public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
    std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
    Vertex vertex(Vertex n) { return static_cast<Vertex>(below(static_cast<std::uint64_t>(n))); }
    bool chance(double probability) { return unit() < probability; }

    std::vector<Vertex> vertices(std::size_t count, Vertex n) {
        std::vector<Vertex> chosen(count);
        for (Vertex& v : chosen) v = vertex(n);
        return chosen;
    }

   private:
    std::mt19937_64 engine_;
};

// -- cancellation

// Somebody who wants every call to stop, and remembers being asked.
struct Impatience {
    std::thread::id caller = std::this_thread::get_id();
    int n_questions = 0;
    bool asked_elsewhere = false;
    Watch watch{[this] {
        ++n_questions;
        asked_elsewhere |= std::this_thread::get_id() != caller;
        return true;
    }};
};

using Call = std::function<void(Watch&)>;

// Whether the call was cancelled. On a busy machine helpers may do all the work while the caller, who alone asks,
// waits for a processor: then it is tried again.
inline bool is_cancelled(const Call& call, Impatience& impatience) {
    try {
        call(impatience.watch);
        return false;
    } catch (const Cancelled&) {
        CHECK(impatience.n_questions == 1 && !impatience.asked_elsewhere);
        CHECK_THROWS(Cancelled, impatience.watch.check());  // once stopped, stopped
        return true;
    }
}

// Watches do not ask in their first 50 ms; those of all calls wait together.
inline void check_cancelled(std::vector<Call> calls) {
    for (int attempt = 0; attempt < 200 && !calls.empty(); ++attempt) {
        std::vector<std::unique_ptr<Impatience>> impatiences;
        for (std::size_t c = 0; c < calls.size(); ++c) impatiences.push_back(std::make_unique<Impatience>());
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        std::vector<Call> finished;
        for (std::size_t c = 0; c < calls.size(); ++c)
            if (!is_cancelled(calls[c], *impatiences[c])) finished.push_back(calls[c]);
        calls = finished;
    }
    CHECK(calls.empty());
}

// -- running

inline const char* running = "";

// A search that never ends should fail by name, not by the patience of whoever waits for it.
extern "C" inline void give_up(int) {
    for (const char* text : {running, ": still running, giving up\n"})
        if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
    _exit(1);
}

class Runner {
   public:
    void run(const std::string& name, void (*test)()) {
        const int failed_before = n_failed_checks;
        const auto start = std::chrono::steady_clock::now();
        running = name.c_str();
        context.clear();
        n_shown_checks = 0;
        try {
            test();
        } catch (const std::exception& error) {
            check(false, __FILE__, __LINE__, (name + " threw: " + error.what()).c_str());
        }
        const bool passed = n_failed_checks == failed_before;
        ++(passed ? n_passed_ : n_failed_);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        std::printf("%s %s (%.0f ms)\n", passed ? "ok  " : "FAIL", name.c_str(), took.count());
        std::fflush(stdout);
    }

    void run_both(const std::string& name, void (*with_float)(), void (*with_double)()) {
        run(name + " <float>", with_float);
        run(name + " <double>", with_double);
    }

    int finish() const {
        std::printf("%d passed, %d failed\n", n_passed_, n_failed_);
        return n_failed_ > 0;
    }

   private:
    int n_passed_ = 0;
    int n_failed_ = 0;
};

#define RUN(test) runner.run(#test, test)
#define RUN_BOTH(test) runner.run_both(#test, test<float>, test<double>)

// -- the other files

void run_alternating_tests(Runner& runner);
void run_codes_tests(Runner& runner);
void run_placing_tests(Runner& runner);
void run_rows_tests(Runner& runner);
void run_flows_tests(Runner& runner);
void run_product_tests(Runner& runner);
void run_text_tests(Runner& runner);
void run_ngram_tests(Runner& runner);
void run_word_tests(Runner& runner);

}  // namespace prodige
