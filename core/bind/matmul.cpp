// Packed matrix products for tests and benchmarks in Python.
#include "undertow/matmul.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>

#include "arrays.h"
#include "kernel/gemm.h"
#include "parts.h"
#include "timing.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// Products are of floats, all of one dtype.
void check_floats(const Operands& operands) {
  for (const Type& type : operands.types)
    if (type.dtype != operands.types[0].dtype || (type.dtype != DType::F32 && type.dtype != DType::F64))
      throw nb::value_error("products are of floats of one dtype");
}

/// x (m x k) and w (k x n, or n x k if transposed), and memory for their product.
struct Product {
  Operands operands;
  bool transposed;
  int64_t m, k, n;
  Results results;
  PackedMatrix packed;

  Product(const Array& x, const Array& w, bool is_transposed, const Functions& isa)
      : operands({x, w}, {true, true}),
        transposed(is_transposed),
        m(at(0, 0)),
        k(at(0, 1)),
        n(at(1, transposed ? 0 : 1)),
        results(1, {shape()}, {{operands.types[0].dtype, 2}}),
        packed(isa, checked(operands, at(1, transposed ? 1 : 0) == k), k, n) {
    packed.pack(operands.views[1].data, transposed ? 1 : n, transposed ? k : 1);
  }

  static DType checked(const Operands& operands, bool fits) {
    check_floats(operands);
    if (!fits) throw nb::value_error("matrices that do not fit each other");
    return operands.types[0].dtype;
  }
  int64_t at(size_t operand, size_t axis) const {
    if (operands.views[operand].rank != 2) throw nb::value_error("products here are of matrices");
    return operands.shapes[operand][axis];
  }
  Shape shape() const {
    Shape out;
    out.append(m);
    out.append(n);
    return out;
  }
  Scratch scratch;

  void run() { packed.multiply(m, operands.views[0].data, k, results.views[0].data, n, scratch); }
  void run_wide() {
    const Matrix b{operands.views[1].data, transposed ? 1 : n, transposed ? k : 1};
    multiply_wide(operands.types[0].dtype, m, n, k, {operands.views[0].data, k, 1}, b, results.views[0].data, n, false,
                  scratch);
  }
};

NumpyArray packed_product(const Array& x, const Array& w, bool transposed, const std::string& isa) {
  Product product(x, w, transposed, isa_named(isa));
  product.run();
  return product.results.arrays(1)[0];
}

double time_product(const Array& x, const Array& w, bool transposed, bool wide, double seconds) {
  Product product(x, w, transposed, functions());
  return best_time(seconds, [&] { wide ? product.run_wide() : product.run(); });
}

NumpyArray outer_sum(const Array& x, const Array& g, const Array& start, const std::string& isa) {
  const Operands operands({x, g, start}, {x.ndim() == 1, g.ndim() == 1, true});
  const std::vector<View>& views = operands.views;
  check_floats(operands);
  if (views[0].rank != 1 || views[1].rank != 1 || views[2].rank != 2 || views[2].shape[0] != views[0].shape[0] ||
      views[2].shape[1] != views[1].shape[0])
    throw nb::value_error("the sum of products of rows is a matrix");
  Scratch scratch;
  Results results(1, {Shape(operands.views[2])}, {operands.types[2]});
  std::memcpy(results.views[0].data, operands.views[2].data, static_cast<size_t>(operands.views[2].bytes()));
  accumulate_outer(isa_named(isa), operands.lanes, operands.views[0], operands.views[1], results.views[0].data, true,
                   scratch);
  return results.arrays(1)[0];
}

double time_outer(const Array& x, const Array& g, bool wide, double seconds) {
  const Operands operands({x, g}, {false, false});
  const View &left = operands.views[0], &right = operands.views[1];
  check_floats(operands);
  if (left.rank != 1 || right.rank != 1) throw nb::value_error("products here are of rows");
  const int64_t k = left.count(), n = right.count();
  Column out(k * n * size_of(left.dtype));
  std::memset(out.data, 0, static_cast<size_t>(k * n * size_of(left.dtype)));
  Scratch scratch;
  return best_time(seconds, [&] {
    if (wide)
      multiply_wide(left.dtype, k, n, operands.lanes, {left.data, 1, k}, {right.data, n, 1}, out.data, n, true,
                    scratch);
    else
      accumulate_outer(functions(), operands.lanes, left, right, out.data, true, scratch);
  });
}

}  // namespace

void bind_matmul(nb::module_& module) {
  module.def("packed_product", &packed_product, nb::arg("x"), nb::arg("w"), nb::arg("transposed") = false,
             nb::arg("isa") = "");
  module.def("time_product", &time_product, nb::arg("x"), nb::arg("w"), nb::arg("transposed"), nb::arg("wide"),
             nb::arg("seconds"));
  module.def("time_outer", &time_outer, nb::arg("x"), nb::arg("g"), nb::arg("wide"), nb::arg("seconds"));
  module.def("outer_sum", &outer_sum, nb::arg("x"), nb::arg("g"), nb::arg("start"), nb::arg("isa") = "");
}

}  // namespace undertow
