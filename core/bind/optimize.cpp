// Updates of parameters for Python: on arrays that stay where they are.
#include "undertow/optimize.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "arrays.h"
#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using Place = nb::ndarray<nb::c_contig, nb::device::cpu>;  // to be written to
using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

bool update_some(const std::string& name, const Numbers& indices, const Array& rows, const std::vector<Place>& tables,
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

}  // namespace

void bind_optimize(nb::module_& module) {
  module.def("update", &update, nb::arg("name"), nb::arg("gradient"), nb::arg("values"), nb::arg("places"),
             nb::arg("settings"), nb::arg("isa") = "");
  module.def("update_rows", &update_some, nb::arg("name"), nb::arg("indices"), nb::arg("rows"), nb::arg("tables"),
             nb::arg("settings"), nb::arg("isa") = "");
}

}  // namespace undertow
