// The Python module undertow._core: every file of this folder adds its part.
#include <nanobind/nanobind.h>

#include "parts.h"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // what is alive when Python ends is no leak: functions keep their plans
  module.doc() = "The C++ core of Undertow: kernels over lanes.";
  undertow::bind_kernel(module);
  undertow::bind_host(module);
  undertow::bind_plan(module);
  undertow::bind_expand(module);
  undertow::bind_fused(module);
  undertow::bind_lanes(module);
  undertow::bind_matmul(module);
  undertow::bind_memory(module);
  undertow::bind_optimize(module);
}
