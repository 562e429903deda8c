// The discrete Fourier transform along an axis: out[k] = the sum of x[t] exp(-2 pi i k t / n), or with +.
//
// Stockham's self-sorting algorithm, with factors 4, 2, 3, 5 and other small ones; a length with a large prime factor
// is a convolution of a power of two (Bluestein). Angles are reduced exactly before sine and cosine.
#include <bit>
#include <cmath>
#include <numbers>

#include "isa/complex.h"
#include "kernel/families.h"
#include "kernel/sizes.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kMostFactor = 13;

/// exp(2 pi i k / n), for 0 <= k < n: the angle that a sine is taken of is at most an eighth of a turn.
Complex<double> turn(int64_t k, int64_t n) {
  const int64_t quarter = 4 * k / n, rest = 4 * k - quarter * n;  // rest / n of a quarter of a turn
  const bool is_far = 2 * rest > n;
  const double angle = std::numbers::pi / 2 * static_cast<double>(is_far ? n - rest : rest) / static_cast<double>(n);
  double cosine = std::cos(angle), sine = std::sin(angle);
  if (is_far) std::swap(cosine, sine);
  switch (quarter) {
    case 0: return {cosine, sine};
    case 1: return {-sine, cosine};
    case 2: return {-cosine, -sine};
    default: return {sine, -cosine};
  }
}

template <class P>
Complex<P> times_i(Complex<P> x) {
  return {-x.im, x.re};
}
template <class P>
Complex<P> conj(Complex<P> x) {
  return {x.re, -x.im};
}

/// The factors of a length, none larger than `kMostFactor`; empty if there is a larger prime.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  for (const int64_t p : {4, 2, 3, 5, 7, 11, 13})
    for (; n % p == 0; n /= p) factors.push_back(p);
  return n == 1 ? factors : std::vector<int64_t>();
}

/// A transform of one length, forward: roots and factors, made once for all lines.
template <class P>
class Transform {
 public:
  using Number = Complex<P>;

  explicit Transform(int64_t n) : n_(n), factors_(factors_of(n)), roots_(z(n)) {
    for (int64_t k = 0; k < n; ++k) {
      const Complex<double> root = turn(k, n);
      roots_[z(k)] = {static_cast<P>(root.re), static_cast<P>(-root.im)};
    }
  }

  bool is_direct() const { return !factors_.empty() || n_ == 1; }

  /// Transform x in place, with as much room beside it.
  void run(Number* x, Number* room, Scratch& scratch) const {
    Number* in = x;
    Number* out = room;
    int64_t done = 1;
    for (const int64_t p : factors_) {
      stage(p, done, in, out, scratch);
      done *= p;
      std::swap(in, out);
    }
    if (in != x) std::copy(in, in + n_, x);
  }

 private:
  /// From transforms of length `done` of every (n / done)-th element to those of length p * done.
  void stage(int64_t p, int64_t done, const Number* in, Number* out, Scratch& scratch) const {
    const int64_t rest = n_ / (done * p);
    for (int64_t j = 0; j < done; ++j) {
      const Number* from = in + j * rest * p;
      Number* to = out + j * rest;
      const int64_t apart = done * rest;  // from one of the p results to the next
      switch (p) {
        case 2: two(from, to, rest, apart, root(j * rest)); break;
        case 3: three(from, to, rest, apart, root(j * rest), root(2 * j * rest)); break;
        case 4: four(from, to, rest, apart, root(j * rest), root(2 * j * rest), root(3 * j * rest)); break;
        default: some(p, from, to, rest, apart, j * rest);
      }
      scratch.worked(2 * rest * p * static_cast<int64_t>(sizeof(Number)));
    }
  }

  Number root(int64_t k) const { return roots_[z(k % n_)]; }

  static void two(const Number* x, Number* out, int64_t rest, int64_t apart, Number w) {
    for (int64_t s = 0; s < rest; ++s) {
      const Number a = x[s], b = w * x[s + rest];
      out[s] = a + b;
      out[s + apart] = a - b;
    }
  }

  static void three(const Number* x, Number* out, int64_t rest, int64_t apart, Number w, Number w2) {
    constexpr P kHeight = static_cast<P>(0.86602540378443864676);  // sin(pi / 3)
    for (int64_t s = 0; s < rest; ++s) {
      const Number a = x[s], b = w * x[s + rest], c = w2 * x[s + 2 * rest];
      const Number sum = b + c, side = times_i(Number(kHeight) * (b - c)), middle = a - Number(P(0.5)) * sum;
      out[s] = a + sum;
      out[s + apart] = middle - side;
      out[s + 2 * apart] = middle + side;
    }
  }

  static void four(const Number* x, Number* out, int64_t rest, int64_t apart, Number w, Number w2, Number w3) {
    for (int64_t s = 0; s < rest; ++s) {
      const Number a = x[s], b = w * x[s + rest], c = w2 * x[s + 2 * rest], d = w3 * x[s + 3 * rest];
      const Number even = a + c, odd = a - c, sum = b + d, side = times_i(b - d);
      out[s] = even + sum;
      out[s + apart] = odd - side;
      out[s + 2 * apart] = even - sum;
      out[s + 3 * apart] = odd + side;
    }
  }

  void some(int64_t p, const Number* x, Number* out, int64_t rest, int64_t apart, int64_t step) const {
    Number parts[kMostFactor];
    for (int64_t s = 0; s < rest; ++s) {
      for (int64_t q = 0; q < p; ++q) parts[q] = root(q * step) * x[s + q * rest];
      for (int64_t u = 0; u < p; ++u) {
        Number sum = parts[0];
        for (int64_t q = 1; q < p; ++q) sum += roots_[z(u * q % p * (n_ / p))] * parts[q];
        out[s + u * apart] = sum;
      }
    }
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Number> roots_;
};

/// Any length, as a convolution: k t = (k^2 + t^2 - (k - t)^2) / 2.
template <class P>
class Bluestein {
 public:
  using Number = Complex<P>;

  Bluestein(int64_t n, Scratch& scratch)
      : n_(n),
        size_(static_cast<int64_t>(std::bit_ceil(z(2 * n - 1)))),
        inner_(size_),
        chirp_(z(n)),
        weights_(z(size_)) {
    for (int64_t k = 0; k < n; ++k) {
      const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * z(k) % z(2 * n));
      const Complex<double> root = turn(square, 2 * n);
      chirp_[z(k)] = {static_cast<P>(root.re), static_cast<P>(-root.im)};
    }
    std::fill(weights_.begin(), weights_.end(), Number(0));
    for (int64_t k = 0; k < n; ++k) weights_[z(k)] = weights_[z((size_ - k) % size_)] = conj(chirp_[z(k)]);
    std::vector<Number> room(z(size_));
    inner_.run(weights_.data(), room.data(), scratch);
  }

  int64_t room() const { return 2 * size_; }

  void run(Number* x, Number* room, Scratch& scratch) const {
    for (int64_t k = 0; k < n_; ++k) room[k] = x[k] * chirp_[z(k)];
    std::fill(room + n_, room + size_, Number(0));
    inner_.run(room, room + size_, scratch);
    for (int64_t k = 0; k < size_; ++k) room[k] = conj(room[k] * weights_[z(k)]);  // the inverse, as conjugates
    inner_.run(room, room + size_, scratch);
    for (int64_t k = 0; k < n_; ++k) x[k] = conj(room[k]) * chirp_[z(k)] * Number(P(1) / static_cast<P>(size_));
  }

 private:
  int64_t n_, size_;
  Transform<P> inner_;
  std::vector<Number> chirp_, weights_;
};

template <class P>
class Fft final : public Kernel {
 public:
  using Number = Complex<P>;

  explicit Fft(const Binding& binding)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))), is_inverse_(binding.attrs.flag("inverse")) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0] = Shape(inputs[0]);
    return inputs[0].shape[axis_] == 0 ? Fault{Fault::Code::NoElements, 0} : Fault{};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    if (lanes == 0 || out.count() == 0) return {};
    const int64_t n = x.shape[axis_];
    const Transform<P> direct(n);
    if (direct.is_direct()) {
      lines(lanes, x, out, n, scratch, direct);
    } else {
      const Bluestein<P> other(n, scratch);
      lines(lanes, x, out, other.room(), scratch, other);
    }
    return {};
  }

 private:
  template <class Any>
  void lines(int64_t lanes, const View& x, const View& out, int64_t room, Scratch& scratch,
             const Any& transform) const {
    const Line line(x, axis_);
    auto* row = static_cast<Number*>(scratch.get((line.length + room) * static_cast<int64_t>(sizeof(Number))));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t k = 0; k < line.outer * line.inner; ++k) {
        const Number* from = x.lane<Number>(lane) + line.start(k);
        Number* to = out.lane<Number>(lane) + line.start(k);
        // The inverse is the transform of the conjugates, conjugated.
        for (int64_t t = 0; t < line.length; ++t)
          row[t] = is_inverse_ ? conj(from[t * line.inner]) : from[t * line.inner];
        transform.run(row, row + line.length, scratch);
        for (int64_t t = 0; t < line.length; ++t) to[t * line.inner] = is_inverse_ ? conj(row[t]) : row[t];
        scratch.worked(4 * line.length * static_cast<int64_t>(sizeof(Number)));
      }
    }
  }

  int axis_;
  bool is_inverse_;
};

std::unique_ptr<Kernel> make_fft(const Binding& binding) {
  if (binding.inputs[0].dtype == DType::C64) return std::make_unique<Fft<float>>(binding);
  return binding.inputs[0].dtype == DType::C128 ? std::make_unique<Fft<double>>(binding) : nullptr;
}

constexpr KernelRow kRows[] = {{"fft", forms::fft, make_fft}};

}  // namespace

std::span<const KernelRow> fft_rows() { return kRows; }

}  // namespace undertow
