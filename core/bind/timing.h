// The best time of many runs, for benchmarks: the cost of a call without Python and without copies.
#pragma once

#include <algorithm>
#include <chrono>

namespace undertow {

/// Seconds a run takes in the fastest of a few batches, which take `seconds` in all.
template <class F>
double best_time(double seconds, F&& run) {
  using Clock = std::chrono::steady_clock;
  const auto time = [&run](int64_t count) {
    const auto start = Clock::now();
    for (int64_t k = 0; k < count; ++k) run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  time(1);
  const double once = std::max(time(1), 1e-9);
  const auto count = std::max<int64_t>(1, static_cast<int64_t>(std::min(seconds / 20, 1e-3) / once));
  double best = 1e300;
  for (double spent = 0; spent < seconds;) {
    const double batch = time(count);
    spent += batch;
    best = std::min(best, batch / static_cast<double>(count));
  }
  return best;
}

}  // namespace undertow
