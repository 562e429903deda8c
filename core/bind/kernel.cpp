// Kernels for Python: for tests and benchmarks, one operator at a time over lanes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "arrays.h"
#include "interpreter.h"
#include "parts.h"
#include "timing.h"

namespace nb = nanobind;

namespace undertow {
namespace {

using NamedTypes = std::vector<std::tuple<std::string, int>>;

struct Stop {  // a fault on its way to Python
  Fault fault;
};

std::vector<Shape> shapes_of(const Kernel& kernel, const Operands& operands, size_t outputs) {
  const auto ask = [&](int64_t lane) {
    std::vector<View> views = operands.views;
    for (View& view : views) view.data = view.lane<void>(lane);
    std::vector<Shape> found(outputs);
    if (Fault fault = kernel.shape(views.data(), found.data())) throw Stop{{fault.code, lane}};
    return found;
  };
  bool each = false;
  for (size_t k = 0; k < operands.views.size(); ++k)
    each = each || (operands.views[k].stride != 0 && ((kernel.deciding() >> k) & 1) != 0);
  if (operands.lanes == 0 && each) throw nb::value_error("without lanes, nothing decides the size");
  const std::vector<Shape> shapes = ask(0);
  for (int64_t lane = 1; each && lane < operands.lanes; ++lane) {
    const std::vector<Shape> others = ask(lane);
    for (size_t k = 0; k < outputs; ++k)
      if (!std::equal(shapes[k].sizes, shapes[k].sizes + shapes[k].rank, others[k].sizes))
        throw nb::value_error("lanes of different shapes do not run together");
  }
  return shapes;
}

std::vector<Type> types_of(const NamedTypes& named) {
  std::vector<Type> types;
  for (const auto& [name, rank] : named) {
    if (rank < 0 || static_cast<size_t>(rank) > kMostRank) throw nb::value_error("a type has too many axes");
    types.push_back({dtype_named(name), rank});
  }
  return types;
}

/// Everything but the run itself, so that benchmarks can time only that.
struct Prepared {
  Attrs attrs;
  Operands operands;
  std::vector<Type> outputs;
  std::unique_ptr<Kernel> kernel;
  std::optional<Results> results;
  Scratch scratch;

  Prepared(const std::string& op, const nb::dict& attributes, const std::vector<Array>& arrays,
           const std::vector<bool>& shared, const NamedTypes& out_types, const Functions& isa)
      : attrs(attrs_of(attributes)), operands(arrays, shared), outputs(types_of(out_types)) {
    kernel = bind(op, {attrs, operands.types, outputs, isa});
    if (!kernel) throw nb::value_error(("no kernel for " + op + " of these dtypes").c_str());
    results.emplace(operands.lanes, shapes_of(*kernel, operands, outputs.size()), outputs);
  }

  Fault run() { return kernel->run(operands.lanes, operands.views.data(), results->views.data(), scratch); }
};

std::vector<NumpyArray> run_kernel(const std::string& op, const nb::dict& attributes, const std::vector<Array>& arrays,
                                   const std::vector<bool>& shared, const NamedTypes& out_types,
                                   const std::string& isa) {
  try {
    Prepared prepared(op, attributes, arrays, shared, out_types, isa_named(isa));
    Fault fault;
    {
      const Unlocked unlocked;
      fault = prepared.run();
    }
    if (fault) throw Stop{fault};
    return prepared.results->arrays(prepared.operands.lanes);
  } catch (const Stop& stop) {
    raise_fault(nb::make_tuple(name_of(stop.fault.code), stop.fault.lane));
  }
}

/// What plan passes must know of a kernel: does it exist, is it elementwise, which operands decide the shape of a
/// result?
nb::tuple kernel_traits(const std::string& op, const nb::dict& attributes, const NamedTypes& in_types,
                        const NamedTypes& out_types) {
  const Attrs attrs = attrs_of(attributes);
  const std::vector<Type> inputs = types_of(in_types), outputs = types_of(out_types);
  std::unique_ptr<Kernel> kernel;
  try {
    kernel = bind(op, {attrs, inputs, outputs, functions()});
  } catch (const std::exception&) {  // the host's kernel reports what is wrong
  }
  if (!kernel) return nb::make_tuple(false, false, 0);
  return nb::make_tuple(true, kernel->elementwise() != nullptr, kernel->deciding());
}

double time_kernel(const std::string& op, const nb::dict& attributes, const std::vector<Array>& arrays,
                   const std::vector<bool>& shared, const NamedTypes& out_types, double seconds) {
  Prepared prepared(op, attributes, arrays, shared, out_types, functions());
  return best_time(seconds, [&] { prepared.run(); });
}

}  // namespace

void bind_kernel(nb::module_& module) {
  module.attr("KernelFault") = nb::steal(PyErr_NewException("undertow._core.KernelFault", PyExc_Exception, nullptr));
  module.def("kernel_traits", &kernel_traits, nb::arg("op"), nb::arg("attrs"), nb::arg("inputs"), nb::arg("outputs"));
  module.def("run_kernel", &run_kernel, nb::arg("op"), nb::arg("attrs"), nb::arg("inputs"), nb::arg("shared"),
             nb::arg("out_types"), nb::arg("isa") = "");
  module.def("time_kernel", &time_kernel, nb::arg("op"), nb::arg("attrs"), nb::arg("inputs"), nb::arg("shared"),
             nb::arg("out_types"), nb::arg("seconds"));
  module.def("kernel_names", [] {
    nb::list names;
    for (std::string_view name : kernel_names()) names.append(nb::str(name.data(), name.size()));
    return names;
  });
  module.def("isa", [] { return std::string(functions().name); });
  module.def("isas", [] {
    nb::list names;
    for (const char* name : {"baseline", "avx2", "avx512"})
      if (functions(name) != nullptr) names.append(nb::str(name));
    return names;
  });
}

}  // namespace undertow
