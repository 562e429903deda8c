#include "run.h"

#include <algorithm>

#include "run/guard.h"
#include "run/values.h"
#include "undertow/scalar.h"
#include "undertow/size.h"

namespace undertow::expand {

Run::Run(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats)
    : plan_(plan),
      options_(options),
      host_(host),
      stats_(stats),
      edges_(plan.edges.data()),
      constants_(plan.constants.data()),
      pool_(options.memory),
      arena_(pool_),
      table_(pool_),
      scalars_(static_cast<std::byte*>(scalar_memory_.get(static_cast<int64_t>(plan.most_operands) * kScalar))),
      poll_(host, options.timeout) {
  if (options.shows_progress)
    poll_.tell(
        [](const void* self) {
          const Run& run = *static_cast<const Run*>(self);
          return RunProgress{0, run.stats_.activations, 0, run.stats_.max_depth, run.pool_.live()};
        },
        this);
  scratch_.watch([](void* poll) { static_cast<Poll*>(poll)->look(); }, &poll_);
  inputs_.resize(plan.most_operands);
  outputs_.resize(plan.most_operands);
  shapes_.resize(plan.most_operands);
  known_entries_.resize(plan.templates.size());
  stats_.fired.assign(z(plan.nodes), 0);
  for (const Template& made_of : plan.templates) arena_.reserve(std::max(made_of.copy_size, made_of.record_size));
}

std::vector<Value> Run::run(std::span<const View> inputs) {
  results_.assign(plan_.fetches.size(), 0);
  missing_ = results_.size();
  const auto work = [&] {
    poll_.look();
    main_ = at_ = open(plan_.templates[0], nullptr, nullptr, -1, 1);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int32_t slot = plan_.inputs[k];
      if (slot == kNoSlot) continue;
      const View& view = inputs[k];
      main_->slots[slot] = make_cell(pool_, view.data, view.shape, view.rank, view.dtype);
    }
    begin(*main_);
    if (missing_ > 0) {
      if (options_.check_finite)
        loop<true>();
      else
        loop<false>();
    }
  };
  const auto where = [&] { return at_ == nullptr ? std::vector<Label>() : tag(*at_); };
  const auto locate = [&](Stop& stop) {
    if (stop.node < 0 && step_ != nullptr) stop.node = step_->node;
    stop.tag = where();
  };
  guarded(work, locate, where, stats_.stopped);
  stats_.peak_bytes = pool_.peak();
  while (deepest_ != nullptr) climb();
  std::vector<Value> values;
  for (size_t k = 0; k < results_.size(); ++k) {
    const Plan::Fetch& fetch = plan_.fetches[k];
    const int rank = fetch.type.rank();
    const View view = is_array(fetch.type) ? view_of(array_in(results_[k]), rank, fetch.type.dtype)
                                           : View{&results_[k], 0, nullptr, 0, fetch.type.dtype};
    values.push_back(fetch.is_order ? Value{} : value_of(view));
  }
  return values;
}

std::vector<Label> Run::tag(const Copy& copy) {
  std::vector<Label> labels;
  for (const Copy* at = &copy; at->parent != nullptr; at = at->parent) labels.push_back({at->row->site, at->index});
  return labels;
}

/// The copy `deepest_` is about to be freed: record its label, and go on with its parent.
void Run::climb() {
  stats_.deepest.push_back({deepest_->row->site, deepest_->index});
  deepest_ = deepest_->parent;
  if (deepest_->parent == nullptr) deepest_ = nullptr;
}

void Run::grow() {
  const size_t used = ready_.size();
  const auto bytes = static_cast<int64_t>(used * sizeof(Ready));
  if (bytes > options_.memory) throw OverLimit{OverLimit::Kind::Memory, bytes};
  ready_.resize(std::max<size_t>(64, used * 2));
  top_ = ready_.data() + used;
  end_ = ready_.data() + ready_.size();
}

/// Hand a result to the caller. If the caller's program returns a result in turn, it runs once the current one has
/// ended: otherwise a chain of tail calls would recurse on the host's stack.
void Run::up(Copy& copy, int32_t number, Operand value) {
  Copy* parent = copy.parent;
  if (parent == nullptr) {
    if (value != kNoSlot) {
      const uint64_t found = cell(copy, value);
      results_[z(number)] = is_array(type(*copy.made_of, value)) ? shared(found) : found;
    }
    --missing_;
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
    parent->slots[result.to] = result.to < parent->made_of->layout.arrays ? shared(found) : found;
  }
  if (!result.program.goes_up)
    set_off(*parent, result.program);
  else
    tasks_.push_back({parent, &result.program});
}

void Run::drain() {
  while (!tasks_.empty()) {
    tick();
    const Task task = tasks_.back();
    tasks_.pop_back();
    set_off(*task.copy, *task.program);
  }
}

template <bool kIsStrict>
void Run::loop() {
  while (missing_ > 0) {
    tick();
    Ready next = hand_;
    hand_.what = nullptr;
    if (next.what == nullptr) {
      if (top_ == ready_.data()) throw Stop{Stop::Kind::Internal};
      --top_;
      next.what = top_->what;
      next.step = top_->step;
    }
    if (next.step == nullptr) [[unlikely]] {
      Lanes& lanes = *static_cast<Lanes*>(next.what);
      at_ = lanes.parent;
      make_lane(lanes);
      continue;
    }
    Copy& copy = *static_cast<Copy*>(next.what);
    at_ = &copy;
    uint64_t* const slots = copy.slots;
    const Step* const steps = copy.made_of->steps.data();
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
        case StepCode::Host: ask_host(copy, step); break;
        case StepCode::Collect: collect(copy, plan_.collects[z(step.extra)]); break;
        case StepCode::Collected: collected(copy, plan_.collecteds[z(step.extra)]); break;
        case StepCode::Pass: break;
      }
#pragma GCC diagnostic pop
      if (step.node >= 0) ++stats_.fired[z(step.node)];
      if constexpr (kIsStrict) check_finite(copy, step);
      set_off(copy, *program);
      if (program->tail < 0) break;
      now = steps + program->tail;
    }
    if (!tasks_.empty()) drain();
    if (--copy.left == 0) finish(&copy);
  }
}

std::vector<Value> run(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                       RunStats& stats) {
  return Run(plan, options, host, stats).run(inputs);
}

}  // namespace undertow::expand
