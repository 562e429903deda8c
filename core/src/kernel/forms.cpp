#include "kernel/forms.h"

#include <algorithm>
#include <vector>

namespace undertow::forms {
namespace {

bool is_integer(const Type& type) { return type.dtype == DType::I32 || type.dtype == DType::I64; }
bool is_float(const Type& type) { return type.dtype == DType::F32 || type.dtype == DType::F64; }
bool is_index(const Type& type) { return is_integer(type) && type.rank == 0; }

bool has(const Binding& binding, size_t inputs) {
  return binding.inputs.size() == inputs && binding.outputs.size() == 1;
}

/// Is the result of the dtype of the first operand, and of that rank?
bool gives(const Binding& binding, int rank) {
  return binding.outputs[0].dtype == binding.inputs[0].dtype && binding.outputs[0].rank == rank;
}

auto count(const OptionalInts& numbers, std::optional<int64_t> number) {
  return std::count(numbers.begin(), numbers.end(), number);
}

bool is_below(int64_t number, int64_t count) { return number >= 0 && number < count; }

/// Does `axis` name one of so many axes?
bool has_axis(const Binding& binding, int rank) { return is_below(binding.attrs.integer("axis"), rank); }

/// How many of so many axes `axes` names, each once; -1 where it names another.
int count_axes(const Binding& binding, int rank) {
  std::vector<bool> named(static_cast<size_t>(rank), false);
  const std::vector<int> axes = binding.attrs.axes("axes");
  for (int axis : axes) {
    if (!is_below(axis, rank) || named[static_cast<size_t>(axis)]) return -1;
    named[static_cast<size_t>(axis)] = true;
  }
  return static_cast<int>(axes.size());
}

/// Is there an integer for each size that `shape` leaves open, after the first operand, and a size for each axis of the
/// result? `least` is the smallest size: -1, of which there may be one, is what is left.
bool is_open(const Binding& binding, int64_t least = 0) {
  const OptionalInts& shape = binding.attrs.optionals("shape");
  const auto open = static_cast<size_t>(count(shape, {}));
  return has(binding, 1 + open) && static_cast<size_t>(binding.outputs[0].rank) == shape.size() &&
         std::ranges::all_of(binding.inputs.subspan(1), is_index) && count(shape, -1) <= 1 &&
         std::ranges::all_of(shape,
                             [&](const auto& size) { return !size || (*size >= least && *size <= kMostElements); });
}

/// Is there a start, a stop and a step for each axis?
bool has_cuts(const Binding& binding, int rank) {
  const auto axes = static_cast<size_t>(rank);
  const OptionalInts& steps = binding.attrs.optionals("steps");
  return binding.attrs.optionals("starts").size() == axes && binding.attrs.optionals("stops").size() == axes &&
         steps.size() == axes && count(steps, 0) == 0;
}

/// x, along one of its axes.
bool is_along(const Binding& binding) { return has(binding, 1) && has_axis(binding, binding.inputs[0].rank); }

}  // namespace

bool alike(const Binding& binding) { return has(binding, 1) && gives(binding, binding.inputs[0].rank); }

bool dim(const Binding& binding) {
  return is_along(binding) && binding.outputs[0].dtype == DType::I64 && binding.outputs[0].rank == 0;
}

bool reshape(const Binding& binding) { return is_open(binding, -1) && gives(binding, binding.outputs[0].rank); }

bool broadcast_to(const Binding& binding) {
  return is_open(binding) && gives(binding, binding.outputs[0].rank) &&
         binding.outputs[0].rank >= binding.inputs[0].rank;
}

bool sum_to(const Binding& binding) {
  return is_open(binding) && gives(binding, binding.outputs[0].rank) &&
         binding.outputs[0].rank <= binding.inputs[0].rank;
}

bool fill(const Binding& binding) {
  return is_open(binding) && gives(binding, binding.outputs[0].rank) && binding.inputs[0].rank == 0;
}

bool random_bits(const Binding& binding) {
  return is_open(binding) && binding.inputs[0].dtype == DType::I64 && binding.inputs[0].rank == 0 &&
         is_integer(binding.outputs[0]);
}

bool random_floats(const Binding& binding) {
  return is_open(binding) && binding.inputs[0].dtype == DType::I64 && binding.inputs[0].rank == 0 &&
         is_float(binding.outputs[0]);
}

bool transpose(const Binding& binding) {
  return alike(binding) && count_axes(binding, binding.inputs[0].rank) == binding.inputs[0].rank;
}

bool expand_dims(const Binding& binding) {
  if (!has(binding, 1) || !gives(binding, binding.outputs[0].rank)) return false;
  const int fresh = count_axes(binding, binding.outputs[0].rank);
  return fresh >= 0 && binding.inputs[0].rank + fresh == binding.outputs[0].rank;
}

bool squeeze(const Binding& binding) {
  if (!has(binding, 1)) return false;
  const int gone = count_axes(binding, binding.inputs[0].rank);
  return gone >= 0 && gives(binding, binding.inputs[0].rank - gone);
}

bool flip(const Binding& binding) { return softmax(binding); }

bool concat(const Binding& binding) {
  if (binding.inputs.empty() || binding.outputs.size() != 1) return false;
  const Type first = binding.inputs[0];
  return has_axis(binding, first.rank) && gives(binding, first.rank) &&
         std::ranges::all_of(binding.inputs,
                             [&](const Type& x) { return x.dtype == first.dtype && x.rank == first.rank; });
}

bool stack(const Binding& binding) {
  if (binding.inputs.empty() || binding.outputs.size() != 1) return false;
  const Type first = binding.inputs[0];
  return has_axis(binding, first.rank + 1) && gives(binding, first.rank + 1) &&
         std::ranges::all_of(binding.inputs,
                             [&](const Type& x) { return x.dtype == first.dtype && x.rank == first.rank; });
}

bool slice(const Binding& binding) { return alike(binding) && has_cuts(binding, binding.inputs[0].rank); }

bool unslice(const Binding& binding) {
  return is_open(binding) && gives(binding, binding.inputs[0].rank) && has_cuts(binding, binding.inputs[0].rank);
}

bool slice_at(const Binding& binding) {
  return has(binding, 2) && has_axis(binding, binding.inputs[0].rank) && gives(binding, binding.inputs[0].rank) &&
         is_index(binding.inputs[1]) && binding.attrs.integer("size") >= 0;
}

bool slice_between(const Binding& binding) {
  return has(binding, 3) && has_axis(binding, binding.inputs[0].rank) && gives(binding, binding.inputs[0].rank) &&
         is_index(binding.inputs[1]) && is_index(binding.inputs[2]) && binding.attrs.integer("step") != 0;
}

bool index(const Binding& binding) {
  if (binding.inputs.empty() || binding.outputs.size() != 1) return false;
  const int picked = count_axes(binding, binding.inputs[0].rank);
  return picked >= 0 && binding.inputs.size() == 1 + static_cast<size_t>(picked) &&
         gives(binding, binding.inputs[0].rank - picked) && std::ranges::all_of(binding.inputs.subspan(1), is_index);
}

bool take(const Binding& binding) {
  return has(binding, 2) && has_axis(binding, binding.inputs[0].rank) && is_integer(binding.inputs[1]) &&
         gives(binding, binding.inputs[0].rank - 1 + binding.inputs[1].rank);
}

bool compress(const Binding& binding) {
  return has(binding, 2) && has_axis(binding, binding.inputs[0].rank) && gives(binding, binding.inputs[0].rank) &&
         binding.inputs[1].dtype == DType::Bool && binding.inputs[1].rank == 1;
}

bool take_along_axis(const Binding& binding) {
  return has(binding, 2) && has_axis(binding, binding.inputs[0].rank) && is_integer(binding.inputs[1]) &&
         binding.inputs[1].rank == binding.inputs[0].rank && gives(binding, binding.inputs[0].rank);
}

namespace {

/// x, indices, and updates of so many axes.
bool adds(const Binding& binding, int updated) {
  return has_axis(binding, binding.inputs[0].rank) && is_integer(binding.inputs[1]) &&
         binding.inputs[2].dtype == binding.inputs[0].dtype && binding.inputs[2].rank == updated &&
         gives(binding, binding.inputs[0].rank);
}

/// x, and values for a part of it of so many axes.
bool replaces(const Binding& binding, int rank) {
  return binding.inputs[1].dtype == binding.inputs[0].dtype && binding.inputs[1].rank == rank &&
         gives(binding, binding.inputs[0].rank);
}

}  // namespace

bool scatter_add(const Binding& binding) {
  return has(binding, 3) && adds(binding, binding.inputs[0].rank - 1 + binding.inputs[1].rank);
}

bool add_along_axis(const Binding& binding) {
  return has(binding, 3) && adds(binding, binding.inputs[0].rank) && binding.inputs[1].rank == binding.inputs[0].rank;
}

bool put(const Binding& binding) {
  if (binding.inputs.size() < 2 || binding.outputs.size() != 1) return false;
  const int picked = count_axes(binding, binding.inputs[0].rank);
  return picked >= 0 && binding.inputs.size() == 2 + static_cast<size_t>(picked) &&
         replaces(binding, binding.inputs[0].rank - picked) && std::ranges::all_of(binding.inputs.subspan(2), is_index);
}

bool put_slice(const Binding& binding) {
  return has(binding, 2) && replaces(binding, binding.inputs[0].rank) && has_cuts(binding, binding.inputs[0].rank);
}

bool put_between(const Binding& binding) {
  return has(binding, 4) && has_axis(binding, binding.inputs[0].rank) && replaces(binding, binding.inputs[0].rank) &&
         is_index(binding.inputs[2]) && is_index(binding.inputs[3]) && binding.attrs.integer("step") != 0;
}

bool put_rows(const Binding& binding) {
  return has(binding, 3) && has_axis(binding, binding.inputs[0].rank) && replaces(binding, binding.inputs[0].rank) &&
         is_integer(binding.inputs[2]) && binding.inputs[2].rank == 1;
}

bool reduction(const Binding& binding) {
  if (!has(binding, 1)) return false;
  const int gone = count_axes(binding, binding.inputs[0].rank);
  return gone >= 0 && gives(binding, binding.inputs[0].rank - (binding.attrs.flag("keepdims") ? 0 : gone));
}

bool softmax(const Binding& binding) { return alike(binding) && count_axes(binding, binding.inputs[0].rank) >= 0; }

bool scan(const Binding& binding) { return is_along(binding) && gives(binding, binding.inputs[0].rank); }

bool fft(const Binding& binding) { return scan(binding) && (binding.attrs.flag("inverse"), true); }

bool recurrence(const Binding& binding) {
  return has(binding, 2) && has_axis(binding, binding.inputs[0].rank) && gives(binding, binding.inputs[0].rank) &&
         binding.inputs[1].rank == binding.inputs[0].rank && binding.inputs[1].dtype == binding.inputs[0].dtype;
}

bool sort(const Binding& binding) { return scan(binding) && (binding.attrs.flag("descending"), true); }

bool argsort(const Binding& binding) {
  return is_along(binding) && binding.outputs[0].dtype == DType::I64 &&
         binding.outputs[0].rank == binding.inputs[0].rank && (binding.attrs.flag("descending"), true);
}

bool position(const Binding& binding) {
  return is_along(binding) && binding.outputs[0].dtype == DType::I64 &&
         binding.outputs[0].rank == binding.inputs[0].rank - (binding.attrs.flag("keepdims") ? 0 : 1);
}

bool arange(const Binding& binding) {
  return has(binding, 3) && gives(binding, 1) && std::ranges::all_of(binding.inputs, [&](const Type& x) {
           return x.rank == 0 && x.dtype == binding.inputs[0].dtype;
         });
}

bool matmul(const Binding& binding) {
  if (!has(binding, 2) || binding.inputs[0].dtype != binding.inputs[1].dtype) return false;
  const int x = binding.inputs[0].rank, y = binding.inputs[1].rank;
  return x > 0 && y > 0 && gives(binding, std::max({x - 2, y - 2, 0}) + (x > 1 ? 1 : 0) + (y > 1 ? 1 : 0));
}

bool matrix(const Binding& binding) {
  return alike(binding) && binding.inputs[0].rank >= 2 && is_float(binding.inputs[0]);
}

bool eigh(const Binding& binding) { return matrix(binding) && (binding.attrs.flag("lower"), true); }

bool slogdet(const Binding& binding) {
  return has(binding, 1) && binding.inputs[0].rank >= 2 && gives(binding, binding.inputs[0].rank - 1);
}

bool solve(const Binding& binding) {
  return has(binding, 2) && binding.inputs[0].rank >= 2 && binding.inputs[1].rank == binding.inputs[0].rank &&
         binding.inputs[1].dtype == binding.inputs[0].dtype && gives(binding, binding.inputs[0].rank);
}

bool pinv(const Binding& binding) {
  return has(binding, 2) && binding.inputs[0].rank >= 2 && binding.inputs[1].rank == 0 &&
         binding.inputs[1].dtype == binding.inputs[0].dtype && gives(binding, binding.inputs[0].rank);
}

bool assertion(const Binding& binding) {
  return !binding.inputs.empty() && binding.inputs[0].dtype == DType::Bool && binding.outputs.size() == 1 &&
         binding.outputs[0].dtype == DType::Bool && binding.outputs[0].rank == 0;
}

bool broadcast(const Binding& binding) {
  const auto wider = [](const Type& a, const Type& b) { return a.rank < b.rank; };
  return !binding.inputs.empty() && binding.outputs.size() == 1 &&
         std::ranges::max_element(binding.inputs, wider)->rank == binding.outputs[0].rank;
}

}  // namespace undertow::forms
