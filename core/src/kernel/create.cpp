// Arrays made from scalars and from random keys, of sizes that may be known only at run time.
#include <algorithm>
#include <cmath>

#include "isa/hash.h"
#include "kernel/families.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

template <class T>
void fill(int64_t lanes, const View& value, const View& out, Scratch& scratch) {
  const int64_t count = out.count();
  for (int64_t lane = 0; lane < lanes; ++lane)
    scratch.in_steps(count, sizeof(T), [&](int64_t first, int64_t some) {
      std::fill_n(out.lane<T>(lane) + first, some, *value.lane<T>(lane));
    });
}

class Fill final : public OpenShape {
 public:
  using OpenShape::OpenShape;

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    by_size(size_of(inputs[0].dtype), [&](auto unit) { fill<decltype(unit)>(lanes, inputs[0], outputs[0], scratch); });
    return {};
  }
};

// -- arange --------------------------------------------------------------------------------------------------

template <class T>
class Arange final : public Kernel {
 public:
  explicit Arange(const Binding&) { deciding_ = 0b111; }

  Fault shape(const View* inputs, Shape* outputs) const override {
    const T start = *inputs[0].lane<T>(0), stop = *inputs[1].lane<T>(0), step = *inputs[2].lane<T>(0);
    if (step == 0) return {Fault::Code::ZeroStep, 0};
    int64_t count = 0;
    if constexpr (std::is_integral_v<T>) {
      const __int128 away = static_cast<__int128>(stop) - start, by = step;
      const __int128 steps = (away < 0) != (by < 0) || away == 0 ? 0 : (away - (by > 0 ? 1 : -1)) / by + 1;
      if (steps > kMostElements) return {Fault::Code::TooLarge, 0};
      count = static_cast<int64_t>(steps);
    } else {
      const double steps = (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step);
      if (!(steps <= static_cast<double>(kMostElements))) return {Fault::Code::TooLarge, 0};
      count = steps > 0 ? static_cast<int64_t>(std::ceil(steps)) : 0;
    }
    outputs[0].rank = 0;
    outputs[0].append(count);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const int64_t count = outputs[0].count();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const T start = *inputs[0].lane<T>(lane), step = *inputs[2].lane<T>(lane);
      T* out = outputs[0].lane<T>(lane);
      scratch.in_steps(count, sizeof(T), [&](int64_t first, int64_t some) {
        for (int64_t n = first; n < first + some; ++n) out[n] = start + static_cast<T>(n) * step;
      });
    }
    return {};
  }
};

// -- random numbers; undertow/ops/random.py defines the n-th one --------------------------------------------------

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

float unit_f32(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }
int64_t all_bits(uint64_t bits) { return static_cast<int64_t>(bits); }
int32_t high_bits(uint64_t bits) { return static_cast<int32_t>(bits >> 32); }

template <class T, T (*kFrom)(uint64_t)>
class Draw final : public OpenShape {
 public:
  using OpenShape::OpenShape;

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const int64_t count = outputs[0].count();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t start = start_of(*inputs[0].lane<uint64_t>(lane));
      T* out = outputs[0].lane<T>(lane);
      scratch.in_steps(count, 2 * sizeof(T), [&](int64_t first, int64_t some) {
        for (int64_t n = first; n < first + some; ++n) out[n] = kFrom(draw(start, static_cast<uint64_t>(n)));
      });
    }
    return {};
  }
};

template <class T>
class Normal final : public OpenShape {
 public:
  explicit Normal(const Binding& binding) : OpenShape(binding) {
    const Type wide[] = {{DType::F64, 0}};
    log_ = find_elementwise(binding.isa, "log", wide, DType::F64)->flat[0];
    cos_ = find_elementwise(binding.isa, "cos", wide, DType::F64)->flat[0];
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    constexpr int64_t kPiece = 128;
    constexpr double kTurn = 2.0 * 3.141592653589793;
    const int64_t count = outputs[0].count();
    double u[kPiece], v[kPiece];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t start = start_of(*inputs[0].lane<uint64_t>(lane));
      T* out = outputs[0].lane<T>(lane);
      for (int64_t first = 0; first < count; first += kPiece) {
        const int64_t piece = std::min(kPiece, count - first);
        for (int64_t i = 0; i < piece; ++i) {
          const auto n = static_cast<uint64_t>(first + i);
          u[i] = unit(draw(start, 2 * n)) + 0x1p-53;
          v[i] = kTurn * unit(draw(start, 2 * n + 1));
        }
        log_(u, nullptr, nullptr, u, piece);
        cos_(v, nullptr, nullptr, v, piece);
        for (int64_t i = 0; i < piece; ++i) out[first + i] = static_cast<T>(std::sqrt(-2.0 * u[i]) * v[i]);
        scratch.worked(piece * 32);
      }
    }
    return {};
  }

 private:
  Flat log_, cos_;
};

template <class Narrow, class Wide>
std::unique_ptr<Kernel> make_by_width(const Binding& binding) {
  if (size_of(binding.outputs[0].dtype) == 4) return std::make_unique<Narrow>(binding);
  return std::make_unique<Wide>(binding);
}

constexpr KernelRow kRows[] = {
    {"fill", forms::fill, make_kernel<Fill>},
    {"arange", forms::arange, make_by_dtype<Arange<int32_t>, Arange<int64_t>, Arange<float>, Arange<double>>},
    {"random_bits", forms::random_bits, make_by_width<Draw<int32_t, high_bits>, Draw<int64_t, all_bits>>},
    {"random_uniform", forms::random_floats, make_by_width<Draw<float, unit_f32>, Draw<double, unit>>},
    {"random_normal", forms::random_floats, make_by_width<Normal<float>, Normal<double>>},
};

}  // namespace

std::span<const KernelRow> create_rows() { return kRows; }

}  // namespace undertow
