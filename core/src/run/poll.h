// Polls the clock and the host now and then: both may stop a run.
#pragma once

#include <chrono>

#include "undertow/run.h"

namespace undertow {

class Poll {
 public:
  using Clock = std::chrono::steady_clock;

  /// How far a run, or a part of one, has come; the time is added.
  using Progress = RunProgress (*)(const void* run);

  /// The timeout counts from here, or from when another part of the run began.
  Poll(Host& host, double timeout, Clock::time_point began = Clock::now())
      : host_(host), timeout_(timeout), began_(began), last_(began), told_(began + kFirst - kBetween) {}

  /// Tell the host how far the run has come, once it is a long one.
  void tell(Progress progress, const void* run) {
    progress_ = progress;
    run_ = run;
  }

  Clock::time_point began() const { return began_; }

  /// Throws Stop after the timeout, and what the host throws.
  void look() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - began_).count();
    if (seconds >= timeout_) throw Stop{Stop::Kind::Timeout};
    if (now - last_ <= std::chrono::milliseconds(20)) return;
    last_ = now;
    host_.poll();
    if (progress_ == nullptr || now - told_ < kBetween) return;
    told_ = now;
    RunProgress found = progress_(run_);
    found.seconds = seconds;
    host_.progress(found);
  }

  /// The same, but only at every n-th call.
  void tick() {
    if ((++ticks_ & 63) == 0) look();
  }

 private:
  static constexpr std::chrono::milliseconds kFirst{2000}, kBetween{200};

  Host& host_;
  const double timeout_;
  const Clock::time_point began_;
  Clock::time_point last_;
  Clock::time_point told_;
  Progress progress_ = nullptr;
  const void* run_ = nullptr;
  uint64_t ticks_ = 0;
};

}  // namespace undertow
