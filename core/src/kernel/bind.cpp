// From the name of an operator to its kernel.
#include <set>
#include <stdexcept>
#include <string>

#include "kernel/families.h"

namespace undertow {
namespace {

constexpr Family* kFamilies[] = {array_rows,  index_rows,  scatter_rows, put_rows, reduce_rows, scan_rows,
                                 create_rows, matmul_rows, factor_rows,  fft_rows, debug_rows};

}  // namespace

std::unique_ptr<Kernel> bind(std::string_view op, const Binding& binding) {
  for (const auto family : kFamilies)
    for (const KernelRow& row : family())
      if (op == row.name) {
        if (!row.form(binding))
          throw std::invalid_argument(std::string(op) + " does not take these types or attributes");
        return row.make(binding);
      }
  return make_elementwise(op, binding);
}

std::vector<std::string_view> kernel_names() {
  std::set<std::string_view> names;
  for (const auto family : kFamilies)
    for (const KernelRow& row : family()) names.insert(row.name);
  for (const FlatRows* family : functions().flat)
    for (int k = 0; k < family->count; ++k) names.insert(family->rows[k].name);
  return {names.begin(), names.end()};
}

}  // namespace undertow
