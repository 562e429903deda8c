// The Python module undertow._core: every file of this folder adds its part.
#include <nanobind/nanobind.h>

#include "parts.h"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // what is alive when Python ends is no leak: functions keep their plans
  module.doc() = "The C++ core of Undertow: kernels over lanes.";
  using namespace undertow;
  for (ModulePart* bind : {bind_kernel, bind_host, bind_plan, bind_expand, bind_fused, bind_lanes, bind_memory,
                           bind_matmul, bind_optimize, bind_cell})
    bind(module);
}
