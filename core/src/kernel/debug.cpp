// assert: all elements of a condition must be true; raise: its condition never is. Python makes the message, since it
// has the values.
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

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const int64_t count = inputs[0].count();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint8_t* row = inputs[0].lane<uint8_t>(lane);
      bool is_true = true;
      scratch.in_steps(count, 1, [&](int64_t first, int64_t some) {
        is_true = is_true && std::find(row + first, row + first + some, 0) == row + first + some;
      });
      if (!is_true) return {Fault::Code::Assertion, lane};
      *outputs[0].lane<uint8_t>(lane) = 1;
    }
    return {};
  }
};

constexpr KernelRow kRows[] = {{"assert", forms::assertion, make_kernel<AssertKernel>},
                               {"raise", forms::assertion, make_kernel<AssertKernel>}};

}  // namespace

std::span<const KernelRow> debug_rows() { return kRows; }

}  // namespace undertow
