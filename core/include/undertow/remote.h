// Tasks that run elsewhere: a run's way to workers, and what a worker does with a task. See docs/design/0027.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace undertow {

class Plan;

/// One run's way to workers, as `engines/outside.py` has it. What its methods throw ends the run.
class Link {
 public:
  struct Reply {
    int64_t task;
    int32_t phase;
    std::string bytes;
  };

  virtual ~Link() = default;
  virtual int64_t idle() = 0;
  virtual int64_t publish(std::span<const std::byte> data) = 0;
  virtual void submit(int64_t task, int32_t phase, const std::string& message, const std::vector<int64_t>& shared) = 0;
  virtual std::vector<Reply> take(double seconds) = 0;
  virtual void drop(int64_t task) = 0;

  bool is_eager = false;  ///< is everything worth sending, at once?
};

/// A message is not what it should be.
struct BadMessage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A task of another process, from its first phase to its last.
class Guest {
 public:
  explicit Guest(const Plan& plan);
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  ~Guest();

  /// Run the phase that the message asks for; `shared` are the values that it refers to, and must stay until the task
  /// has ended. A link, if there is one, takes what this task gives away. Throws BadMessage, and Interrupted once it is
  /// stopped; a Stop is a reply like any other.
  std::string run(std::span<const std::byte> message, std::vector<std::span<const std::byte>> shared, Link* link);
  /// End it as soon as possible; from any thread.
  void stop() { is_stopped_ = true; }

  int64_t activations = 0, waves = 0;  ///< of the last phase

 private:
  struct State;

  const Plan& plan_;
  std::atomic<bool> is_stopped_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace undertow
