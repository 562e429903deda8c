// Updates of parameters for Python: on arrays that stay where they are.
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
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using Place = nb::ndarray<nb::c_contig, nb::device::cpu>;  // to be named to

int number_of(const std::string& name, size_t places, size_t settings) {
  const auto rows = update_rows();
  for (size_t k = 0; k < rows.size(); ++k)
    if (name == rows[k].name && places == static_cast<size_t>(rows[k].slots) + 1 &&
        settings == static_cast<size_t>(rows[k].settings))
      return static_cast<int>(k);
  throw nb::value_error("there is no such update, or not of so many values");
}

template <class A>
DType dtype_of(const A& array) {
  if (array.dtype() == nb::dtype<float>()) return DType::F32;
  if (array.dtype() == nb::dtype<double>()) return DType::F64;
  throw nb::value_error("only f32 and f64 are updated");
}

template <class A>
void check(const A& array, DType dtype, size_t count) {
  if (dtype_of(array) != dtype || array.size() != count) throw nb::value_error("arrays do not fit together");
}

void update(const std::string& name, const Array& gradient, const std::vector<Array>& values,
            const std::vector<Place>& places, const std::vector<double>& settings, const std::string& isa) {
  const int number = number_of(name, places.size(), settings.size());
  const DType dtype = dtype_of(gradient);
  Updated updated{};
  if (values.size() != places.size()) throw nb::value_error("a result for each value");
  for (size_t k = 0; k < places.size(); ++k) {
    check(values[k], dtype, gradient.size());
    check(places[k], dtype, gradient.size());
    updated.in[k] = values[k].data();
    updated.out[k] = places[k].data();
  }
  const Functions& chosen = isa_named(isa);
  const nb::gil_scoped_release release;
  chosen.updates[static_cast<int>(dtype)][number](static_cast<int64_t>(gradient.size()), gradient.data(), updated.in,
                                                  updated.out, settings.data());
}

bool update_some(const std::string& name, const Ints& indices, const Array& rows, const std::vector<Place>& tables,
                 const std::vector<double>& settings, const std::string& isa) {
  const int number = number_of(name, tables.size(), settings.size());
  const DType dtype = dtype_of(rows);
  const size_t count = indices.size(), length = tables[0].ndim() > 0 ? tables[0].shape(0) : 0;
  const size_t width = length == 0 ? 0 : tables[0].size() / length;
  if (rows.size() != count * width) throw nb::value_error("rows do not fit the table");
  void* places[kMostUpdated] = {};
  for (size_t k = 0; k < tables.size(); ++k) {
    check(tables[k], dtype, tables[0].size());
    places[k] = tables[k].data();
  }
  const Functions& chosen = isa_named(isa);
  const nb::gil_scoped_release release;
  return update_table(chosen, number, dtype, static_cast<int64_t>(count), static_cast<int64_t>(width),
                      static_cast<int64_t>(length), indices.data(), rows.data(), places, settings.data());
}

/// What one parameter of several needs to be updated where it stands.
struct Planned {
  DType dtype = DType::F32;
  size_t count = 0;  // elements; of a gradient by rows, rows
  int64_t width = 0, length = 0;
  bool is_sparse = false;
  Array gradient;
  std::vector<int64_t> indices;
  std::vector<Place> held;  // the parameter, then its slots
};

template <class A, class B>
bool are_alike(const A& a, const B& b) {
  if (a.ndim() != b.ndim() || a.dtype() != b.dtype()) return false;
  for (size_t k = 0; k < a.ndim(); ++k)
    if (a.shape(k) != b.shape(k)) return false;
  return true;
}

/// The numbers of rows, from 0 on; false where one is out of range, or they are no integers.
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

/// A parameter with its slots, and a gradient: an array, or a pair of numbers and rows. False where they do not fit.
bool plan_one(const nb::handle& gradient, const nb::handle& values, size_t places, Planned& out) {
  for (const nb::handle value : values) {
    Place place;
    if (!nb::try_cast(value, place, false)) return false;
    if (!out.held.empty() && !are_alike(place, out.held[0])) return false;
    out.held.push_back(std::move(place));
  }
  if (out.held.size() != places) return false;
  const Place& first = out.held[0];
  if (first.dtype() != nb::dtype<float>() && first.dtype() != nb::dtype<double>()) return false;
  out.dtype = dtype_of(first);
  out.is_sparse = nb::isinstance<nb::tuple>(gradient);
  if (!out.is_sparse) {
    out.count = first.size();
    return nb::try_cast(gradient, out.gradient, false) && are_alike(out.gradient, first);
  }
  const nb::tuple pair = nb::borrow<nb::tuple>(gradient);
  if (pair.size() != 2 || first.ndim() == 0) return false;
  out.length = static_cast<int64_t>(first.shape(0));
  out.width = out.length == 0 ? 0 : static_cast<int64_t>(first.size()) / out.length;
  if (!take_indices(pair[0], out.length, out.indices) || !nb::try_cast(pair[1], out.gradient, false)) return false;
  out.count = out.indices.size();
  return out.gradient.dtype() == first.dtype() && out.gradient.size() == out.count * static_cast<size_t>(out.width);
}

/// Has each array memory of its own? Others cannot be changed in place, one after the other.
bool are_apart(const std::vector<Planned>& all) {
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const Planned& one : all)
    for (const Place& place : one.held) {
      const auto* start = static_cast<const std::byte*>(place.data());
      spans.emplace_back(start, start + place.nbytes());
    }
  std::sort(spans.begin(), spans.end());
  for (size_t k = 1; k < spans.size(); ++k)
    if (spans[k].first < spans[k - 1].second) return false;
  return true;
}

bool update_all(const std::string& name, const nb::list& gradients, const nb::list& held,
                const std::vector<double>& settings, const std::string& isa) {
  if (gradients.size() != held.size()) throw nb::value_error("a gradient for each parameter");
  const size_t places = held.size() == 0 ? 0 : nb::len(nb::handle(held[0]));
  if (places == 0) return false;
  const int number = number_of(name, places, settings.size());
  std::vector<Planned> all(held.size());
  for (size_t k = 0; k < all.size(); ++k)
    if (!plan_one(gradients[k], held[k], places, all[k])) return false;
  if (!are_apart(all)) return false;
  const Functions& chosen = isa_named(isa);
  const nb::gil_scoped_release release;
  for (const Planned& one : all) {
    void* out[kMostUpdated] = {};
    for (size_t k = 0; k < places; ++k) out[k] = one.held[k].data();
    if (one.is_sparse)
      update_table(chosen, number, one.dtype, static_cast<int64_t>(one.count), one.width, one.length,
                   one.indices.data(), one.gradient.data(), out, settings.data());
    else
      chosen.updates[static_cast<int>(one.dtype)][number](static_cast<int64_t>(one.count), one.gradient.data(), out,
                                                          out, settings.data());
  }
  return true;
}

}  // namespace

void bind_optimize(nb::module_& module) {
  module.def("update", &update, nb::arg("name"), nb::arg("gradient"), nb::arg("values"), nb::arg("places"),
             nb::arg("settings"), nb::arg("isa") = "");
  module.def("update_rows", &update_some, nb::arg("name"), nb::arg("indices"), nb::arg("rows"), nb::arg("tables"),
             nb::arg("settings"), nb::arg("isa") = "");
  module.def("update_all", &update_all, nb::arg("name"), nb::arg("gradients"), nb::arg("held"), nb::arg("settings"),
             nb::arg("isa") = "");
}

}  // namespace undertow
