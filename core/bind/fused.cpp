// Fused operators for Python: for tests and benchmarks.
#include "undertow/fused.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

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

using NamedInstructions =
    std::vector<std::tuple<std::string, std::vector<int>, std::string>>;  // operator, registers, dtype

/// Everything but the run itself, so that benchmarks can time only that.
struct Prepared {
  Operands operands;
  std::vector<Fused::Instruction> instructions;
  std::optional<Results> results;
  std::optional<Fused> fused;
  std::vector<Fused::Lanes> given, wanted;

  Prepared(const NamedInstructions& named, const std::vector<Array>& arrays, const std::vector<bool>& shared,
           const std::vector<int64_t>& shape, const std::vector<int>& outputs, const Functions& isa)
      : operands(arrays, shared) {
    std::vector<DType> dtypes;
    for (const Type& type : operands.types) dtypes.push_back(type.dtype);
    for (const auto& [name, registers, dtype] : named) {
      std::vector<Type> types;
      Fused::Instruction instruction{Fused::Kind::Each, nullptr, {}};
      for (size_t k = 0; k < registers.size(); ++k) {
        if (registers[k] < 0 || registers[k] >= static_cast<int>(dtypes.size()) || k >= 3)
          throw nb::value_error("an instruction reads a register that is not there");
        types.push_back({dtypes[registers[k]], 0});
        instruction.inputs[k] = registers[k];
      }
      instruction.op = find_elementwise(isa, name, types, dtype_named(dtype));
      if (instruction.op == nullptr) throw nb::value_error(("no operator on each element: " + name).c_str());
      instructions.push_back(instruction);
      dtypes.push_back(instruction.op->output);
    }
    if (dtypes.size() > Fused::kMostRegisters || outputs.size() > Fused::kMostRegisters || arrays.size() > 64)
      throw nb::value_error("too many registers");
    if (shape.size() > kMostRank) throw nb::value_error("results have too many axes");
    std::vector<Shape> shapes;
    std::vector<Type> types;
    for (int output : outputs) {
      Shape& out = shapes.emplace_back();
      for (int64_t size : shape) out.append(size);
      types.push_back({dtypes.at(static_cast<size_t>(output)), out.rank});
    }
    results.emplace(operands.lanes, std::move(shapes), types);
    for (const View& input : operands.views)
      if (!Fused::is_fitting(input, results->views.at(0))) throw nb::value_error("an input does not fit the results");
    const int64_t n = results->views.at(0).count();
    std::vector<Fused::Type> inputs;
    for (const View& view : operands.views) inputs.push_back({view.dtype, view.count() != 1});
    std::vector<Fused::Output> from;
    for (int output : outputs) from.push_back({output, n != 1});
    fused.emplace(n, inputs, instructions, from);
    for (const View& view : operands.views) given.push_back({static_cast<std::byte*>(view.data), view.stride});
    given.resize(dtypes.size());
    for (const View& view : results->views) wanted.push_back({static_cast<std::byte*>(view.data), view.stride});
  }

  Fused::Stop run(Scratch& scratch) { return fused->run(operands.lanes, given.data(), wanted.data(), scratch); }
};

std::vector<NumpyArray> run_fused(const NamedInstructions& named, const std::vector<Array>& arrays,
                                  const std::vector<bool>& shared, const std::vector<int64_t>& shape,
                                  const std::vector<int>& outputs, const std::string& isa) {
  Prepared prepared(named, arrays, shared, shape, outputs, isa_named(isa));
  Scratch scratch;
  Fused::Stop stop;
  {
    const Unlocked unlocked;
    stop = prepared.run(scratch);
  }
  if (stop.fault) raise_fault(nb::make_tuple(name_of(stop.fault.code), stop.fault.lane, stop.instruction));
  return prepared.results->arrays(prepared.operands.lanes);
}

double time_fused(const NamedInstructions& named, const std::vector<Array>& arrays, const std::vector<bool>& shared,
                  const std::vector<int64_t>& shape, const std::vector<int>& outputs, double seconds) {
  Prepared prepared(named, arrays, shared, shape, outputs, functions());
  Scratch scratch;
  return best_time(seconds, [&] { prepared.run(scratch); });
}

}  // namespace

void bind_fused(nb::module_& module) {
  module.def("run_fused", &run_fused, nb::arg("instructions"), nb::arg("inputs"), nb::arg("shared"), nb::arg("shape"),
             nb::arg("outputs"), nb::arg("isa") = "");
  module.def("time_fused", &time_fused, nb::arg("instructions"), nb::arg("inputs"), nb::arg("shared"), nb::arg("shape"),
             nb::arg("outputs"), nb::arg("seconds"));
}

}  // namespace undertow
