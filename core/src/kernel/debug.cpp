// assert: all of a condition must be true. What it says is for Python, which has the values.
#include "kernel/families.h"

namespace undertow {
namespace {

class AssertKernel final : public Kernel {
 public:
  explicit AssertKernel(const Binding&) {}

  Fault shape(const View*, Shape* outputs) const override {
    outputs[0].rank = 0;
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch&) const override {
    const int64_t count = inputs[0].count();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint8_t* row = inputs[0].lane<uint8_t>(lane);
      for (int64_t i = 0; i < count; ++i)
        if (row[i] == 0) return {Fault::Code::Assertion, lane};
      *outputs[0].lane<uint8_t>(lane) = 1;
    }
    return {};
  }
};

constexpr KernelRow kRows[] = {{"assert", forms::assertion, make_kernel<AssertKernel>}};

}  // namespace

std::span<const KernelRow> debug_rows() { return kRows; }

}  // namespace undertow
