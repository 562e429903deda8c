// The functions by which each file of this folder adds its part to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace undertow {

using ModulePart = void(nanobind::module_& module);
ModulePart bind_kernel, bind_host, bind_plan, bind_expand, bind_fused, bind_lanes, bind_memory, bind_matmul,
    bind_optimize, bind_cell, bind_quick, bind_guards, bind_audit, bind_remote, bind_wire;

}  // namespace undertow
