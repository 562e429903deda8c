// The failure of a run that Python would meet first.
//
// Threads and schedulers may come upon another one first. So a run goes on with what comes before the failure in the
// program's order, as long as there is any, and drops what comes after it. From then on threads take what they have
// made ready last, and the queue gives what it has had for longest: so in what is left of a runaway recursion they go
// straight to the call that Python would come to, instead of trying all others that are deep.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "copy.h"
#include "undertow/run.h"

namespace undertow::expand {

class Failure {
 public:
  /// Any thread; true once something has failed.
  bool is_there() const { return is_there_.load(std::memory_order_relaxed); }
  /// Something has failed there, whose copy must never be freed: keep it if it is the first. `tag` as the host's.
  void note(const Place& place, std::exception_ptr error, std::vector<Label> tag);
  /// Does that come before the failure?
  bool is_before(const Place& place);
  /// A copy is freed.
  void forget(const Copy* copy);

  /// The failure; once no thread runs any more.
  const std::exception_ptr& error() const { return error_; }
  const std::vector<Label>& tag() const { return tag_; }

 private:
  struct Key {
    int32_t order;
    int64_t index;
  };
  bool finds_before(const Place& place);
  void find_above();

  std::atomic<bool> is_there_ = false;
  std::mutex mutex_;  // guards all that follows; no other lock is taken under it
  std::exception_ptr error_;
  std::vector<Label> tag_;
  Place place_;
  /// The copies that it is in or below, and where; found once somebody asks.
  std::unordered_map<const Copy*, Key> above_;
  std::unordered_set<const Copy*> befores_, afters_;  ///< other copies that were asked about
  bool is_known_ = false;                             ///< is `above_` complete?
  std::vector<const Copy*> way_;
};

}  // namespace undertow::expand
