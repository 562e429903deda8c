// One run: its threads, and how it ends.
#include <deque>
#include <system_error>

#include "executor.h"
#include "threads/crew.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

/// Run with the owner's thread and some others.
template <bool kIsShared>
std::vector<Value> run_with(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                            RunStats& stats) {
  Common<kIsShared> common(plan, options, host);
  common.results.assign(plan.fetches.size(), 0);
  common.missing = common.results.size();
  Executor<kIsShared> owner(common, true);
  std::deque<Executor<kIsShared>> others;
  common.queue.enter();
  owner.begin(inputs);
  if (common.missing > 0) {
    if constexpr (kIsShared) {
      std::deque<Helper> helpers;  // joined at the end of this block, before anything that they use is gone
      try {
        while (static_cast<int64_t>(others.size()) + 1 < options.threads) {
          Executor<true>& executor = others.emplace_back(common, false);
          helpers.emplace_back([&common, &executor] {
            common.queue.enter();
            executor.run();
          });
        }
      } catch (const std::system_error&) {  // the system has no more threads
      } catch (...) {
        common.queue.end();
        throw;
      }
      owner.run();
    } else {
      owner.run();
    }
  }
  stats.peak_bytes = common.heap.peak();
  stats.peak_frames = common.peak_frames;
  stats.max_depth = common.max_depth;
  stats.fired.assign(z(plan.nodes), 0);
  owner.count(stats);
  for (const Executor<kIsShared>& other : others) other.count(stats);
  owner.climb_out();
  stats.deepest = std::move(common.deepest_tag);
  if (common.stopped) std::rethrow_exception(common.stopped);
  if (common.failure.is_there()) {
    stats.stopped = common.failure.tag();
    std::rethrow_exception(common.failure.error());
  }
  if (common.missing > 0) throw Stop{Stop::Kind::Internal};
  std::vector<Value> values;
  for (size_t k = 0; k < common.results.size(); ++k) {
    const Plan::Fetch& fetch = plan.fetches[k];
    const int rank = fetch.type.rank();
    const View view = is_array(fetch.type) ? view_of(array_in(common.results[k]), rank, fetch.type.dtype)
                                           : View{&common.results[k], 0, nullptr, 0, fetch.type.dtype};
    values.push_back(fetch.is_order ? Value{} : value_of(view));
  }
  return values;
}

}  // namespace

std::vector<Value> run(const Plan& plan, std::span<const View> inputs, const RunOptions& given, Host& host,
                       RunStats& stats) {
  RunOptions options = given;
  if (options.scheduler == Scheduler::Default) options.scheduler = Scheduler::Lifo;
  if (options.threads == 1 && options.scheduler == Scheduler::Lifo)
    return run_with<false>(plan, inputs, options, host, stats);
  return run_with<true>(plan, inputs, options, host, stats);
}

}  // namespace undertow::expand
