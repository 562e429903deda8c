// Operators that are more than one instruction: kernels, the host, and sums over all activations below an entry.
#include <algorithm>

#include "kernel/sizes.h"
#include "run.h"
#include "run/values.h"
#include "undertow/elementwise.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

/// Field by field: copying a whole view right after building it stalls on store forwarding.
inline void set(View& view, void* data, int64_t stride, const int64_t* shape, int rank, DType dtype) {
  view.data = data;
  view.stride = stride;
  view.shape = shape;
  view.rank = rank;
  view.dtype = dtype;
}

bool is_alike(const View& a, const View& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

}  // namespace

/// A view of an operand for a kernel. Scalars are copied to `scalars_`, which has the padding that kernels need.
void Run::look(const Copy& copy, Operand x, size_t place, View& view) {
  const ValueType& slot = type(*copy.made_of, x);
  const uint64_t value = cell(copy, x);
  const int rank = slot.rank();
  if (!is_array(slot)) {
    std::byte* at = scalars_ + place * z(kScalar);
    std::memcpy(at, &value, 8);
    set(view, at, slot.bytes, nullptr, 0, slot.dtype);
    return;
  }
  Block* array = array_in(value);
  set(view, data_of(array, rank), slot.bytes, shape_of(array), rank, slot.dtype);
  if (slot.is_dynamic) view.stride = view.bytes();
}

View Run::view(const Copy& copy, Operand x, size_t place) {
  View found;
  look(copy, x, place, found);
  return found;
}

void Run::operate(Copy& copy, const Step& step) {
  const Op& op = plan_.ops[z(step.extra)];
  const Kernel& kernel = *plan_.kernels[z(op.kernel)];
  const size_t count = op.inputs.size();
  for (size_t k = 0; k < count; ++k) look(copy, op.inputs[k], k, inputs_[k]);
  if (!op.is_static && kernel.shape(inputs_.data(), shapes_.data())) fault(copy, step);
  for (size_t k = 0; k < op.outputs.size(); ++k) {
    const ValueType& slot = copy.made_of->types[z(op.outputs[k])];
    View& view = outputs_[k];
    const int rank = slot.rank();
    if (!op.is_static && !is_shaped(slot, shapes_[k].sizes, shapes_[k].rank))
      throw Stop{Stop::Kind::Internal, step.node};
    if (!is_array(slot)) {
      set(view, scalars_ + (count + k) * z(kScalar), slot.bytes, nullptr, 0, slot.dtype);
      continue;
    }
    const int64_t* shape = op.is_static ? slot.shape.data() : shapes_[k].sizes;
    Block* array = make_array(pool_, shape, rank, slot.dtype);
    copy.slots[op.outputs[k]] = as_cell(array);
    set(view, data_of(array, rank), slot.bytes, shape_of(array), rank, slot.dtype);
    if (!op.is_static) view.stride = view.bytes();
  }
  if (kernel.run(1, inputs_.data(), outputs_.data(), scratch_)) fault(copy, step);
  for (size_t k = 0; k < op.outputs.size(); ++k)
    if (!is_array(outputs_[k].rank, outputs_[k].dtype)) {
      uint64_t& slot = copy.slots[op.outputs[k]];
      slot = 0;
      std::memcpy(&slot, outputs_[k].data, z(outputs_[k].stride));
    }
}

/// An elementwise operator on scalars that has no step code: its kernel, on one element.
void Run::flat(Copy& copy, const Step& step) {
  const Op& op = plan_.ops[z(step.extra)];
  const Elementwise& each = *plan_.kernels[z(op.kernel)]->elementwise();
  const Operand operands[3] = {step.a, step.b, step.c};
  for (size_t k = 0; k < op.inputs.size(); ++k) {
    const uint64_t value = cell(copy, operands[k]);
    std::memcpy(scalars_ + k * z(kScalar), &value, 8);
  }
  if (each.scan != nullptr && each.scan(scalars_ + kScalar, 1) >= 0) fault(copy, step);
  std::byte* const out = scalars_ + op.inputs.size() * z(kScalar);
  each.flat[0](scalars_, scalars_ + kScalar, scalars_ + 2 * kScalar, out, 1);
  uint64_t& slot = copy.slots[step.to];
  slot = 0;
  std::memcpy(&slot, out, z(size_of(each.output)));
}

void Run::ask_host(Copy& copy, const Step& step) {
  const Op& op = plan_.ops[z(step.extra)];
  for (size_t k = 0; k < op.inputs.size(); ++k) look(copy, op.inputs[k], k, inputs_[k]);
  std::vector<Value> outputs(op.outputs.size());
  host_.apply(step.node, {inputs_.data(), op.inputs.size()}, outputs);
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (op.outputs[k] == kNoSlot) continue;
    const ValueType& slot = copy.made_of->types[z(op.outputs[k])];
    const Value& value = outputs[k];
    if (!is_shaped(slot, value.shape.data(), static_cast<int>(value.shape.size())) ||
        z(array_bytes(slot.dtype, value.shape.data(), slot.rank())) != value.bytes.size())
      throw Stop{Stop::Kind::Internal, step.node};
    copy.slots[op.outputs[k]] = make_cell(pool_, value.bytes.data(), value.shape.data(), slot.rank(), slot.dtype);
  }
}

void Run::fault(const Copy& copy, const Step& step) {
  const std::vector<Operand>& operands = plan_.ops[z(step.extra)].inputs;
  for (size_t k = 0; k < operands.size(); ++k) look(copy, operands[k], k, inputs_[k]);
  throw stop_of(Stop::Kind::Fault, step.node, {inputs_.data(), operands.size()});
}

void Run::check_finite(const Copy& copy, const Step& step) {
  if (step.node < 0 || step.code == StepCode::Call || step.code == StepCode::Loop || step.code == StepCode::Map ||
      step.code == StepCode::Collect)
    return;
  for (int32_t to : plan_.ops[z(step.extra)].outputs) {
    if (to == kNoSlot) continue;
    const View found = view(copy, to, 0);
    if (!is_finite(found)) throw stop_of(Stop::Kind::NotFinite, step.node, {&found, 1});
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Sums

/// What an entry was given: what is collected for it has its shape, or that of its rows.
View Run::given(const Entry* entry, int32_t index) {
  if (entry == nullptr || z(index) >= entry->sums.size()) throw Stop{Stop::Kind::Internal};
  const ValueType& slot = type(*entry->caller, entry->row->hoists[z(index)]);
  if (!is_array(slot)) return {nullptr, 0, nullptr, 0, slot.dtype};
  return view_of(array_in(entry->values[z(index)]), slot.rank(), slot.dtype);
}

void Run::collect(Copy& copy, const Collect& row) {
  const View whole = given(copy.entry, row.index);
  Sum& sum = copy.entry->sums[z(row.index)];
  if (row.is_rows) {
    const View numbers = view(copy, row.values[0], 0), rows = view(copy, row.values[1], 1);
    const bool fits = whole.rank > 0 && rows.dtype == whole.dtype && rows.rank == numbers.rank + whole.rank - 1 &&
                      std::equal(numbers.shape, numbers.shape + numbers.rank, rows.shape) &&
                      std::equal(whole.shape + 1, whole.shape + whole.rank, rows.shape + numbers.rank);
    if (!fits) throw Stop{Stop::Kind::Internal};
    const int64_t count = numbers.count(), bytes = rows.bytes();
    for (int64_t k = 0; k < count; ++k) sum.numbers.push_back(integer_at(numbers, 0, k));
    if (sum.rows == nullptr || sum.used + bytes > sum.rows->size - 192) {
      Block* more = pool_.take(std::max<int64_t>(256, 2 * (sum.used + bytes)));
      if (sum.used > 0) std::memcpy(more->data(), sum.rows->data(), z(sum.used));
      pool_.drop(sum.rows);
      sum.rows = more;
    }
    if (bytes > 0) std::memcpy(sum.rows->data() + sum.used, rows.data, z(bytes));
    sum.used += bytes;
    return;
  }
  const View more = view(copy, row.values[0], 0);
  if (!is_alike(more, whole)) throw Stop{Stop::Kind::Internal};
  const uint64_t value = cell(copy, row.values[0]);
  if (!sum.is_there) {
    sum.is_there = true;
    sum.cell = is_array(more.rank, more.dtype) ? shared(value) : value;
  } else if (!is_array(more.rank, more.dtype)) {
    add_floats(more.dtype, &sum.cell, &value, 1);
  } else {
    if (as_array(sum.cell)->refs != 1) {  // also read elsewhere: copy before adding to it
      Block* own = make_array(pool_, more.shape, more.rank, more.dtype);
      std::memcpy(data_of(own, more.rank), data_of(as_array(sum.cell), more.rank), z(more.bytes()));
      drop(pool_, as_array(sum.cell));
      sum.cell = as_cell(own);
    }
    add_floats(more.dtype, data_of(as_array(sum.cell), more.rank), more.data, more.count());
  }
}

void Run::collected(Copy& copy, const Collected& row) {
  Entry* entry = reinterpret_cast<Entry*>(copy.slots[row.entry]);
  const View like = view(copy, row.like, 0);
  if (!is_alike(like, given(entry, row.index))) throw Stop{Stop::Kind::Internal};
  Sum& sum = entry->sums[z(row.index)];
  if (row.to[1] != kNoSlot) {
    collected_rows(copy, row, sum, like);
    return;
  }
  if (!is_array(like.rank, like.dtype)) {
    copy.slots[row.to[0]] = sum.is_there ? sum.cell : 0;
    return;
  }
  if (sum.is_there && sum.numbers.empty()) {
    copy.slots[row.to[0]] = shared(sum.cell);
    return;
  }
  Block* total = make_array(pool_, like.shape, like.rank, like.dtype);
  copy.slots[row.to[0]] = as_cell(total);
  const View out = view_of(total, like.rank, like.dtype);
  if (out.bytes() == 0) return;
  if (sum.is_there)
    std::memcpy(out.data, data_of(as_array(sum.cell), like.rank), z(out.bytes()));
  else
    std::memset(out.data, 0, z(out.bytes()));
  if (like.rank == 0) return;
  const int64_t width = out.bytes() / like.shape[0];
  for (size_t k = 0; k < sum.numbers.size(); ++k) {
    const int64_t number = sum.numbers[k] < 0 ? sum.numbers[k] + like.shape[0] : sum.numbers[k];
    if (number < 0 || number >= like.shape[0]) throw Stop{Stop::Kind::Internal};
    add_floats(like.dtype, static_cast<std::byte*>(out.data) + number * width,
               sum.rows->data() + static_cast<int64_t>(k) * width, width / size_of(like.dtype));
  }
}

/// Indices and rows in the order in which they were collected, then every row of the sum of whole arrays, if any.
void Run::collected_rows(Copy& copy, const Collected& row, Sum& sum, const View& like) {
  const int64_t all = sum.is_there ? like.shape[0] : 0;
  const int64_t count = static_cast<int64_t>(sum.numbers.size()) + all;
  Block* numbers = make_array(pool_, &count, 1, DType::I64);
  if (row.to[0] != kNoSlot) copy.slots[row.to[0]] = as_cell(numbers);
  std::vector<int64_t> shape(like.shape, like.shape + like.rank);
  shape[0] = count;
  Block* rows = make_array(pool_, shape.data(), like.rank, like.dtype);
  copy.slots[row.to[1]] = as_cell(rows);
  auto* to = reinterpret_cast<int64_t*>(data_of(numbers, 1));
  to = std::copy(sum.numbers.begin(), sum.numbers.end(), to);
  for (int64_t k = 0; k < all; ++k) *to++ = k;
  std::byte* out = data_of(rows, like.rank);
  if (sum.used > 0) std::memcpy(out, sum.rows->data(), z(sum.used));
  if (all > 0 && like.bytes() > 0) std::memcpy(out + sum.used, data_of(as_array(sum.cell), like.rank), z(like.bytes()));
}

}  // namespace undertow::expand
