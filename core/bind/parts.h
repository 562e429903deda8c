// What each file of this folder adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace undertow {

void bind_kernel(nanobind::module_& module);
void bind_host(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_expand(nanobind::module_& module);
void bind_fused(nanobind::module_& module);
void bind_lanes(nanobind::module_& module);
void bind_memory(nanobind::module_& module);
void bind_matmul(nanobind::module_& module);
void bind_optimize(nanobind::module_& module);

}  // namespace undertow
