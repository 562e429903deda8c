// Which memory lanes live in, for tests in Python.
#include "undertow/memory.h"

#include <optional>

#include "parts.h"

namespace nb = nanobind;

namespace undertow {
namespace {

/// Read a value that lives with the lanes: with an Access, or without one, which must fault if memory is guarded.
double peek(bool has_access) {
  Pool pool(int64_t{1} << 20);
  Block* block = pool.take(8, Home::Lanes);
  auto* value = reinterpret_cast<volatile double*>(block->data());
  {
    const Access access;
    *value = 1.5;
  }
  std::optional<Access> access;
  if (has_access) access.emplace();
  return *value;
}

}  // namespace

void bind_memory(nb::module_& module) {
  module.attr("memory") = memory_is_guarded ? "guarded" : "ordinary";
  module.def("peek", &peek, nb::arg("has_access"));
}

}  // namespace undertow
