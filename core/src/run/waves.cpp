#include "run/waves.h"

#include <algorithm>

#include "memory/lanes.h"
#include "run/guard.h"
#include "run/values.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr std::chrono::milliseconds kFirstGift{3}, kBetweenGifts{1};

}  // namespace

Run::Run(const Plan& of, const RunOptions& with, Host& by, RunStats& counts, const Run* owner, RunShare* share,
         Link* to, Wire* across)
    : plan(of),
      options(with),
      host(by),
      stats(counts),
      tables(of, with.memory, share != nullptr ? &share->bytes : nullptr, share != nullptr ? &share->frames : nullptr),
      operators(of, tables, by, with, counts, share != nullptr ? &share->packed : nullptr),
      poll(by, with.timeout, owner != nullptr ? owner->poll.began() : Poll::Clock::now()),
      link(to),
      wire(across),
      owner_(owner),
      is_part_(share != nullptr),
      may_give_(poll.began() + kFirstGift) {
  if (options.shows_progress)
    poll.tell([](const void* self) { return static_cast<const Run*>(self)->progress(); }, this);
  tables.scratch().watch([](void* self) { static_cast<Poll*>(self)->look(); }, &poll);
  tables.most_frames = share != nullptr ? 0 : options.frames;
  stats.fired.assign(z(plan.nodes), 0);
  clock.start(options.is_timed);
  if (owner == nullptr) return;  // a guest's columns of main come in messages
  stats.max_depth = owner->stats.max_depth;
  columns_.resize(plan.regions[0].slots.size());
  main_columns = columns_.data();
}

Run::~Run() {
  tables.scratch().watch(nullptr, nullptr);
  if (stack_.empty() && space_->waves.is_small()) Idle<RunSpace>::all().give(std::move(space_));
}

template <class Work>
void Run::guarded(Work&& work) {
  undertow::guarded(work, [this](Stop& stop) { locate(stop); }, [this] { return where(); }, stats.stopped);
}

std::vector<Value> Run::run(std::span<const View> inputs) {
  std::vector<Value> results;
  guarded([&] {
    lend(inputs);
    begin(runner_of(plan.start.group), space_->root);
    poll.look();  // a timeout of 0 stops before anything runs
    loop();
    finish_stats();
    results = values();
  });
  plan.calls_before = stats.activations;
  return results;
}

void Run::run(Invocation& invocation, bool is_first) {
  guarded([&] {
    if (is_first) {
      begin(goes_narrow(invocation) ? made(narrow_) : runner_of(invocation.group), invocation);
    } else {
      clock.start(options.is_timed);
      resume(invocation);
    }
    loop();
    if (lockstep_) lockstep_->run_kept();
    finish_stats();
  });
}

void Run::loop() {
  while (!stack_.empty()) stack_.back()->step();
}

Column Run::lend(const Slot& slot, Column column, int64_t lanes) {
  column.block = nullptr;
  if (!slot.is_dynamic || column.data == nullptr) return column;
  std::vector<Box>& boxes = lent_.emplace_back();
  for (int64_t k = 0; k < (column.stride == 0 ? 1 : lanes); ++k) {
    const Box& box = *column.lane<Box>(k);
    boxes.push_back({nullptr, box.data, tables.shape({box.shape, z(slot.rank())})});
  }
  const int64_t stride = column.stride == 0 ? 0 : static_cast<int64_t>(sizeof(Box));
  return {nullptr, reinterpret_cast<std::byte*>(boxes.data()), stride};
}

void Run::lend_main() {
  const std::vector<Slot>& slots = plan.regions[0].slots;
  for (size_t k = 0; k < slots.size(); ++k) columns_[k] = lend(slots[k], owner_->shared(static_cast<int32_t>(k)), 1);
}

void Run::adopt_deepest(const RunStats& part) {
  if (part.max_depth <= stats.max_depth) return;
  stats.max_depth = part.max_depth;
  stats.deepest = part.deepest;
  deepest_ = {};
  for (Runner* runner : stack_) runner->forget_deepest();
}

// ------------------------------------------------------------------------------------------------------------------
// Main

/// Inputs are borrowed; small ones are copied, since kernels need padding after them.
void Run::lend(std::span<const View> inputs) {
  const CallItem& item = plan.start;
  Part& main = space_->main;
  Invocation& root = space_->root;
  main.invocation = &root;
  main.item = &item;
  main.region = &plan.regions[0];
  main.lanes = 1;
  main.arguments.assign(inputs.size(), {});
  root.parts.assign(1, &main);
  root = {this, item.group, 1, 0, 0, 0, std::move(root.parts), nullptr, nullptr};
  space_->results.assign(item.results.size(), {});
  space_->boxes.resize(inputs.size());
  space_->lent.clear();
  constexpr int64_t kRoom = 128;  // bytes for a small input
  Block* small = nullptr;         // holds all of them
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (item.arguments[k] == kNoSlot) continue;
    const Slot& slot = main.region->slots[z(item.arguments[k])];
    if (!slot.is_dynamic && slot.offset >= 0) {
      if (small == nullptr) {
        small = tables.pool.take(kRoom * static_cast<int64_t>(inputs.size()));
        space_->lent.push_back(small);
      }
      std::byte* at = small->data() + kRoom * static_cast<int64_t>(k);
      lanes::copy(at, inputs[k].data, slot.bytes);
      main.arguments[k] = {small, at, 0};
      continue;
    }
    Box& box = space_->boxes[k] = tables.lent(slot, inputs[k]);
    if (box.block != nullptr) space_->lent.push_back(box.block);
    main.arguments[k] =
        slot.is_dynamic ? Column{nullptr, reinterpret_cast<std::byte*>(&box), 0} : Column{box.block, box.data, 0};
  }
}

Column Run::room(Part& part, size_t result) {
  const Slot& slot = part.region->slots[z(part.item->results[result])];
  Block* block = tables.pool.take(slot.bytes, slot.column_home());
  if (slot.is_dynamic) lanes::zero(block->data(), slot.bytes);
  return space_->results[result] = {block, block->data(), 0};
}

void Run::take(Part& part, size_t result, const Slot& slot, const Column& column) {
  if (slot.is_dynamic) {
    *room(part, result).lane<Box>(0) = tables.box_of(slot, column, 0);
    return;
  }
  if (column.block != nullptr) ++column.block->refs;
  space_->results[result] = column;
}

/// Copy results out, or take their blocks if nothing else refers to them.
std::vector<Value> Run::values() {
  const Part& main = space_->main;
  std::vector<Value> made(space_->results.size());
  for (size_t k = 0; k < made.size(); ++k) {
    const int32_t number = main.item->results[k];
    if (number == kNoSlot) continue;  // an order token
    const Slot& slot = main.region->slots[z(number)];
    Column& column = space_->results[k];
    View view{column.data, 0, slot.shape.data(), slot.rank(), slot.dtype};
    Block** block = &column.block;
    if (slot.is_dynamic) {
      Box* box = column.lane<Box>(0);
      view.data = box->data;
      view.shape = box->shape;
      block = &box->block;
    }
    if (*block != nullptr && (*block)->refs == 1 && (*block)->data() == view.data && !(*block)->is_away()) {
      tables.pool.release(*block);
      made[k] = {{view.shape, view.shape + view.rank}, {*block, z(view.bytes())}};
      *block = nullptr;
    } else {
      made[k] = value_of(view);
    }
    if (slot.is_dynamic) tables.pool.drop(*block);
    tables.pool.drop(column.block);
  }
  for (Block* block : space_->lent) tables.pool.drop(block);
  return made;
}

// ------------------------------------------------------------------------------------------------------------------
// The door

Runner& Run::runner_of(int32_t group) {
  if (schedule_of(group) == Schedule::Agenda) return made(agenda_);
  return made(lockstep_);
}

void Run::begin(Runner& runner, Invocation& invocation) {
  invocation.runner = &runner;
  stack_.push_back(&runner);
  runner.enter(invocation);
}

void Run::enter(Invocation& invocation) {
  const bool is_narrow = goes_narrow(invocation);
  if (link != nullptr && !is_part_ && invocation.parts[0]->region->group != invocation.group)
    timed_.push_back({&invocation, Poll::Clock::now(), false});
  // Lockstep asks before each chunk, and so when the invocation has begun.
  const bool is_lockstep = !is_narrow && schedule_of(invocation.group) == Schedule::Lockstep;
  if (!is_lockstep && (!is_narrow || link != nullptr) && invocation.lanes() > 1) {
    stack_.push_back(&made(tasks_));
    if (share(invocation, {})) return leave(invocation);
    stack_.pop_back();
  }
  begin(is_narrow ? made(narrow_) : runner_of(invocation.group), invocation);
}

void Run::resume(Invocation& invocation) {
  ++invocation.phase;
  stack_.push_back(invocation.runner);
  invocation.runner->resume(invocation);
}

void Run::leave(Invocation& invocation) {
  stack_.pop_back();
  if (deepest_.part != nullptr && deepest_.part->invocation == &invocation)
    deepest_ = invocation.caller->climb(*deepest_.part, deepest_.lane, stats.deepest);
  if (!timed_.empty() && timed_.back().invocation == &invocation) {
    measured(timed_.back());
    timed_.pop_back();
  }
  invocation.caller->back(invocation);
}

bool Run::may_give() {
  const auto now = Poll::Clock::now();
  if (now < may_give_ && !link->is_eager) return false;
  may_give_ = now + kBetweenGifts;
  return is_awaited_ = made(tasks_).may_give();
}

void Run::measured(const Timed& timed) const {
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Poll::Clock::now() - timed.began);
  const int64_t lanes = timed.invocation->lanes();
  const int64_t now = std::max<int64_t>(took.count() / std::max<int64_t>(lanes, 1), 1);
  LaneCost& cost = plan.lane_costs[z(timed.invocation->group)];
  ++cost.times;
  if (timed.is_away && cost.times_away++ == 0) return;  // the plan had to be sent, too
  if (timed.is_away) cost.away_lanes = lanes;
  std::atomic<int64_t>& known = timed.is_away ? cost.away : cost.here;
  known = known == 0 ? now : (known + now) / 2;
}

bool Run::goes_narrow(const Invocation& invocation) const {
  constexpr int64_t kNarrow = 16;  // lanes; for more, waves are faster
  return plan.groups[z(invocation.group)].is_narrow && !options.check_finite && !options.is_traced &&
         invocation.lanes() <= kNarrow;
}

// ------------------------------------------------------------------------------------------------------------------
// Tags, and the deepest of them

/// Frames add their labels to the deepest tag when they return: so a new maximum costs no walk up the stack, however
/// often there is one.
void Run::begin_deepest(int64_t depth, const Place& first) {
  options.check_depth(depth, tables.pool.live());
  stats.max_depth = depth;
  stats.deepest.clear();
  if (first.part != nullptr) stats.deepest.push_back({first.part->item->site, -1});
  deepest_ = first;
}

void Run::finish_stats() {
  while (deepest_.part != nullptr)
    deepest_ = deepest_.part->invocation->caller->out(*deepest_.part, deepest_.lane, stats.deepest);
  stats.peak_frames = tables.peak_frames;
  stats.peak_bytes = tables.pool.peak();
  clock.stop(stats);
}

/// Of this run, of its tasks that have ended, and of the run that it is a part of.
RunProgress Run::progress() const {
  RunProgress found = owner_ != nullptr ? owner_->progress() : RunProgress{};
  found.activations += stats.activations + (tasks_ ? tasks_->calls() : 0);
  found.waves += stats.waves + (tasks_ ? tasks_->waves() : 0);
  found.depth = std::max(found.depth, stats.max_depth);
  found.bytes += tables.pool.live();
  return found;
}

/// The tag of what runs now.
std::vector<Label> Run::where() const {
  std::vector<Label> labels;
  if (stack_.empty()) return labels;
  Place at = stack_.back()->where(labels);
  while (at.part != nullptr) at = at.part->invocation->caller->out(*at.part, at.lane, labels);
  return labels;
}

/// Add to a Stop where it happened.
void Run::locate(Stop& stop) const {
  if (stop.tag.empty()) stop.tag = where();
  if (stop.node < 0 && stop.site < 0) {
    stop.node = operators.position.node;
    stop.site = operators.position.site;
  }
}

std::vector<Value> run_waves(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                             RunStats& stats, Link* link, Wire* wire) {
  return Run(plan, options, host, stats, nullptr, nullptr, link, wire).run(inputs);
}

}  // namespace undertow
