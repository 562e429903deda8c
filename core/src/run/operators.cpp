#include "run/operators.h"

#include <algorithm>
#include <mutex>

#include "memory/lanes.h"
#include "run/values.h"
#include "undertow/elementwise.h"
#include "undertow/size.h"

namespace undertow {
namespace {

/// Does the value of an operand decide the shape of a result?
bool decides(const Kernel& kernel, size_t k) { return k < 64 && ((kernel.deciding() >> k) & 1) != 0; }

}  // namespace

void OperatorRunner::fault(const Table& table, const OpItem& item, int64_t at) {
  lane = at;
  std::vector<View> views;
  for (Operand x : item.inputs) views.push_back(tables_.view(table, x, at));
  throw stop_of(Stop::Kind::Fault, item.node, views);
}

void OperatorRunner::run(Table& table, const OpItem& item) {
  bool is_uniform = true;
  for (Operand x : item.inputs) is_uniform = is_uniform && (x < 0 || table.columns[x].stride == 0);
  if (item.is_effect) is_uniform = false;
  const int64_t lanes = is_uniform ? 1 : table.lanes;
  stats_.fired[z(item.node)] += table.lanes;
  position = {item.node, -1};
  if (item.is_check) {
    check(table, item, lanes);
  } else if (item.kernel < 0) {
    run_host(table, item, lanes, is_uniform);
  } else {
    const Kernel& kernel = *plan_.kernels[z(item.kernel)];
    const bool is_same = item.is_same && is_uniform;
    const bool is_there = !item.is_open && (share(table, item, kernel) || (is_same && cache_.recall(table, item)));
    if (!is_there && !(item.may_change && run_in_place(table, item, kernel, lanes, is_uniform))) {
      if (item.is_open)
        run_boxed(table, item, kernel, lanes, is_uniform);
      else if (!run_flat(table, item, kernel, lanes, is_uniform))
        run_static(table, item, kernel, lanes, is_uniform);
      if (is_same) cache_.remember(table, item);
    }
  }
  if (options_.check_finite) check_finite(table, item);
}

void OperatorRunner::run(Table& table, const FusedItem& item) {
  Fused::Lanes given[Fused::kMostRegisters], outputs[Fused::kMostRegisters];
  if (!run_pieces(item, prepare(table, item, given, outputs), given, outputs).fault) return;
  for (int32_t op : item.ops) run(table, plan_.ops[z(op)]);  // one by one: the one at fault throws
  throw Stop{Stop::Kind::Internal, position.node};
}

/// Find the operands of a fused pass and make room for its results; returns the number of lanes to run. Operators whose
/// result is the same for all lanes, while others vary, run here.
int64_t OperatorRunner::prepare(Table& table, const FusedItem& item, Fused::Lanes* given, Fused::Lanes* outputs) {
  position = {plan_.ops[z(item.ops[0])].node, -1};
  const size_t inputs = item.inputs.size();
  uint64_t varying = 0;  // inputs that are not the same for all lanes
  for (size_t k = 0; k < inputs; ++k) {
    const Column column = tables_.column(table, item.inputs[k].from);
    given[k] = {column.data + item.inputs[k].offset, column.stride};
    if (column.stride != 0) varying |= uint64_t{1} << k;
  }
  for (size_t k = inputs; k < item.program.types().size(); ++k) given[k].data = nullptr;
  for (size_t k = 0; k < item.ops.size(); ++k) {
    const OpItem& op = plan_.ops[z(item.ops[k])];
    if (table.lanes == 1 || varying == 0 || (item.depends[k] & varying) != 0) {
      stats_.fired[z(op.node)] += table.lanes;
      continue;
    }
    run(table, op);
    if (item.results[k] >= 0) given[item.results[k]] = {table.columns[op.outputs[0]].data, 0};
  }
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    const FusedItem::Output& output = item.outputs[k];
    outputs[k].data = nullptr;
    const bool is_uniform = (output.depends & varying) == 0;
    if (is_uniform && varying != 0 && table.lanes > 1) continue;  // computed above
    if (output.is_first) room(table, output.to, is_uniform);
    outputs[k] = {table.columns[output.to].data + output.offset, table.region->slots[z(output.to)].bytes};
  }
  return varying == 0 ? 1 : table.lanes;
}

/// Run a fused pass piece by piece, perhaps on several threads.
Fused::Stop OperatorRunner::run_pieces(const FusedItem& item, int64_t lanes, const Fused::Lanes* given,
                                       const Fused::Lanes* outputs) {
  const Access access;
  if (lanes * item.bytes <= kPiece) {
    tables_.scratch().worked(lanes * item.bytes);
    return item.program.run(lanes, given, outputs, tables_.scratch());
  }
  const size_t registers = item.program.types().size();
  std::mutex mutex;
  Fused::Stop first{};
  int64_t first_at = INT64_MAX;
  in_pieces(lanes, item.bytes, 1, [&](int64_t done, int64_t now, Scratch& scratch) {
    Fused::Lanes from[Fused::kMostRegisters], to[Fused::kMostRegisters];
    const auto moved = [done](Fused::Lanes at) {
      if (at.data != nullptr) at.data += done * at.stride;
      return at;
    };
    std::transform(given, given + registers, from, moved);
    std::transform(outputs, outputs + item.outputs.size(), to, moved);
    const Fused::Stop stop = item.program.run(now, from, to, scratch);
    const std::lock_guard lock(mutex);
    if (!stop.fault || done > first_at) return;
    first = stop;
    first_at = done;
  });
  return first;
}

/// Prepare an elementwise operator whose operands are as flat as its result; makes room for the result.
bool OperatorRunner::find_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform,
                               FlatStep& step) {
  const Elementwise* each = kernel.elementwise();
  if (each == nullptr || item.outputs[0] == kNoSlot) return false;
  const Slot& out = table.region->slots[z(item.outputs[0])];
  const std::byte* data[3] = {nullptr, nullptr, nullptr};
  int mask = 0;
  for (size_t k = 0; k < item.inputs.size(); ++k) {
    const Slot& slot = tables_.slot(*table.region, item.inputs[k]);
    const Column column = tables_.column(table, item.inputs[k]);
    data[k] = column.data;
    const bool is_single = slot.count == 1 && column.stride == 0;
    if (!is_single && (slot.count != out.count || slot.rank() != out.rank())) return false;
    if (!is_single && column.stride != slot.bytes && lanes > 1) return false;
    if (is_single && (out.count > 1 || lanes > 1)) mask |= 1 << k;
  }
  const Flat flat = each->flat[mask];
  if (flat == nullptr) return false;
  const int64_t count = lanes * out.count;
  if (each->scan != nullptr) {
    const Access access;
    const int64_t bad = each->scan(data[1], (mask & 2) != 0 ? 1 : count);
    if (bad >= 0) fault(table, item, out.count == 0 ? 0 : bad / out.count);
  }
  step.flat = flat;
  step.count = out.count;
  step.out = room(table, item.outputs[0], is_uniform);
  step.bytes = step.size = size_of(each->output);
  for (int k = 0; k < 3; ++k) {
    step.data[k] = data[k];
    step.sizes[k] = (mask >> k & 1) != 0 || data[k] == nullptr ? 0 : size_of(each->inputs[k]);
    step.bytes += step.sizes[k];
  }
  return true;
}

bool OperatorRunner::run_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform) {
  FlatStep step;
  if (!find_flat(table, item, kernel, lanes, is_uniform, step)) return false;
  const Access access;
  constexpr int64_t kRun = 64;  // elements: pieces are multiples of it
  const int64_t count = lanes * step.count;
  in_pieces((count + kRun - 1) / kRun, kRun * step.bytes, 1, [&](int64_t done, int64_t now, Scratch&) {
    step.run(done * kRun, std::min(now * kRun, count - done * kRun));
  });
  return true;
}

/// If the result can be a view of a part of its operand: the offset of its first element; else -1. A part of a row has
/// gaps between lanes, so only calls may read it.
int64_t OperatorRunner::part_at(const Table& table, const OpItem& item, const Kernel& kernel) const {
  if (item.inputs.size() != 1 || item.outputs[0] == kNoSlot) return -1;
  const Slot& from = tables_.slot(*table.region, item.inputs[0]);
  const Slot& to = table.region->slots[z(item.outputs[0])];
  if (from.count != to.count && (!to.is_passed || from.offset >= 0)) return -1;
  return kernel.part_at({nullptr, 0, from.shape.data(), from.rank(), from.dtype});
}

/// Are the operands already contiguous, as in the result?
bool OperatorRunner::are_row(const Table& table, const OpItem& item, const Kernel& kernel) const {
  if (item.inputs.size() < 2 || item.outputs[0] == kNoSlot) return false;
  const Slot& to = table.region->slots[z(item.outputs[0])];
  if (to.offset >= 0 || !kernel.is_row({nullptr, 0, to.shape.data(), to.rank(), to.dtype})) return false;
  const Column first = tables_.peek(table, item.inputs[0]);
  if (first.block == nullptr || first.stride != to.bytes) return false;
  const std::byte* next = first.data;
  for (Operand x : item.inputs) {
    const Column column = tables_.peek(table, x);
    if (column.block != first.block || column.stride != first.stride || column.data != next) return false;
    next += tables_.slot(*table.region, x).bytes;
  }
  return true;
}

/// Is the result a view of its operands?
bool OperatorRunner::is_view(const Table& table, const OpItem& item, const Kernel& kernel) const {
  return part_at(table, item, kernel) >= 0 || are_row(table, item, kernel);
}

/// If so, make it one.
bool OperatorRunner::share(Table& table, const OpItem& item, const Kernel& kernel) {
  if (!is_view(table, item, kernel)) return false;
  const Slot& slot = tables_.slot(*table.region, item.inputs[0]);
  Column column = tables_.column(table, item.inputs[0]);
  if (item.inputs.size() == 1) column.data += part_at(table, item, kernel) * size_of(slot.dtype);
  tables_.take(table, item.outputs[0], slot, column, nullptr, table.lanes);
  return true;
}

/// Bytes that a kernel reads and writes for each lane.
int64_t OperatorRunner::bytes_of(const Kernel& kernel, std::span<const View> inputs, std::span<const View> outputs) {
  int64_t bytes = 64, shared = 0;
  for (const auto& views : {inputs, outputs})
    for (const View& view : views) (view.stride == 0 ? shared : bytes) += view.bytes();
  return kernel.is_product() ? bytes + shared / kReused : bytes;
}

int64_t OperatorRunner::fewest_of(const Kernel& kernel, std::span<const View> inputs) {
  if (!kernel.is_product()) return 1;
  int64_t shared = 0;
  for (const View& view : inputs)
    if (view.stride == 0) shared += view.bytes();
  return fewest_rows(shared);
}

/// Run a kernel on all lanes.
Fault OperatorRunner::run_lanes(const Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes,
                                std::span<const View> inputs, std::span<const View> outputs) {
  const Access access;
  OperatorCache cache(cache_, table, item);
  const int64_t bytes = bytes_of(kernel, inputs, outputs);
  if (bytes * lanes <= kPiece) {
    const Fault found = kernel.run(lanes, inputs.data(), outputs.data(), tables_.scratch(), cache);
    if (!found) tables_.scratch().worked(lanes * bytes);
    return found;
  }
  std::mutex mutex;
  Fault first;
  in_pieces(lanes, bytes, fewest_of(kernel, inputs), [&](int64_t done, int64_t now, Scratch& scratch) {
    std::vector<View> from(inputs.begin(), inputs.end()), to(outputs.begin(), outputs.end());
    for (auto* views : {&from, &to})
      for (View& view : *views) view.data = view.lane<std::byte>(done);
    const Fault found = kernel.run(now, from.data(), to.data(), scratch, cache);
    if (!found) return;
    const std::lock_guard lock(mutex);
    if (!first || done + found.lane < first.lane) first = {found.code, done + found.lane};
  });
  return first;
}

/// Prepare the operands and results of a kernel for all lanes; makes room for the results.
void OperatorRunner::find_views(Table& table, const OpItem& item, bool is_uniform, std::vector<View>& inputs,
                                std::vector<View>& outputs) {
  inputs.clear();
  for (Operand x : item.inputs) {
    const Slot& slot = tables_.slot(*table.region, x);
    const Column column = tables_.column(table, x);
    inputs.push_back(
        {column.data, is_uniform ? slot.bytes : column.stride, slot.shape.data(), slot.rank(), slot.dtype});
  }
  outputs.clear();
  for (int32_t to : item.outputs) {
    if (to == kNoSlot) throw Stop{Stop::Kind::Internal, item.node};
    const Slot& slot = table.region->slots[z(to)];
    std::byte* data = room(table, to, is_uniform);
    outputs.push_back({data, slot.bytes, slot.shape.data(), slot.rank(), slot.dtype});
  }
}

void OperatorRunner::run_static(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes,
                                bool is_uniform) {
  find_views(table, item, is_uniform, inputs_, outputs_);
  if (const Fault found = run_lanes(table, item, kernel, lanes, inputs_, outputs_)) fault(table, item, found.lane);
}

/// Change the first operand where it is, if nobody else holds it, and let the result have its memory. After a fault the
/// lanes before that one have changed; nobody sees them.
bool OperatorRunner::run_in_place(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes,
                                  bool is_uniform) {
  constexpr int64_t kFew = 1024;  // bytes of a lane, up to which it is quicker to copy lanes and run them together
  const int32_t x = item.inputs[0], to = item.outputs[0];
  const Slot& from = table.region->slots[z(x)];
  const Slot& out = table.region->slots[z(to)];
  if (from.home != out.home || from.is_dynamic != out.is_dynamic || from.shape != out.shape) return false;
  if (!tables_.is_alone(table, x, is_uniform)) return false;
  const Access access;
  const auto run = [&](int64_t first, int64_t count) {
    const View& changed = inputs_[0];
    outputs_.assign(1, {changed.data, changed.bytes(), changed.shape, changed.rank, changed.dtype});
    if (const Fault found = kernel.run(count, inputs_.data(), outputs_.data(), tables_.scratch()))
      fault(table, item, first + found.lane);
  };
  inputs_.clear();
  if (!item.is_open) {
    for (Operand k : item.inputs) {
      const Slot& slot = tables_.slot(*table.region, k);
      const Column column = tables_.column(table, k);
      inputs_.push_back({column.data, column.stride, slot.shape.data(), slot.rank(), slot.dtype});
    }
    run(0, lanes);
  } else {
    if (lanes > 1 && tables_.view(table, x, 0).bytes() < kFew) return false;
    shapes_.resize(1);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      inputs_.clear();
      for (Operand k : item.inputs) inputs_.push_back(tables_.view(table, k, lane));
      if (kernel.shape(inputs_.data(), shapes_.data())) fault(table, item, lane);
      run(lane, 1);
    }
  }
  tables_.move(table, x, to, is_uniform);
  stats_.changed += table.lanes;
  return true;
}

/// Do all lanes certainly have the same shapes? A cheap test, which may fail though they do.
bool OperatorRunner::is_alike(const Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes) const {
  if (lanes == 1) return true;
  for (size_t k = 0; k < item.inputs.size(); ++k)
    if ((tables_.slot(*table.region, item.inputs[k]).is_dynamic || decides(kernel, k)) &&
        tables_.column(table, item.inputs[k]).stride != 0)
      return false;
  return true;
}

/// Add the shapes of a lane's results to a key. Few lanes have the same mask, but many have masks of one count.
void OperatorRunner::add_shapes(const Table& table, const OpItem& item, const Kernel& kernel, int64_t at,
                                std::vector<int64_t>& key) {
  inputs_.clear();
  for (Operand x : item.inputs) inputs_.push_back(tables_.view(table, x, at));
  shapes_.resize(item.outputs.size());
  const Access access;
  if (kernel.shape(inputs_.data(), shapes_.data())) {
    key.push_back(-1 - at);  // it faults, alone
    return;
  }
  for (const Shape& shape : shapes_) key.insert(key.end(), shape.sizes, shape.sizes + shape.rank);
}

void OperatorRunner::run_boxed(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform) {
  if (is_alike(table, item, kernel, lanes)) {
    run_group(table, item, kernel, nullptr, lanes, is_uniform);
    return;
  }
  std::vector<Group> groups;
  for (int64_t k = 0; k < lanes; ++k) {
    std::vector<int64_t> key;
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      const Slot& slot = tables_.slot(*table.region, item.inputs[i]);
      const Column column = tables_.column(table, item.inputs[i]);
      if (slot.is_dynamic) key.push_back(reinterpret_cast<int64_t>(column.lane<Box>(k)->shape));
      if (!decides(kernel, i)) continue;
      if (slot.rank() > 0) {
        add_shapes(table, item, kernel, k, key);
        continue;
      }
      const View view = tables_.view(table, item.inputs[i], k);
      const int64_t bytes = view.bytes();
      const size_t first = key.size();
      key.resize(first + z((bytes + 7) / 8), 0);
      lanes::copy(key.data() + first, view.data, bytes);
    }
    Group* found = nullptr;
    for (size_t g = groups.size(); g-- > 0 && found == nullptr;)
      if (groups[g].key == key) found = &groups[g];
    if (found == nullptr) {
      groups.push_back({std::move(key), {}});
      found = &groups.back();
    }
    found->lanes.push_back(static_cast<int32_t>(k));
  }
  for (const Group& group : groups)
    run_group(table, item, kernel, groups.size() == 1 ? nullptr : group.lanes.data(),
              static_cast<int64_t>(group.lanes.size()), is_uniform);
}

/// Run a kernel on lanes whose operands have the same shapes: those in `index`, or all.
void OperatorRunner::run_group(Table& table, const OpItem& item, const Kernel& kernel, const int32_t* index,
                               int64_t lanes, bool is_uniform) {
  const bool is_all = index == nullptr;
  const auto at = [index](int64_t k) { return index != nullptr ? index[k] : k; };
  struct Temporary {  // blocks to drop at the end
    Pool& pool;
    std::vector<Block*>& blocks;
    ~Temporary() {
      for (Block* block : blocks) pool.drop(block);
      blocks.clear();
    }
  } temporary{tables_.pool, blocks_};
  inputs_.clear();
  for (Operand x : item.inputs) {
    const Slot& slot = tables_.slot(*table.region, x);
    const Column column = tables_.column(table, x);
    const auto side_by_side = [&](View& view, int64_t bytes, auto&& data) {
      Block* block = tables_.pool.take(bytes * lanes, slot.home);
      blocks_.push_back(block);
      lanes::join(block->data(), lanes, bytes, data);
      view.data = block->data();
      view.stride = bytes;
    };
    if (!slot.is_dynamic) {
      View view{column.data, is_uniform ? slot.bytes : column.stride, slot.shape.data(), slot.rank(), slot.dtype};
      if (!is_all && column.stride != 0)
        side_by_side(view, slot.bytes, [&](int64_t k) { return column.lane<std::byte>(at(k)); });
      inputs_.push_back(view);
      continue;
    }
    const Box* first = column.lane<Box>(at(0));
    View view{first->data, 0, first->shape, slot.rank(), slot.dtype};
    const int64_t bytes = view.bytes();
    bool is_same = true, is_row = lanes == 1 || column.stride != 0;
    for (int64_t k = 1; k < lanes && column.stride != 0 && (is_same || is_row); ++k) {
      const std::byte* data = column.lane<Box>(at(k))->data;
      is_same = is_same && data == first->data;
      is_row = is_row && data == first->data + k * bytes;
    }
    if (is_row)
      view.stride = bytes;
    else if (!is_same)
      side_by_side(view, bytes, [&](int64_t k) { return column.lane<Box>(at(k))->data; });
    inputs_.push_back(view);
  }
  shapes_.resize(item.outputs.size());
  {
    const Access access;
    if (kernel.shape(inputs_.data(), shapes_.data())) fault(table, item, at(0));
  }
  outputs_.clear();
  made_.clear();
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    if (item.outputs[k] == kNoSlot) throw Stop{Stop::Kind::Internal, item.node};
    const Slot& slot = table.region->slots[z(item.outputs[k])];
    const int64_t bytes = array_bytes(slot.dtype, shapes_[k].sizes, shapes_[k].rank);
    if (!is_shaped(slot, shapes_[k].sizes, shapes_[k].rank)) throw Stop{Stop::Kind::Internal, item.node};
    if (!slot.is_dynamic && is_all) {
      made_.push_back(nullptr);
      outputs_.push_back(
          {tables_.own(table, item.outputs[k], is_uniform), slot.bytes, slot.shape.data(), slot.rank(), slot.dtype});
      continue;
    }
    Block* block = tables_.pool.take(lanes_bytes(bytes, lanes), slot.home);
    blocks_.push_back(block);
    made_.push_back(block);
    const int64_t* shape = tables_.shape({shapes_[k].sizes, z(shapes_[k].rank)});
    outputs_.push_back({block->data(), bytes, shape, slot.rank(), slot.dtype});
  }
  if (const Fault found = run_lanes(table, item, kernel, lanes, inputs_, outputs_)) fault(table, item, at(found.lane));
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    if (made_[k] == nullptr) continue;
    const Slot& slot = table.region->slots[z(item.outputs[k])];
    std::byte* to = tables_.own(table, item.outputs[k], is_uniform);
    if (!slot.is_dynamic) {
      lanes::scatter(to, index, made_[k]->data(), slot.bytes, lanes, slot.bytes);
      continue;
    }
    made_[k]->refs += lanes;
    for (int64_t n = 0; n < lanes; ++n)
      reinterpret_cast<Box*>(to)[at(n)] = {made_[k], made_[k]->data() + n * outputs_[k].stride, outputs_[k].shape};
  }
}

/// An assert or a raise: a fault in the first lane where not all elements of the condition are true.
void OperatorRunner::check(Table& table, const OpItem& item, int64_t lanes) {
  for (int64_t k = 0; k < lanes; ++k) {
    const View condition = tables_.view(table, item.inputs[0], k);
    if (condition.dtype != DType::Bool) throw Stop{Stop::Kind::Internal, item.node};
    const uint8_t *data = condition.lane<uint8_t>(0), *end = data + condition.count();
    if (std::find(data, end, 0) != end) fault(table, item, k);
  }
}

void OperatorRunner::run_host(Table& table, const OpItem& item, int64_t lanes, bool is_uniform) {
  for (int64_t k = 0; k < lanes; ++k) {
    lane = k;
    std::vector<View> inputs;
    for (Operand x : item.inputs) inputs.push_back(tables_.view(table, x, k));
    std::vector<Value> outputs(item.outputs.size());
    {
      const Access access;
      host_.apply(item.node, inputs, outputs);
    }
    tables_.scratch().worked(Scratch::kLook / 256);  // the host is slow
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (item.outputs[i] == kNoSlot) continue;
      const Slot& slot = table.region->slots[z(item.outputs[i])];
      std::byte* to = tables_.own(table, item.outputs[i], is_uniform);
      const Value& value = outputs[i];
      const int rank = static_cast<int>(value.shape.size());
      const int64_t bytes = array_bytes(slot.dtype, value.shape.data(), rank);
      if (!is_shaped(slot, value.shape.data(), rank) || z(bytes) != value.bytes.size())
        throw Stop{Stop::Kind::Internal, item.node};
      if (slot.is_dynamic) {
        Block* block = tables_.pool.take(bytes, slot.home);
        lanes::copy(block->data(), value.bytes.data(), bytes);
        reinterpret_cast<Box*>(to)[k] = {block, block->data(), tables_.shape(value.shape)};
      } else {
        lanes::copy(to + k * slot.bytes, value.bytes.data(), bytes);
      }
    }
  }
}

void OperatorRunner::check_finite(const Table& table, const OpItem& item) {
  const Access access;
  for (int32_t to : item.outputs) {
    if (to == kNoSlot) continue;
    const int64_t lanes = table.columns[to].stride == 0 ? 1 : table.lanes;
    for (int64_t k = 0; k < lanes; ++k) {
      const View view = tables_.view(table, to, k);
      if (is_finite(view)) continue;
      lane = k;
      throw stop_of(Stop::Kind::NotFinite, item.node, {&view, 1});
    }
  }
}

}  // namespace undertow
