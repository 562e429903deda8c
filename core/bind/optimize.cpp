// Parameter updates for Python: results are written to arrays of the caller.
#include "undertow/optimize.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "host.h"
#include "interpreter.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using Place = nb::ndarray<nb::c_contig, nb::device::cpu>;  // an array to write to

/// The number of the update rule with this name, this many arrays and settings; it is the same for every dtype.
int number_of(const Functions& isa, const std::string& name, size_t arrays, size_t settings) {
  const UpdateRule* rules = isa.updates[static_cast<int>(DType::F32)];
  for (int k = 0; rules[k].name != nullptr; ++k)
    if (name == rules[k].name && arrays == static_cast<size_t>(rules[k].slots) + 1 &&
        settings == static_cast<size_t>(rules[k].settings))
      return k;
  throw nb::value_error("there is no such update, or not of so many values");
}

/// One parameter with its slots, its gradient, and the arrays that the results go to; a sparse update is in place.
struct Parameter {
  DType dtype = DType::F32;
  int64_t width = 0, length = 0;  // elements of a row, and rows, if the gradient is sparse
  bool is_sparse = false;
  Array gradient;
  std::vector<int64_t> indices;
  std::vector<Array> values;  // the parameter, then its slots; empty if they are updated in place
  std::vector<Place> places;
};

template <class A, class B>
bool are_alike(const A& a, const B& b) {
  if (a.ndim() != b.ndim() || a.dtype() != b.dtype()) return false;
  for (size_t k = 0; k < a.ndim(); ++k)
    if (a.shape(k) != b.shape(k)) return false;
  return true;
}

/// The indices of rows. False if they are not integers or one is out of range.
bool take_indices(const nb::handle& given, int64_t length, std::vector<int64_t>& out) {
  Array found;
  if (!nb::try_cast(given, found, false)) return false;
  out.resize(found.size());
  if (found.dtype() == nb::dtype<int64_t>())
    std::copy_n(static_cast<const int64_t*>(found.data()), out.size(), out.begin());
  else if (found.dtype() == nb::dtype<int32_t>())
    std::copy_n(static_cast<const int32_t*>(found.data()), out.size(), out.begin());
  else
    return false;
  return std::all_of(out.begin(), out.end(), [&](int64_t k) { return k >= -length && k < length; });
}

/// Arrays of one dtype and shape. False if something is not an array, or differs from the others.
template <class A>
bool take_arrays(const nb::handle& given, std::vector<A>& out) {
  for (const nb::handle value : given) {
    A array;
    if (!nb::try_cast(value, array, false)) return false;
    if (!out.empty() && !are_alike(array, out[0])) return false;
    out.push_back(std::move(array));
  }
  return !out.empty();
}

/// The gradient of a parameter: an array, or a pair of indices and rows. False if it does not fit.
/// An array that is not C-contiguous is copied.
template <class A>
bool take_gradient(const nb::handle& gradient, const A& parameter, Parameter& out) {
  if (parameter.dtype() == nb::dtype<double>())
    out.dtype = DType::F64;
  else if (parameter.dtype() != nb::dtype<float>())
    return false;
  out.is_sparse = nb::isinstance<nb::tuple>(gradient);
  if (!out.is_sparse) return nb::try_cast(gradient, out.gradient, true) && are_alike(out.gradient, parameter);
  const nb::tuple pair = nb::borrow<nb::tuple>(gradient);
  if (pair.size() != 2 || parameter.ndim() == 0) return false;
  out.length = static_cast<int64_t>(parameter.shape(0));
  out.width = out.length == 0 ? 0 : static_cast<int64_t>(parameter.size()) / out.length;
  if (!take_indices(pair[0], out.length, out.indices) || !nb::try_cast(pair[1], out.gradient, true)) return false;
  return out.gradient.dtype() == parameter.dtype() &&
         out.gradient.size() == out.indices.size() * static_cast<size_t>(out.width);
}

/// Do no two of the arrays overlap? Otherwise they cannot be updated in place one after the other.
bool are_apart(const std::vector<Parameter>& all) {
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const Parameter& one : all)
    for (const Place& place : one.places) {
      const auto* start = static_cast<const std::byte*>(place.data());
      spans.emplace_back(start, start + place.nbytes());
    }
  std::sort(spans.begin(), spans.end());
  for (size_t k = 1; k < spans.size(); ++k)
    if (spans[k].first < spans[k - 1].second) return false;
  return true;
}

bool fits(const nb::handle& gradient, const nb::handle& values) {
  Parameter one;
  return take_arrays(values, one.values) && take_gradient(gradient, one.values[0], one);
}

bool update(const std::string& name, const nb::list& gradients, const nb::list& values, const nb::list& places,
            const std::vector<double>& settings, const std::string& isa) {
  if (gradients.size() != values.size() || places.size() != values.size())
    throw nb::value_error("a gradient and places for each parameter");
  const size_t arrays = values.size() == 0 ? 0 : nb::len(nb::handle(values[0]));
  if (arrays == 0) return false;
  const Functions& chosen = isa_named(isa);
  const int number = number_of(chosen, name, arrays, settings.size());
  const bool in_place = values.is(places);
  std::vector<Parameter> all(values.size());
  for (size_t k = 0; k < all.size(); ++k) {
    Parameter& one = all[k];
    if (!take_arrays(places[k], one.places) || !take_gradient(gradients[k], one.places[0], one)) return false;
    if (one.places.size() != arrays) return false;
    if (in_place) continue;
    if (!take_arrays(values[k], one.values) || one.values.size() != arrays) return false;
    if (!are_alike(one.values[0], one.places[0])) return false;
  }
  if (!are_apart(all)) return false;
  const Unlocked unlocked;
  for (const Parameter& one : all) {
    const UpdateRule& rule = chosen.updates[static_cast<int>(one.dtype)][number];
    const void* in[kMostUpdated] = {};
    void* out[kMostUpdated] = {};
    for (size_t k = 0; k < arrays; ++k) {
      out[k] = one.places[k].data();
      in[k] = in_place ? out[k] : one.values[k].data();
    }
    if (one.is_sparse)
      update_rows(rule, one.dtype, static_cast<int64_t>(one.indices.size()), one.width, one.length, one.indices.data(),
                  one.gradient.data(), out, settings.data());
    else
      rule.update(static_cast<int64_t>(one.gradient.size()), one.gradient.data(), in, out, settings.data());
  }
  return true;
}

}  // namespace

void bind_optimize(nb::module_& module) {
  module.def("fits", &fits, nb::arg("gradient").none(), nb::arg("values"));
  module.def("update", &update, nb::arg("name"), nb::arg("gradients"), nb::arg("values"), nb::arg("places"),
             nb::arg("settings"), nb::arg("isa") = "");
}

}  // namespace undertow
