#include "operate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "undertow/elementwise.h"

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }

constexpr size_t kMostOperands = 64;

template <class T>
bool is_finite(const std::byte* data, int64_t count) {
  const T* values = reinterpret_cast<const T*>(data);
  for (int64_t k = 0; k < count; ++k)
    if (!std::isfinite(values[k])) return false;
  return true;
}

}  // namespace

Value value_of(const View& view) {
  Value value;
  value.shape.assign(view.shape, view.shape + view.rank);
  value.bytes.resize(z(view.bytes()));
  if (!value.bytes.empty()) std::memcpy(value.bytes.data(), view.data, value.bytes.size());
  return value;
}

View Operate::lane_view(const Table& table, Operand x, int64_t k) {
  const Slot& slot = tables_.slot(*table.region, x);
  const Column column = tables_.column(table, x);
  if (slot.is_dynamic) {
    const Box* box = column.lane<Box>(k);
    return {box->data, 0, box->shape, slot.rank(), slot.dtype};
  }
  return {column.data + k * column.stride, 0, slot.shape.data(), slot.rank(), slot.dtype};
}

void Operate::fault(const Table& table, const OpItem& item, int64_t at) {
  lane = at;
  Stop stop{Stop::Kind::Fault};
  stop.node = item.node;
  for (Operand x : item.inputs) {
    const View view = lane_view(table, x, at);
    stop.values.push_back(value_of(view));
    stop.types.push_back({view.dtype, view.rank});
  }
  throw stop;
}

void Operate::run(Table& table, const OpItem& item) {
  bool is_uniform = true;
  for (Operand x : item.inputs) is_uniform = is_uniform && (x < 0 || table.columns[x].stride == 0);
  if (item.is_effect) is_uniform = false;
  const int64_t lanes = is_uniform ? 1 : table.lanes;
  stats_.fired[z(item.node)] += table.lanes;
  doing = {item.node, -1};
  if (item.kernel < 0) {
    run_host(table, item, lanes, is_uniform);
  } else {
    const Kernel& kernel = *plan_.kernels[z(item.kernel)];
    if (item.is_open)
      run_boxed(table, item, kernel, lanes, is_uniform);
    else if (!share(table, item, kernel) && !run_flat(table, item, kernel, lanes, is_uniform))
      run_static(table, item, kernel, lanes, is_uniform);
  }
  if (options_.check_finite) check_finite(table, item);
}

void Operate::run(Table& table, const FusedItem& item) {
  doing = {plan_.ops[z(item.ops[0])].node, -1};
  const size_t inputs = item.inputs.size();
  Fused::Lanes given[Fused::kMostRegisters], outputs[Fused::kMostRegisters];
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
    run(table, op);  // the same for all lanes, as the others are not
    if (item.results[k] >= 0) given[item.results[k]] = {table.columns[op.outputs[0]].data, 0};
  }
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    const FusedItem::Output& output = item.outputs[k];
    outputs[k].data = nullptr;
    const bool is_uniform = (output.depends & varying) == 0;
    if (is_uniform && varying != 0 && table.lanes > 1) continue;  // it is there
    if (output.is_first) tables_.own(table, output.to, is_uniform);
    outputs[k] = {table.columns[output.to].data + output.offset, table.region->slots[z(output.to)].bytes};
  }
  if (!run_pieces(item, varying == 0 ? 1 : table.lanes, given, outputs).fault) return;
  for (int32_t op : item.ops) run(table, plan_.ops[z(op)]);  // the one at fault says so
  throw Stop{Stop::Kind::Internal, doing.node};
}

/// With a look at the clock now and then.
Fused::Stop Operate::run_pieces(const FusedItem& item, int64_t lanes, const Fused::Lanes* given,
                                const Fused::Lanes* outputs) {
  const int64_t most = std::max<int64_t>(kTick / item.bytes, 1);
  if (lanes <= most) {
    worked(lanes * item.bytes);
    return item.program.run(lanes, given, outputs, scratch_);
  }
  const size_t registers = item.program.types().size();
  std::vector<Fused::Lanes> now(given, given + registers), to(outputs, outputs + item.outputs.size());
  for (int64_t done = 0; done < lanes; done += most) {
    if (const Fused::Stop stop = item.program.run(std::min(most, lanes - done), now.data(), to.data(), scratch_);
        stop.fault)
      return stop;
    for (auto* all : {&now, &to})
      for (Fused::Lanes& at : *all)
        if (at.data != nullptr) at.data += most * at.stride;
    worked(most * item.bytes);
  }
  return {};
}

bool Operate::run_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform) {
  const Elementwise* each = kernel.elementwise();
  if (each == nullptr || item.outputs[0] == kNoSlot) return false;
  const Slot& out = table.region->slots[z(item.outputs[0])];
  const void* data[3] = {nullptr, nullptr, nullptr};
  int mask = 0;
  for (size_t k = 0; k < item.inputs.size(); ++k) {
    const Slot& slot = tables_.slot(*table.region, item.inputs[k]);
    const Column column = tables_.column(table, item.inputs[k]);
    data[k] = column.data;
    const bool is_single = slot.count == 1 && column.stride == 0;
    if (!is_single && (slot.count != out.count || slot.rank() != out.rank())) return false;
    if (!is_single && column.stride == 0 && lanes > 1) return false;
    if (is_single && (out.count > 1 || lanes > 1)) mask |= 1 << k;
  }
  const Flat flat = each->flat[mask];
  if (flat == nullptr) return false;
  const int64_t count = lanes * out.count;
  if (each->scan != nullptr) {
    const int64_t bad = each->scan(data[1], (mask & 2) != 0 ? 1 : count);
    if (bad >= 0) fault(table, item, out.count == 0 ? 0 : bad / out.count);
  }
  std::byte* to = tables_.own(table, item.outputs[0], is_uniform);
  int64_t sizes[3], bytes = size_of(each->output);
  for (int k = 0; k < 3; ++k)
    bytes += sizes[k] = (mask >> k & 1) != 0 || data[k] == nullptr ? 0 : size_of(each->inputs[k]);
  const int64_t most = std::max<int64_t>(kTick / bytes / 64 * 64, 64);
  for (int64_t done = 0; done < count; done += most) {
    const int64_t now = std::min(most, count - done);
    const auto from = [&](int k) { return static_cast<const std::byte*>(data[k]) + done * sizes[k]; };
    flat(from(0), from(1), from(2), to + done * size_of(each->output), now);
    worked(now * bytes);
  }
  return true;
}

/// The same elements in another shape are the same column.
bool Operate::share(Table& table, const OpItem& item, const Kernel& kernel) {
  if (item.inputs.size() != 1 || item.outputs[0] == kNoSlot) return false;
  const Slot& from = tables_.slot(*table.region, item.inputs[0]);
  const Slot& to = table.region->slots[z(item.outputs[0])];
  if (from.count != to.count || kernel.part_at({nullptr, 0, from.shape.data(), from.rank(), from.dtype}) != 0)
    return false;
  tables_.take(table, item.outputs[0], from, tables_.column(table, item.inputs[0]), nullptr, table.lanes);
  return true;
}

/// Run a kernel on all lanes, with a look at the clock now and then.
Fault Operate::run_lanes(const Kernel& kernel, int64_t lanes, std::span<const View> inputs,
                         std::span<const View> outputs) {
  int64_t bytes = 64;
  for (const auto& views : {inputs, outputs})
    for (const View& view : views) bytes += view.stride == 0 ? 0 : view.bytes();
  const int64_t most = bytes * lanes <= kTick ? lanes : std::max<int64_t>(1, kTick / bytes);
  View in[kMostOperands];
  std::vector<View> out(outputs.begin(), outputs.end());
  for (int64_t done = 0; done < lanes; done += most) {
    const auto moved = [&](View view) {
      view.data = view.lane<std::byte>(done);
      return view;
    };
    for (size_t k = 0; k < inputs.size(); ++k) in[k] = moved(inputs[k]);
    for (size_t k = 0; k < outputs.size(); ++k) out[k] = moved(outputs[k]);
    const int64_t now = std::min(most, lanes - done);
    if (const Fault found = kernel.run(now, in, out.data(), scratch_)) return {found.code, done + found.lane};
    worked(now * bytes);
  }
  return {};
}

void Operate::run_static(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform) {
  View inputs[kMostOperands];
  for (size_t k = 0; k < item.inputs.size(); ++k) {
    const Slot& slot = tables_.slot(*table.region, item.inputs[k]);
    const Column column = tables_.column(table, item.inputs[k]);
    inputs[k] = {column.data, is_uniform ? slot.bytes : column.stride, slot.shape.data(), slot.rank(), slot.dtype};
  }
  std::vector<View> outputs;
  for (int32_t to : item.outputs) {
    if (to == kNoSlot) throw Stop{Stop::Kind::Internal, item.node};
    const Slot& slot = table.region->slots[z(to)];
    std::byte* data = tables_.own(table, to, is_uniform);
    outputs.push_back({data, slot.bytes, slot.shape.data(), slot.rank(), slot.dtype});
  }
  if (const Fault found = run_lanes(kernel, lanes, {inputs, item.inputs.size()}, outputs))
    fault(table, item, found.lane);
}

void Operate::run_boxed(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform) {
  std::vector<Group> groups;
  // Where all lanes read the same open values (the arrays of a forest), they are one group: no keys are made.
  bool is_shared = lanes > 0;
  for (size_t i = 0; i < item.inputs.size() && is_shared; ++i) {
    const bool decides = ((kernel.deciding() >> i) & 1) != 0 || tables_.slot(*table.region, item.inputs[i]).is_dynamic;
    is_shared = !decides || tables_.column(table, item.inputs[i]).stride == 0;
  }
  if (is_shared) {
    groups.push_back({{}, std::vector<int32_t>(z(lanes))});
    std::iota(groups[0].lanes.begin(), groups[0].lanes.end(), 0);
  }
  for (int64_t k = 0; k < lanes && !is_shared; ++k) {
    std::vector<int64_t> key;
    for (size_t i = 0; i < item.inputs.size(); ++i) {
      const Slot& slot = tables_.slot(*table.region, item.inputs[i]);
      const Column column = tables_.column(table, item.inputs[i]);
      if (slot.is_dynamic) key.push_back(reinterpret_cast<int64_t>(column.lane<Box>(k)->shape));
      if (((kernel.deciding() >> i) & 1) != 0) {
        const View view = lane_view(table, item.inputs[i], k);
        const int64_t bytes = view.bytes();
        const size_t first = key.size();
        key.resize(first + z((bytes + 7) / 8), 0);
        if (bytes > 0) std::memcpy(key.data() + first, view.data, z(bytes));
      }
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
  for (const Group& group : groups) run_group(table, item, kernel, group, groups.size() == 1, is_uniform);
}

void Operate::run_group(Table& table, const OpItem& item, const Kernel& kernel, const Group& group, bool is_all,
                        bool is_uniform) {
  const int64_t lanes = static_cast<int64_t>(group.lanes.size());
  std::vector<Block*> temporary;
  struct Cleanup {
    Tables& tables;
    std::vector<Block*>& blocks;
    ~Cleanup() {
      for (Block* block : blocks) tables.pool.drop(block);
    }
  } cleanup{tables_, temporary};
  View inputs[kMostOperands];
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    const Slot& slot = tables_.slot(*table.region, item.inputs[i]);
    const Column column = tables_.column(table, item.inputs[i]);
    if (!slot.is_dynamic) {
      inputs[i] = {column.data, is_uniform ? slot.bytes : column.stride, slot.shape.data(), slot.rank(), slot.dtype};
      if (is_all || column.stride == 0) continue;
      Block* block = tables_.pool.take(slot.bytes * lanes);
      temporary.push_back(block);
      for (int64_t k = 0; k < lanes; ++k)
        if (slot.bytes > 0)
          std::memcpy(block->data() + k * slot.bytes, column.lane<std::byte>(group.lanes[z(k)]), z(slot.bytes));
      inputs[i].data = block->data();
      inputs[i].stride = slot.bytes;
      continue;
    }
    const Box* first = column.lane<Box>(group.lanes[0]);
    inputs[i] = {first->data, 0, first->shape, slot.rank(), slot.dtype};
    const int64_t bytes = inputs[i].bytes();
    bool is_same = true, is_row = column.stride != 0;
    for (int64_t k = 1; k < lanes && column.stride != 0 && (is_same || is_row); ++k) {
      const std::byte* data = column.lane<Box>(group.lanes[z(k)])->data;
      is_same = is_same && data == first->data;
      is_row = is_row && data == first->data + k * bytes;
    }
    if (lanes == 1 || is_row) {
      inputs[i].stride = bytes;
    } else if (!is_same) {
      Block* block = tables_.pool.take(bytes * lanes);
      temporary.push_back(block);
      for (int64_t k = 0; k < lanes; ++k)
        if (bytes > 0) std::memcpy(block->data() + k * bytes, column.lane<Box>(group.lanes[z(k)])->data, z(bytes));
      inputs[i].data = block->data();
      inputs[i].stride = bytes;
    }
  }
  std::vector<Shape> shapes(item.outputs.size());
  if (kernel.shape(inputs, shapes.data())) fault(table, item, group.lanes[0]);
  std::vector<View> outputs;
  std::vector<Block*> made;
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    if (item.outputs[k] == kNoSlot) throw Stop{Stop::Kind::Internal, item.node};
    const Slot& slot = table.region->slots[z(item.outputs[k])];
    const int64_t bytes = shapes[k].count() * size_of(slot.dtype);
    if (!slot.is_dynamic && !std::ranges::equal(std::span(shapes[k].sizes, z(shapes[k].rank)), slot.shape))
      throw Stop{Stop::Kind::Internal, item.node};
    if (!slot.is_dynamic && is_all) {
      made.push_back(nullptr);
      outputs.push_back(
          {tables_.own(table, item.outputs[k], is_uniform), slot.bytes, slot.shape.data(), slot.rank(), slot.dtype});
      continue;
    }
    Block* block = tables_.pool.take(bytes * lanes);
    temporary.push_back(block);
    made.push_back(block);
    const int64_t* shape = tables_.shape({shapes[k].sizes, z(shapes[k].rank)});
    outputs.push_back({block->data(), bytes, shape, slot.rank(), slot.dtype});
  }
  if (const Fault found = run_lanes(kernel, lanes, {inputs, item.inputs.size()}, outputs))
    fault(table, item, group.lanes[z(found.lane)]);
  for (size_t k = 0; k < item.outputs.size(); ++k) {
    if (made[k] == nullptr) continue;
    const Slot& slot = table.region->slots[z(item.outputs[k])];
    std::byte* to = tables_.own(table, item.outputs[k], is_uniform);
    for (int64_t n = 0; n < lanes; ++n) {
      std::byte* data = made[k]->data() + n * outputs[k].stride;
      if (slot.is_dynamic) {
        ++made[k]->refs;
        reinterpret_cast<Box*>(to)[group.lanes[z(n)]] = {made[k], data, outputs[k].shape};
      } else if (slot.bytes > 0) {
        std::memcpy(to + group.lanes[z(n)] * slot.bytes, data, z(slot.bytes));
      }
    }
  }
}

void Operate::run_host(Table& table, const OpItem& item, int64_t lanes, bool is_uniform) {
  for (int64_t k = 0; k < lanes; ++k) {
    lane = k;
    std::vector<View> inputs;
    for (Operand x : item.inputs) inputs.push_back(lane_view(table, x, k));
    std::vector<Value> outputs(item.outputs.size());
    host_.apply(item.node, inputs, outputs);
    worked(kTick / 256);  // the host is slow
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (item.outputs[i] == kNoSlot) continue;
      const Slot& slot = table.region->slots[z(item.outputs[i])];
      std::byte* to = tables_.own(table, item.outputs[i], is_uniform);
      const Value& value = outputs[i];
      int64_t count = 1;
      for (int64_t length : value.shape) count *= length;
      if (value.shape.size() != slot.shape.size() || z(count * size_of(slot.dtype)) != value.bytes.size())
        throw Stop{Stop::Kind::Internal, item.node};
      if (slot.is_dynamic) {
        Block* block = tables_.pool.take(static_cast<int64_t>(value.bytes.size()));
        if (!value.bytes.empty()) std::memcpy(block->data(), value.bytes.data(), value.bytes.size());
        reinterpret_cast<Box*>(to)[k] = {block, block->data(), tables_.shape(value.shape)};
      } else {
        if (value.bytes.size() != z(slot.bytes)) throw Stop{Stop::Kind::Internal, item.node};
        if (slot.bytes > 0) std::memcpy(to + k * slot.bytes, value.bytes.data(), z(slot.bytes));
      }
    }
  }
}

void Operate::check_finite(const Table& table, const OpItem& item) {
  for (int32_t to : item.outputs) {
    if (to == kNoSlot) continue;
    const Slot& slot = table.region->slots[z(to)];
    if (slot.dtype != DType::F32 && slot.dtype != DType::F64) continue;
    const int64_t lanes = table.columns[to].stride == 0 ? 1 : table.lanes;
    for (int64_t k = 0; k < lanes; ++k) {
      const View view = lane_view(table, to, k);
      const std::byte* data = static_cast<const std::byte*>(view.data);
      if (slot.dtype == DType::F32 ? is_finite<float>(data, view.count()) : is_finite<double>(data, view.count()))
        continue;
      lane = k;
      Stop stop{Stop::Kind::NotFinite};
      stop.node = item.node;
      stop.values.push_back(value_of(view));
      stop.types.push_back({view.dtype, view.rank});
      throw stop;
    }
  }
}

}  // namespace undertow
