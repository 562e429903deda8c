// Polls the clock and the host now and then: both may stop a run.
#pragma once

#include <chrono>

#include "undertow/run.h"

namespace undertow {

class Poll {
 public:
  using Clock = std::chrono::steady_clock;

  /// The timeout counts from here, or from when another part of the run began.
  Poll(Host& host, double timeout, Clock::time_point began = Clock::now())
      : host_(host), timeout_(timeout), began_(began), last_(began) {}

  Clock::time_point began() const { return began_; }

  /// Throws Stop after the timeout, and what the host throws.
  void look() {
    const auto now = Clock::now();
    if (std::chrono::duration<double>(now - began_).count() >= timeout_) throw Stop{Stop::Kind::Timeout};
    if (now - last_ <= std::chrono::milliseconds(20)) return;
    last_ = now;
    host_.poll();
  }

  /// The same, but only at every n-th call.
  void tick() {
    if ((++ticks_ & 63) == 0) look();
  }

 private:
  Host& host_;
  const double timeout_;
  const Clock::time_point began_;
  Clock::time_point last_;
  uint64_t ticks_ = 0;
};

}  // namespace undertow
