// The time that a run spends on each kind of step. If it is measured, each change of kind reads the clock.
#pragma once

#include <chrono>
#include <iterator>

#include "undertow/run.h"

namespace undertow {

class StepClock {
 public:
  void start(bool is_on) {
    is_on_ = is_on;
    step_ = Step::Rest;
    if (is_on) last_ = std::chrono::steady_clock::now();
  }

  /// Time counts for this kind of step from now on.
  void to(Step step) {
    if (is_on_ && step != step_) change(step);
  }

  void to(Item::Kind kind) {
    constexpr Step steps[] = {Step::Operator, Step::Branch,   Step::Call,     Step::Loop,
                              Step::Map,      Step::Entry,    Step::Entry,    Step::Entry,
                              Step::Operator, Step::Crossing, Step::Crossing, Step::Entry};
    static_assert(std::size(steps) == count_of(Item::Kind{}));
    to(steps[static_cast<int>(kind)]);
  }

  void stop(RunStats& stats) {
    if (!is_on_) return;
    change(Step::Rest);
    is_on_ = false;
    for (size_t k = 0; k < seconds_.size(); ++k) stats.seconds[k] += seconds_[k];
    seconds_ = {};
  }

 private:
  void change(Step step) {
    const auto now = std::chrono::steady_clock::now();
    seconds_[static_cast<size_t>(step_)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
    step_ = step;
  }

  bool is_on_ = false;
  Step step_ = Step::Rest;
  std::chrono::steady_clock::time_point last_;
  StepSeconds seconds_{};
};

}  // namespace undertow
