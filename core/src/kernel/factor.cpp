// Systems of linear equations and factorisations, by LAPACK: the same functions as NumPy's, so the same signs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernel/families.h"
#include "kernel/lapack.h"
#include "kernel/sizes.h"

namespace undertow {
namespace {

using lapack::Int;

constexpr int64_t kMostRows = int64_t{1} << 15;  // work spaces are counted with Int: 4 * n * n elements
constexpr int64_t kBlock = 64;                   // columns that LAPACK works on at a time, at most

/// One matrix of m rows and n columns, what is beside it (k columns of a right side, or a number), and the result.
template <class T>
struct Task {
  int64_t m, n, k;
  const T* x;
  const T* beside;
  T* out;
  bool flag;
  Scratch& scratch;

  int64_t fewest() const { return std::min(m, n); }
};

/// Parts of one block of scratch memory: T for all, and Int behind them.
template <class T>
struct Room {
  T* numbers;
  Int* whole;
  Room(Scratch& scratch, int64_t count, int64_t whole_count) {
    const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    auto* block = static_cast<std::byte*>(scratch.get(bytes + whole_count * static_cast<int64_t>(sizeof(Int))));
    numbers = reinterpret_cast<T*>(block);
    whole = reinterpret_cast<Int*>(block + bytes);
  }
  T* take(int64_t count) { return std::exchange(numbers, numbers + count); }
};

/// Columns of `rows` elements one after the other as rows, or the other way around.
template <class T>
void turn(const T* from, int64_t rows, int64_t columns, T* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

template <class T>
bool is_finite(const T* x, int64_t count) {
  return std::all_of(x, x + count, [](T value) { return std::isfinite(value); });
}

template <class T>
bool solve(const Task<T>& task) {
  const int64_t n = task.n, k = task.k;
  Room<T> room(task.scratch, n * n + n * k, n);
  T *a = room.take(n * n), *b = room.take(n * k);
  turn(task.x, n, n, a);
  turn(task.beside, n, k, b);
  Int info = 0;
  if (n > 0 && k > 0) lapack::gesv(static_cast<Int>(n), static_cast<Int>(k), a, room.whole, b, info);
  turn(b, k, n, task.out);
  return info == 0;
}

template <class T>
bool slogdet(const Task<T>& task) {
  const int64_t n = task.n;
  Room<T> room(task.scratch, n * n, n);
  T* a = room.take(n * n);
  turn(task.x, n, n, a);
  Int info = 0;
  if (n > 0) lapack::getrf(static_cast<Int>(n), a, room.whole, info);
  T sign = 1, log = 0;
  if (info > 0) {
    sign = 0;
    log = -std::numeric_limits<T>::infinity();
  }
  for (int64_t i = 0; i < n && info == 0; ++i) {
    T value = a[i * n + i];
    if (room.whole[i] != i + 1) sign = -sign;
    if (value < 0) {
      sign = -sign;
      value = -value;
    }
    log += std::log(value);
  }
  task.out[0] = sign;
  task.out[1] = log;
  return true;
}

template <class T>
bool cholesky(const Task<T>& task) {
  const int64_t n = task.n;
  Room<T> room(task.scratch, n * n, 0);
  T* a = room.take(n * n);
  turn(task.x, n, n, a);
  Int info = 0;
  if (n > 0) lapack::potrf(static_cast<Int>(n), a, info);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) task.out[i * n + j] = j <= i ? a[j * n + i] : T(0);
  return info == 0;
}

template <class T>
bool qr(const Task<T>& task) {
  const int64_t m = task.m, n = task.n, work = std::max(kBlock * n, int64_t{1});
  Room<T> room(task.scratch, m * n + n + work, 0);
  T *a = room.take(m * n), *tau = room.take(n), *space = room.take(work);
  turn(task.x, m, n, a);
  Int info = 0;
  const Int rows = static_cast<Int>(m), columns = static_cast<Int>(n), lwork = static_cast<Int>(work);
  if (n > 0) lapack::geqrf(rows, columns, a, tau, space, lwork, info);
  T* r = task.out + m * n;  // its columns, as rows
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) r[j * n + i] = i <= j ? a[j * m + i] : T(0);
  if (n > 0) lapack::orgqr(rows, columns, a, tau, space, lwork, info);
  turn(a, n, m, task.out);
  return info == 0;
}

template <class T>
bool eigh(const Task<T>& task) {
  const int64_t n = task.n, work = std::max(1 + 6 * n + 2 * n * n, 2 * n + kBlock * n), whole = 3 + 5 * n;
  Room<T> room(task.scratch, n * n + work, whole);
  T *a = room.take(n * n), *space = room.take(work);
  if (!is_finite(task.x, n * n)) return false;
  turn(task.x, n, n, a);
  Int info = 0;
  if (n > 0)
    lapack::syevd(task.flag, static_cast<Int>(n), a, task.out, space, static_cast<Int>(work), room.whole,
                  static_cast<Int>(whole), info);
  turn(a, n, n, task.out + n);
  return info == 0;
}

/// Singular values, and both sides as columns of m and rows of n elements, in memory of the room.
template <class T>
struct Svd {
  T *values, *u, *vt;
  bool is_done;

  static int64_t work(const Task<T>& task) {
    const int64_t k = task.fewest();
    return 4 * k * k + 7 * k + kBlock * (task.m + task.n) + 1;
  }
  static int64_t count(const Task<T>& task) {
    const int64_t k = task.fewest();
    return task.m * task.n + k + k * (task.m + task.n) + work(task);
  }
  Svd(const Task<T>& task, Room<T>& room) {
    const int64_t m = task.m, n = task.n, k = task.fewest();
    T* a = room.take(m * n);
    values = room.take(k);
    u = room.take(m * k);
    vt = room.take(k * n);
    T* space = room.take(work(task));
    is_done = is_finite(task.x, m * n);
    if (!is_done || k == 0) return;
    turn(task.x, m, n, a);
    Int info = 0;
    lapack::gesdd(static_cast<Int>(m), static_cast<Int>(n), static_cast<Int>(k), a, values, u, vt, space,
                  static_cast<Int>(work(task)), room.whole, info);
    is_done = info == 0;
  }
};

template <class T>
bool svd(const Task<T>& task) {
  const int64_t m = task.m, n = task.n, k = task.fewest();
  Room<T> room(task.scratch, Svd<T>::count(task), 8 * k);
  const Svd<T> found(task, room);
  if (!found.is_done) return false;
  std::copy_n(found.values, k, task.out);
  turn(found.u, k, m, task.out + k);
  std::copy_n(found.vt, k * n, task.out + k + m * k);
  return true;
}

template <class T>
bool pinv(const Task<T>& task) {
  const int64_t m = task.m, n = task.n, k = task.fewest();
  Room<T> room(task.scratch, Svd<T>::count(task), 8 * k);
  const Svd<T> found(task, room);
  if (!found.is_done) return false;
  std::fill_n(task.out, n * m, T(0));
  for (int64_t l = 0; l < k && found.values[l] > *task.beside * found.values[0]; ++l)
    for (int64_t i = 0; i < n; ++i) {
      const T factor = found.vt[i * k + l] / found.values[l];
      for (int64_t j = 0; j < m; ++j) task.out[i * m + j] += factor * found.u[l * m + j];
    }
  return true;
}

/// What an operator does with one matrix, and the two last axes of its result, given those of the operand.
template <template <class> class Each>
class PerMatrix final : public Kernel {
 public:
  explicit PerMatrix(const Binding& binding) {
    if constexpr (Each<double>::kHasFlag) flag_ = binding.attrs.flag("lower");
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    const View& x = inputs[0];
    const int64_t m = x.shape[x.rank - 2], n = x.shape[x.rank - 1];
    if ((Each<double>::kIsSquare && m != n) || (Each<double>::kIsTall && m < n)) return {Fault::Code::ShapesDiffer, 0};
    if (std::max(m, n) > kMostRows) return {Fault::Code::TooLarge, 0};
    if (Each<double>::kHasRightSide && !std::equal(x.shape, x.shape + x.rank - 1, inputs[1].shape))
      return {Fault::Code::ShapesDiffer, 0};
    outputs[0].rank = 0;
    for (int axis = 0; axis < x.rank - 2; ++axis) outputs[0].append(x.shape[axis]);
    Each<double>::append(outputs[0], m, n, columns(inputs));
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    return inputs[0].dtype == DType::F32 ? run_as<float>(lanes, inputs, outputs, scratch)
                                         : run_as<double>(lanes, inputs, outputs, scratch);
  }

 private:
  static int64_t columns(const View* inputs) {
    return Each<double>::kHasRightSide ? inputs[1].shape[inputs[1].rank - 1] : 1;
  }

  template <class T>
  Fault run_as(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const {
    const View &x = inputs[0], &out = outputs[0];
    const int64_t m = x.shape[x.rank - 2], n = x.shape[x.rank - 1], k = columns(inputs);
    const int64_t batch = product(x.shape, 0, x.rank - 2), each = batch == 0 ? 0 : out.count() / batch;
    const int64_t products = Scratch::products(m * n * (std::min(m, n) + k) * 4) + 1;
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (int64_t at = 0; at < batch; ++at) {
        Task<T> task{m, n, k, x.lane<T>(lane) + at * m * n, nullptr, out.lane<T>(lane) + at * each, flag_, scratch};
        if (Each<T>::kHasRightSide) task.beside = inputs[1].lane<T>(lane) + at * m * k;
        if (Each<T>::kHasNumber) task.beside = inputs[1].lane<T>(lane);
        if (!Each<T>::compute(task)) return {Fault::Code::NoSolution, lane};
        scratch.worked(products);
      }
    return {};
  }

  bool flag_ = false;
};

struct OfMatrix {
  static constexpr bool kIsSquare = false, kIsTall = false, kHasRightSide = false, kHasNumber = false, kHasFlag = false;
};

struct OfSquare : OfMatrix {
  static constexpr bool kIsSquare = true;
};

template <class T>
struct Solve : OfSquare {
  static constexpr bool kHasRightSide = true;
  static constexpr auto compute = solve<T>;
  static void append(Shape& out, int64_t m, int64_t, int64_t k) { out.append(m), out.append(k); }
};

template <class T>
struct Slogdet : OfSquare {
  static constexpr auto compute = slogdet<T>;
  static void append(Shape& out, int64_t, int64_t, int64_t) { out.append(2); }
};

template <class T>
struct Cholesky : OfSquare {
  static constexpr auto compute = cholesky<T>;
  static void append(Shape& out, int64_t m, int64_t n, int64_t) { out.append(m), out.append(n); }
};

template <class T>
struct Qr : OfMatrix {
  static constexpr bool kIsTall = true;
  static constexpr auto compute = qr<T>;
  static void append(Shape& out, int64_t m, int64_t n, int64_t) { out.append(m + n), out.append(n); }
};

template <class T>
struct Eigh : OfSquare {
  static constexpr bool kHasFlag = true;
  static constexpr auto compute = eigh<T>;
  static void append(Shape& out, int64_t, int64_t n, int64_t) { out.append(n + 1), out.append(n); }
};

template <class T>
struct SvdOf : OfMatrix {
  static constexpr auto compute = svd<T>;
  static void append(Shape& out, int64_t m, int64_t n, int64_t) { out.append(1 + m + n), out.append(std::min(m, n)); }
};

template <class T>
struct Pinv : OfMatrix {
  static constexpr bool kHasNumber = true;
  static constexpr auto compute = pinv<T>;
  static void append(Shape& out, int64_t m, int64_t n, int64_t) { out.append(n), out.append(m); }
};

template <template <class> class Each>
std::unique_ptr<Kernel> make_per_matrix(const Binding& binding) {
  const DType dtype = binding.inputs[0].dtype;
  if (dtype != DType::F32 && dtype != DType::F64) return nullptr;
  return std::make_unique<PerMatrix<Each>>(binding);
}

constexpr KernelRow kRows[] = {
    {"solve", forms::solve, make_per_matrix<Solve>},        {"slogdet", forms::slogdet, make_per_matrix<Slogdet>},
    {"cholesky", forms::matrix, make_per_matrix<Cholesky>}, {"qr", forms::matrix, make_per_matrix<Qr>},
    {"eigh", forms::eigh, make_per_matrix<Eigh>},           {"svd", forms::matrix, make_per_matrix<SvdOf>},
    {"pinv", forms::pinv, make_per_matrix<Pinv>},
};

}  // namespace

std::span<const KernelRow> factor_rows() { return kRows; }

}  // namespace undertow
