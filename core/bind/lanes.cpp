// Dividing lanes at a branch and merging them again, for tests in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "arrays.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// Divide values between the sides of a branch, then merge them again. With `one_yes` or `one_no`, the first value of
/// that side stands for all its lanes.
nb::tuple part_and_meet(const Array& pred, const Array& values, bool one_yes, bool one_no, const std::string& isa) {
  const LaneFunctions& lanes = *isa_named(isa).lanes;
  if (pred.ndim() != 1 || values.ndim() != 1 || pred.itemsize() != 1)
    throw nb::value_error("lanes are elements of arrays with one axis, and what parts them are bools");
  const auto n = static_cast<int64_t>(pred.shape(0));
  const auto size = static_cast<int64_t>(values.itemsize());
  if (values.shape(0) != pred.shape(0) || (size != 4 && size != 8)) throw nb::value_error("values of 4 or 8 bytes");
  const auto* bytes = static_cast<const uint8_t*>(pred.data());
  std::vector<int32_t> index[2];
  for (auto& side : index) side.resize(static_cast<size_t>(n) + 16);
  const int64_t there = lanes.divide(bytes, n, index[0].data(), index[1].data());
  index[0].resize(static_cast<size_t>(there));
  index[1].resize(static_cast<size_t>(n - there));
  std::vector<std::byte> sides[2], met(static_cast<size_t>(n * size));
  for (int side = 0; side < 2; ++side) {
    sides[side].resize(static_cast<size_t>(n * size) + 64);
    lanes.part[size == 8](bytes, side == 0, n, values.data(), sides[side].data());
  }
  lanes.meet[size == 8](bytes, n, sides[0].data(), one_yes, sides[1].data(), one_no, met.data());
  nb::list numbers[2];
  for (int side = 0; side < 2; ++side)
    for (int32_t number : index[side]) numbers[side].append(number);
  const auto part = [&](int side) {
    return nb::bytes(sides[side].data(), index[side].size() * static_cast<size_t>(size));
  };
  return nb::make_tuple(numbers[0], numbers[1], part(0), part(1), nb::bytes(met.data(), met.size()));
}

}  // namespace

void bind_lanes(nb::module_& module) {
  module.def("part_and_meet", &part_and_meet, nb::arg("pred"), nb::arg("values"), nb::arg("one_yes"), nb::arg("one_no"),
             nb::arg("isa"));
}

}  // namespace undertow
