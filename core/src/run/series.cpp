// A series: consecutive operators run on some lanes, then on the next. So the result of one operator is in the cache
// when the next one reads it, however many lanes there are; and values that only the series uses need memory for one
// piece.
#include <algorithm>
#include <atomic>
#include <ranges>
#include <utility>

#include "run/entries.h"
#include "run/operators.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kMostSum = int64_t{1} << 18;  // bytes up to which a sum of products is added to piece by piece
constexpr int64_t kLarge = int64_t{1} << 20;    // bytes of a matrix above which all lanes are multiplied at once

}  // namespace

/// Are all operands computed, and the same for all lanes?
bool OperatorRunner::is_known(const Table& table, const OpItem& item) const {
  return std::ranges::all_of(item.inputs, [&](Operand x) {
    return x < 0 || (table.columns[x].data != nullptr && table.columns[x].stride == 0);
  });
}

void OperatorRunner::count_uses(std::span<const Operand> operands) {
  for (Operand x : operands)
    if (x >= 0) ++uses_[z(x)];
}

/// Add an operator to the series; false if it must run alone. If its result is the same for all lanes, it runs now.
bool OperatorRunner::add(Table& table, const OpItem& item) {
  if (item.kernel < 0 || item.is_effect || item.is_open || item.may_change) return false;
  if (is_known(table, item)) {
    run(table, item);
    return true;
  }
  const Kernel& kernel = *plan_.kernels[z(item.kernel)];
  const Elementwise* each = kernel.elementwise();
  if (each != nullptr && each->scan != nullptr) return false;  // it checks its operands first
  int64_t bytes = 0, shared = 0;
  for (Operand x : item.inputs) {
    const Column column = tables_.peek(table, x);
    (column.data != nullptr && column.stride == 0 ? shared : bytes) += tables_.slot(*table.region, x).bytes;
  }
  for (int32_t to : item.outputs) {
    if (to == kNoSlot) return false;
    bytes += table.region->slots[z(to)].bytes;
  }
  if (kernel.is_product() && shared > kLarge) return false;
  for (int32_t to : item.outputs) tables_.drop(table, to);  // of an earlier iteration
  lane_bytes_ += bytes;
  if (kernel.is_product()) fewest_ = std::max(fewest_, fewest_rows(shared));
  begin(table);
  count_uses(item.inputs);
  next_step().op = &item;
  return true;
}

/// Add a sum over lanes, done for each piece while it is in the cache. False for rows, which are only appended, and for
/// sums so large that each piece would evict them.
bool OperatorRunner::add(Table& table, const CollectItem& item) {
  if (item.kind == CollectKind::Rows || table.entry == nullptr) return false;
  int64_t bytes = 0, sum = 1;
  for (Operand x : item.values) {
    const Slot& slot = tables_.slot(*table.region, x);
    if (slot.is_dynamic) return false;
    bytes += slot.bytes;
    sum *= slot.rank() > 1 ? slot.count / std::max<int64_t>(slot.shape[0], 1) : slot.count;
  }
  sum *= size_of(tables_.slot(*table.region, item.values[0]).dtype);
  if (item.kind == CollectKind::Product && sum > kMostSum) return false;
  lane_bytes_ += bytes;
  // A sum is read and written once for each piece: the larger it is, the more lanes a piece must have.
  if (item.kind == CollectKind::Product) fewest_ = std::max<int64_t>(fewest_, sum > kMostSum / 2 ? 128 : 64);
  begin(table);
  count_uses(item.values);
  next_step().collect = &item;
  return true;
}

void OperatorRunner::add(Table& table, const FusedItem& item) {
  const bool is_known = std::ranges::all_of(item.inputs, [&](const FusedItem::Input& input) {
    const Column column = tables_.peek(table, input.from);
    return column.data != nullptr && column.stride == 0;
  });
  if (is_known) {
    run(table, item);
    return;
  }
  for (const FusedItem::Output& output : item.outputs)
    if (output.is_first) tables_.drop(table, output.to);
  lane_bytes_ += item.bytes;
  begin(table);
  for (int32_t op : item.ops) count_uses(plan_.ops[z(op)].inputs);
  next_step().fused = &item;
}

void OperatorRunner::begin(const Table& table) {
  if (count_ == 0) uses_.assign(table.region->slots.size(), 0);
}

OperatorRunner::Step& OperatorRunner::next_step() {
  if (count_ == steps_.size()) steps_.emplace_back();
  Step& step = steps_[count_++];
  step.op = nullptr;
  step.fused = nullptr;
  step.collect = nullptr;
  step.is_done = false;
  step.flat.flat = nullptr;
  return step;
}

/// Find the results that only this series uses. If a view of a result is used outside, so is the result. (A view of a
/// value with memory for all lanes is such a value too: these are found when steps are prepared.)
void OperatorRunner::find_inner(Table& table) {
  inner_.clear();
  if (options_.threads > 1) return;  // each thread would need its own memory
  const auto may_be = [&](int32_t to) {
    const Slot& slot = table.region->slots[z(to)];
    if (slot.uses == uses_[z(to)] && slot.offset < 0 && !slot.is_dynamic && slot.bytes > 0) inner_.push_back(to);
  };
  const std::span<const Step> steps(steps_.data(), count_);
  for (const Step& step : steps) {
    if (step.op != nullptr)
      std::ranges::for_each(step.op->outputs, may_be);
    else if (step.fused != nullptr)
      for (const FusedItem::Output& output : step.fused->outputs)
        if (output.is_first) may_be(output.to);
  }
  for (const Step& step : std::ranges::reverse_view(steps))
    if (step.op != nullptr && !is_inner(step.op->outputs[0]) &&
        is_view(table, *step.op, *plan_.kernels[z(step.op->kernel)]))
      std::erase(inner_, step.op->inputs[0]);
}

/// Memory for a result: for all lanes, or for one piece.
std::byte* OperatorRunner::room(Table& table, int32_t number, bool is_uniform) {
  if (is_uniform || piece_ == 0 || !is_inner(number)) return tables_.own(table, number, is_uniform);
  const Slot& slot = table.region->slots[z(number)];
  Block* block = tables_.pool.take(slot.bytes * piece_, slot.home);
  table.columns[number] = {block, block->data(), slot.bytes};
  return block->data();
}

bool OperatorRunner::is_inner(Operand x) const { return std::ranges::find(inner_, x) != inner_.end(); }

/// Find the operands and results of a step, and their strides from piece to piece: 0 for memory of one piece.
void OperatorRunner::prepare(Table& table, Step& step) {
  step.moves.clear();
  if (step.fused != nullptr) {
    const FusedItem& item = *step.fused;
    Fused::Lanes given[Fused::kMostRegisters], made[Fused::kMostRegisters];
    const int64_t lanes = prepare(table, item, given, made);
    step.is_done = lanes < table.lanes;  // the same for all lanes
    if (step.is_done && run_pieces(item, lanes, given, made).fault) run(table, item);
    step.given.assign(given, given + item.program.types().size());
    step.made.assign(made, made + item.outputs.size());
    for (size_t k = 0; k < step.given.size(); ++k)
      step.moves.push_back(k < item.inputs.size() && is_inner(item.inputs[k].from) ? 0 : given[k].stride);
    for (size_t k = 0; k < step.made.size(); ++k)
      step.moves.push_back(is_inner(item.outputs[k].to) ? 0 : made[k].stride);
    return;
  }
  if (step.collect != nullptr) {
    step.inputs.clear();
    for (Operand x : step.collect->values) {
      const Slot& slot = tables_.slot(*table.region, x);
      const Column column = tables_.column(table, x);
      step.inputs.push_back({column.data, column.stride, slot.shape.data(), slot.rank(), slot.dtype});
      step.moves.push_back(is_inner(x) ? 0 : column.stride);
    }
    stats_.fired[z(step.collect->node)] += table.lanes;
    return;
  }
  const OpItem& item = *step.op;
  const Kernel& kernel = *plan_.kernels[z(item.kernel)];
  position = {item.node, -1};
  step.is_done = true;
  if (is_known(table, item)) return run(table, item);
  stats_.fired[z(item.node)] += table.lanes;
  if (share(table, item, kernel)) {
    if (!is_inner(item.inputs[0])) std::erase(inner_, item.outputs[0]);
    return;
  }
  step.is_done = false;
  FlatStep& flat = step.flat;
  if (find_flat(table, item, kernel, table.lanes, false, flat)) {
    for (size_t k = 0; k < 3; ++k)
      step.moves.push_back(k < item.inputs.size() && is_inner(item.inputs[k]) ? 0 : flat.sizes[k] * flat.count);
    step.moves.push_back(is_inner(item.outputs[0]) ? 0 : flat.size * flat.count);
    return;
  }
  find_views(table, item, false, step.inputs, step.outputs);
  for (size_t k = 0; k < step.inputs.size(); ++k)
    step.moves.push_back(is_inner(item.inputs[k]) ? 0 : step.inputs[k].stride);
  for (size_t k = 0; k < step.outputs.size(); ++k)
    step.moves.push_back(is_inner(item.outputs[k]) ? 0 : step.outputs[k].stride);
}

/// Run all that was added.
void OperatorRunner::finish(Table& table) {
  if (count_ == 0) return;
  const std::span<Step> steps(steps_.data(), count_);
  const int64_t bytes = std::exchange(lane_bytes_, 0) + 64;
  const int64_t fewest = std::exchange(fewest_, 1);
  const int64_t pieces = pieces_of(table.lanes, bytes, fewest);
  find_inner(table);
  count_ = 0;
  piece_ = (table.lanes + pieces - 1) / pieces;
  for (Step& step : steps) prepare(table, step);
  piece_ = 0;
  if (pieces > 1 && options_.threads > 1) stats_.shared_steps += static_cast<int64_t>(steps.size()) - 1;
  std::atomic<bool> has_failed = false;
  const bool adds_alone = options_.threads > 1;  // sums are added in order, by one thread
  in_pieces(table.lanes, bytes, fewest, [&](int64_t done, int64_t now, Scratch& scratch) {
    const auto works = [&](const Step& step) {
      return (adds_alone && step.collect != nullptr) || run_step(table, step, done, now, scratch);
    };
    if (!std::ranges::all_of(steps, works)) has_failed = true;
  });
  for (int64_t piece = 0; adds_alone && !has_failed && piece < pieces; ++piece) {
    const int64_t done = first_of(piece, pieces, table.lanes), now = first_of(piece + 1, pieces, table.lanes) - done;
    for (const Step& step : steps)
      if (step.collect != nullptr) run_step(table, step, done, now, tables_.scratch());
  }
  for (int32_t slot : inner_) tables_.drop(table, slot);
  inner_.clear();
  if (!has_failed) return;
  for (const Step& step : steps) {  // one by one: the one at fault throws
    if (step.op != nullptr)
      run(table, *step.op);
    else if (step.fused != nullptr)
      run(table, *step.fused);
  }
  throw Stop{Stop::Kind::Internal, position.node};
}

/// Run one step for some lanes; false if it faults.
bool OperatorRunner::run_step(const Table& table, const Step& step, int64_t done, int64_t now, Scratch& scratch) {
  if (step.is_done) return true;
  const Access access;
  const int64_t* moves = step.moves.data();
  if (step.collect != nullptr) {
    View values[2] = {step.inputs[0], step.inputs[1]};
    for (size_t k = 0; k < 2; ++k) values[k].data = static_cast<std::byte*>(values[k].data) + done * moves[k];
    collect_lanes(tables_, *table.entry, *step.collect, now, values, nullptr, scratch);
    return true;
  }
  if (step.flat.flat != nullptr) {
    const FlatStep& flat = step.flat;
    const auto from = [&](int k) { return flat.data[k] + done * moves[k]; };
    flat.flat(from(0), from(1), from(2), flat.out + done * moves[3], now * flat.count);
    return true;
  }
  if (step.op != nullptr) {
    constexpr size_t kMost = 16;
    View few[kMost];
    std::vector<View> many;
    const size_t inputs = step.inputs.size(), all = inputs + step.outputs.size();
    View* views = few;
    if (all > kMost) {
      many.resize(all);
      views = many.data();
    }
    std::copy(step.outputs.begin(), step.outputs.end(), std::copy(step.inputs.begin(), step.inputs.end(), views));
    for (size_t k = 0; k < all; ++k) views[k].data = static_cast<std::byte*>(views[k].data) + done * moves[k];
    OperatorCache cache(cache_, table, *step.op);
    return !plan_.kernels[z(step.op->kernel)]->run(now, views, views + inputs, scratch, cache);
  }
  Fused::Lanes given[Fused::kMostRegisters], made[Fused::kMostRegisters];
  const auto moved = [&](Fused::Lanes at) {
    if (at.data != nullptr) at.data += done * *moves;
    ++moves;
    return at;
  };
  std::transform(step.given.begin(), step.given.end(), given, moved);
  std::transform(step.made.begin(), step.made.end(), made, moved);
  return !step.fused->program.run(now, given, made, scratch).fault;
}

}  // namespace undertow
