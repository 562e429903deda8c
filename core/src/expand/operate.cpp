// Operators that are more than one instruction: kernels, and the host.
#include <algorithm>

#include "executor.h"
#include "kernel/sizes.h"
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

}  // namespace

/// A view of an operand for a kernel. Scalars are copied to `scalars_`, which has the padding that kernels need.
template <bool kIsShared>
void Executor<kIsShared>::look(const Copy& copy, Operand x, size_t place, View& view) {
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

template <bool kIsShared>
View Executor<kIsShared>::view(const Copy& copy, Operand x, size_t place) {
  View found;
  look(copy, x, place, found);
  return found;
}

template <bool kIsShared>
void Executor<kIsShared>::operate(Copy& copy, const Step& step) {
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
    Block* array = make_array(memory_, shape, rank, slot.dtype);
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
template <bool kIsShared>
void Executor<kIsShared>::flat(Copy& copy, const Step& step) {
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

template <bool kIsShared>
void Executor<kIsShared>::ask_host(Copy& copy, const Step& step) {
  const Op& op = plan_.ops[z(step.extra)];
  for (size_t k = 0; k < op.inputs.size(); ++k) look(copy, op.inputs[k], k, inputs_[k]);
  std::vector<Value> outputs(op.outputs.size());
  common_.host.apply(step.node, {inputs_.data(), op.inputs.size()}, outputs);
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (op.outputs[k] == kNoSlot) continue;
    const ValueType& slot = copy.made_of->types[z(op.outputs[k])];
    const Value& value = outputs[k];
    if (!is_shaped(slot, value.shape.data(), static_cast<int>(value.shape.size())) ||
        z(array_bytes(slot.dtype, value.shape.data(), slot.rank())) != value.bytes.size())
      throw Stop{Stop::Kind::Internal, step.node};
    copy.slots[op.outputs[k]] = make_cell(memory_, value.bytes.data(), value.shape.data(), slot.rank(), slot.dtype);
  }
}

template <bool kIsShared>
void Executor<kIsShared>::fault(const Copy& copy, const Step& step) {
  const std::vector<Operand>& operands = plan_.ops[z(step.extra)].inputs;
  for (size_t k = 0; k < operands.size(); ++k) look(copy, operands[k], k, inputs_[k]);
  throw stop_of(Stop::Kind::Fault, step.node, {inputs_.data(), operands.size()});
}

template <bool kIsShared>
void Executor<kIsShared>::check_finite(const Copy& copy, const Step& step) {
  if (step.node < 0 || step.code == StepCode::Call || step.code == StepCode::Loop || step.code == StepCode::Map ||
      step.code == StepCode::Collect)
    return;
  for (int32_t to : plan_.ops[z(step.extra)].outputs) {
    if (to == kNoSlot) continue;
    const View found = view(copy, to, 0);
    if (!is_finite(found)) throw stop_of(Stop::Kind::NotFinite, step.node, {&found, 1});
  }
}

template class Executor<false>;
template class Executor<true>;

}  // namespace undertow::expand
