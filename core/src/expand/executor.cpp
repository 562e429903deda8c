#include "executor.h"

#include <algorithm>

#include "run/guard.h"
#include "run/values.h"
#include "undertow/scalar.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

/// Thrown in a thread when the run is over: its step is not needed.
struct Over {};

/// Does that come from the program, so that another run would stop there too? Other limits depend on the schedule.
bool is_failure(Stop::Kind kind) {
  using Kind = Stop::Kind;
  return kind == Kind::Fault || kind == Kind::NotFinite || kind == Kind::UnequalLanes || kind == Kind::UnequalResults ||
         kind == Kind::UnequalVisits || kind == Kind::Depth;
}

}  // namespace

template <bool kIsShared>
Executor<kIsShared>::Executor(Common<kIsShared>& common, bool is_owner)
    : common_(common),
      plan_(common.plan),
      options_(common.options),
      edges_(common.plan.edges.data()),
      constants_(common.plan.constants.data()),
      is_owner_(is_owner),
      is_lifo_(common.queue.scheduler == Scheduler::Lifo),
      memory_(common.heap),
      arena_(common.heap, common.stash),
      scalars_(static_cast<std::byte*>(scalar_memory_.get(static_cast<int64_t>(common.plan.most_operands) * kScalar))),
      poll_(common.host, common.options.timeout) {
  if (is_owner && options_.shows_progress)
    poll_.tell(
        [](const void* self) {
          const Executor& own = *static_cast<const Executor*>(self);
          return RunProgress{0, own.activations_, 0, own.common_.max_depth, own.common_.heap.live()};
        },
        this);
  scratch_.watch([](void* self) { static_cast<Executor*>(self)->look(); }, this);
  inputs_.resize(plan_.most_operands);
  outputs_.resize(plan_.most_operands);
  shapes_.resize(plan_.most_operands);
  known_entries_.resize(plan_.templates.size());
  fired_.assign(z(plan_.nodes), 0);
  for (const Template& made_of : plan_.templates) arena_.reserve(std::max(made_of.copy_size, made_of.record_size));
  arena_.reserve(size_number(static_cast<int64_t>(std::max(sizeof(Sums), sizeof(Rows)))));
}

template <bool kIsShared>
void Executor<kIsShared>::begin(std::span<const View> inputs) {
  const auto work = [&] {
    look();
    common_.main = at_ = open(plan_.templates[0], nullptr, nullptr, -1, 1);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int32_t slot = plan_.inputs[k];
      if (slot == kNoSlot) continue;
      const View& view = inputs[k];
      common_.main->slots[slot] = make_cell(memory_, view.data, view.shape, view.rank, view.dtype);
    }
    begin(*common_.main);
  };
  guarded(work, [](Stop&) {}, [] { return std::vector<Label>(); }, common_.stopped_tag);
}

/// Fire what is ready until the run is over. What fails is noted, and leaves its copy unfinished.
template <bool kIsShared>
void Executor<kIsShared>::run() {
  const auto work = [&] {
    if (options_.check_finite)
      loop<true>();
    else
      loop<false>();
  };
  std::vector<Label> tag_of_host;
  const auto where = [&] { return at_ == nullptr ? std::vector<Label>() : tag(*at_); };
  const auto locate = [&](Stop& stop) {
    if (stop.node < 0 && step_ != nullptr) stop.node = step_->node;
    stop.tag = where();
  };
  for (;;) {
    try {
      guarded(work, locate, where, tag_of_host);
      return;
    } catch (const Over&) {
      return;
    } catch (const Stop& stop) {
      if (!is_failure(stop.kind)) return this->stop(std::current_exception());
      fail(std::current_exception(), {});
    } catch (const Interrupted&) {
      return stop(std::current_exception());
    } catch (...) {  // raised by an operator of the host
      fail(std::current_exception(), std::move(tag_of_host));
    }
  }
}

template <bool kIsShared>
void Executor<kIsShared>::fail(std::exception_ptr error, std::vector<Label> tag_of_host) {
  if (place_.copy == nullptr) place_ = {at_, static_cast<int32_t>(step_ - at_->made_of->steps.data()), -1};
  common_.failure.note(place_, std::move(error), std::move(tag_of_host));
  place_.copy = nullptr;
  common_.queue.settle();
}

/// End the run at once.
template <bool kIsShared>
void Executor<kIsShared>::stop(std::exception_ptr error) {
  {
    const std::lock_guard lock(common_.mutex);
    if (!common_.stopped) common_.stopped = std::move(error);
  }
  common_.queue.end();
}

template <bool kIsShared>
void Executor<kIsShared>::look() {
  if (is_owner_) poll_.look();
  if (kIsShared && common_.queue.is_over()) throw Over{};
}

template <bool kIsShared>
void Executor<kIsShared>::count(RunStats& stats) const {
  stats.activations += activations_;
  for (size_t k = 0; k < fired_.size(); ++k) stats.fired[k] += fired_[k];
}

template <bool kIsShared>
std::vector<Label> Executor<kIsShared>::tag(const Copy& copy) {
  std::vector<Label> labels;
  for (const Copy* at = &copy; at->parent != nullptr; at = at->parent) labels.push_back({at->row->site, at->index});
  return labels;
}

/// The deepest copy is about to be freed: record its label, and go on with its parent.
template <bool kIsShared>
void Executor<kIsShared>::climb() {
  const Copy* at = common_.deepest.load(std::memory_order_relaxed);
  common_.deepest_tag.push_back({at->row->site, at->index});
  at = at->parent;
  common_.deepest.store(at->parent == nullptr ? nullptr : at, std::memory_order_relaxed);
}

template <bool kIsShared>
void Executor<kIsShared>::climb_out() {
  while (common_.deepest.load(std::memory_order_relaxed) != nullptr) climb();
}

// ------------------------------------------------------------------------------------------------------------------
// What is ready

template <bool kIsShared>
void Executor<kIsShared>::grow() {
  const size_t used = static_cast<size_t>(top_ - bottom_);
  if (bottom_ != ready_.data() && used <= ready_.size() / 2) {  // there is room where others have taken from
    std::copy(bottom_, top_, ready_.data());
  } else {
    const auto bytes = static_cast<int64_t>(ready_.size() * sizeof(Ready));
    if (bytes > options_.memory) throw OverLimit{OverLimit::Kind::Memory, bytes};
    std::vector<Ready> more(std::max<size_t>(64, ready_.size() * 2));
    std::copy(bottom_, top_, more.data());
    ready_.swap(more);
  }
  bottom_ = ready_.data();
  top_ = bottom_ + used;
  end_ = ready_.data() + ready_.size();
}

template <bool kIsShared>
void Executor<kIsShared>::push_ranked(void* what, const Step* step) {
  int64_t priority = 0;
  if (common_.queue.scheduler == Scheduler::Depth) {
    priority = step == nullptr ? static_cast<Lanes*>(what)->parent->depth : static_cast<Copy*>(what)->depth;
  } else if (common_.queue.scheduler == Scheduler::LongestPath) {
    if (step != nullptr) {
      priority = static_cast<Copy*>(what)->ahead + step->ahead;
    } else {
      const Lanes& lanes = *static_cast<Lanes*>(what);
      priority = lanes.parent->ahead + lanes.row->ahead;
    }
  }
  common_.queue.push({what, step}, priority);
}

/// Others wait: give them what was ready first.
template <bool kIsShared>
void Executor<kIsShared>::give_away() {
  common_.queue.push(*bottom_, 0);
  if (++bottom_ == top_) bottom_ = top_ = ready_.data();
}

/// The next step to fire; false if the run is over.
template <bool kIsShared>
bool Executor<kIsShared>::take(Ready& next) {
  if constexpr (!kIsShared) {
    if (common_.missing == 0) return false;
    if (hand_.what != nullptr) {
      next = hand_;
      hand_.what = nullptr;
      return true;
    }
    if (top_ != bottom_) {
      next = *--top_;
      return true;
    }
    return false;
  } else {
    Queue& queue = common_.queue;
    for (;;) {
      if (queue.is_over()) return false;
      if (is_owner_ && queue.has_for_host() && queue.take_for_host(next)) return true;
      if (hand_.what != nullptr) {
        if (top_ != bottom_ && queue.is_hungry()) give_away();
        next = hand_;
        hand_.what = nullptr;
        return true;
      }
      if (top_ != bottom_) {
        next = *--top_;
        if (top_ != bottom_ && queue.is_hungry()) give_away();
        return true;
      }
      switch (queue.take(next, is_owner_)) {
        case Queue::Found::Work: return true;
        case Queue::Found::Over: return false;
        case Queue::Found::Nothing:
          if (is_owner_) look();
      }
    }
  }
}

/// Once something has failed, only what comes before it.
template <bool kIsShared>
bool Executor<kIsShared>::is_wanted(const Ready& ready) {
  if (ready.step == nullptr) {
    const Lanes& lanes = *static_cast<Lanes*>(ready.what);
    return common_.failure.is_before({lanes.parent, lanes.row->order, lanes.made});
  }
  const Copy* copy = static_cast<Copy*>(ready.what);
  return common_.failure.is_before({copy, static_cast<int32_t>(ready.step - copy->made_of->steps.data()), -1});
}

// ------------------------------------------------------------------------------------------------------------------
// What follows a firing

/// Hand a result to the caller. If the caller's program returns a result in turn, it runs once the current one has
/// ended: otherwise a chain of tail calls would recurse on the host's stack.
template <bool kIsShared>
void Executor<kIsShared>::up(Copy& copy, int32_t number, Operand value) {
  Copy* parent = copy.parent;
  if (parent == nullptr) {
    if (value != kNoSlot) {
      const uint64_t found = cell(copy, value);
      common_.results[z(number)] = is_array(type(*copy.made_of, value)) ? shared<kIsShared>(found) : found;
    }
    if (take_one<kIsShared>(common_.missing) == 0) common_.queue.end();
    return;
  }
  if (z(number) >= copy.row->results.size()) return;
  const Result& result = copy.row->results[z(number)];
  if (!result.is_there) return;
  if (copy.lanes != nullptr) {
    gather(copy, result, number, value);
    return;
  }
  if (result.to != kNoSlot && value != kNoSlot) {
    const uint64_t found = cell(copy, value);
    parent->slots[result.to] = result.to < parent->made_of->layout.arrays ? shared<kIsShared>(found) : found;
  }
  if (!result.program.goes_up)
    set_off(*parent, result.program);
  else
    tasks_.push_back({parent, &result.program, nullptr, 0});
}

template <bool kIsShared>
void Executor<kIsShared>::drain() {
  while (!tasks_.empty()) {
    tick();
    const Task task = tasks_.back();
    tasks_.pop_back();
    if (task.lanes == nullptr)
      set_off(*task.copy, *task.program);
    else
      put_together(*task.lanes, task.number);
  }
}

template <bool kIsShared>
template <bool kIsStrict>
void Executor<kIsShared>::loop() {
  if (!tasks_.empty()) drain();  // of a step that has failed
  Ready next{nullptr, nullptr};
  while (take(next)) {
    tick();
    if (common_.failure.is_there()) [[unlikely]] {
      is_lifo_ = true;
      if (!is_wanted(next)) continue;
    }
    if (next.step == nullptr) [[unlikely]] {
      make_lane(*static_cast<Lanes*>(next.what));
      continue;
    }
    Copy& copy = *static_cast<Copy*>(next.what);
    at_ = &copy;
    uint64_t* const slots = copy.slots;
    const Step* const steps = copy.made_of->steps.data();
    bool is_passed_on = false;
    // A chain of steps: each continues with its tail, without going through the ready stack.
    for (const Step* now = next.step;;) {
      const Step& step = *now;
      const Program* program = &step.program;
      step_ = now;
      const auto a = [&] { return cell(copy, step.a); };
      const auto b = [&] { return cell(copy, step.b); };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch"  // the enum names a scalar operator once; its code for each dtype is computed
      switch (step.code) {
        // clang-format off
#define UNDERTOW_CASE(number, type, name, result)                                                                \
      case of(StepCode::name, number): {                                                                         \
        using T = type;                                                                                          \
        [[maybe_unused]] const T x = as<T>(a()), y = as<T>(b());                                                 \
        result;                                                                                                  \
      } break;
#define UNDERTOW_NUMBER(name, op, mirrored, dtypes, value)                                                       \
      UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, slots[step.to] = cell_of<T>(static_cast<T>(value)))
#define UNDERTOW_DIVISION(name, op, mirrored, dtypes, value)                                                     \
      UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, if (y == 0) fault(copy, step); slots[step.to] = cell_of<T>(value))
#define UNDERTOW_TEST(name, op, mirrored, dtypes, test)                                                          \
      UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, slots[step.to] = (test))
#define UNDERTOW_SINGLE(name, op, from, type, to_dtype, to_type, value)                                                \
      case StepCode::name: {                                                                                     \
        [[maybe_unused]] const type x = as<type>(a()), y = as<type>(b());                                        \
        slots[step.to] = cell_of<to_type>(static_cast<to_type>(value));                                          \
      } break;
      UNDERTOW_ARITHMETIC(UNDERTOW_NUMBER)
      UNDERTOW_DIVISIONS(UNDERTOW_DIVISION)
      UNDERTOW_TESTS(UNDERTOW_TEST)
      UNDERTOW_SINGLES(UNDERTOW_SINGLE)
#undef UNDERTOW_SINGLE
#undef UNDERTOW_TEST
#undef UNDERTOW_DIVISION
#undef UNDERTOW_NUMBER
#undef UNDERTOW_CASE
      case StepCode::Identity: slots[step.to] = a(); break;
        // clang-format on
        case StepCode::Branch: {
          const Branch& branch = plan_.branches[z(step.extra)];
          const int side = (a() & 1) != 0 ? 0 : 1;
          program = &branch.sides[side];
          break;
        }
        case StepCode::Call:
        case StepCode::Loop: call(copy, plan_.enterings[z(step.extra)]); break;
        case StepCode::Map: map(copy, plan_.enterings[z(step.extra)]); break;
        case StepCode::Again: again(copy, copy.made_of->again[z(step.extra)]); break;
        case StepCode::Op: operate(copy, step); break;
        case StepCode::Flat: flat(copy, step); break;
        case StepCode::Host:
          if (kIsShared && !is_owner_) {
            add_one<kIsShared>(copy.left);
            common_.queue.push_for_host({&copy, now});
            is_passed_on = true;
            break;
          }
          ask_host(copy, step);
          break;
        case StepCode::Collect: collect(copy, step); break;
        case StepCode::Collected: collected(copy, plan_.collecteds[z(step.extra)]); break;
        case StepCode::Pass: break;
      }
#pragma GCC diagnostic pop
      if (is_passed_on) [[unlikely]]
        break;
      if (step.node >= 0) ++fired_[z(step.node)];
      if constexpr (kIsStrict) check_finite(copy, step);
      set_off(copy, *program);
      if (program->tail < 0) break;
      now = steps + program->tail;
    }
    if (!tasks_.empty()) drain();
    if (take_one<kIsShared>(copy.left) == 0) finish(&copy);
  }
}

template class Executor<false>;
template class Executor<true>;

}  // namespace undertow::expand
