// The Python module undertow._core; the other files of this folder each add a part.
#include <nanobind/nanobind.h>

#include "numpy.h"
#include "parts.h"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // plans are alive when Python exits, because functions cache them
  module.doc() = "The C++ core of Undertow: kernels over lanes.";
  using namespace undertow;
  numpy::load();
  for (ModulePart* bind :
       {bind_kernel, bind_host, bind_plan, bind_expand, bind_fused, bind_lanes, bind_memory, bind_matmul, bind_optimize,
        bind_cell, bind_quick, bind_guards, bind_audit, bind_remote, bind_wire})
    bind(module);
}
