// Kernels: an operator bound to the dtypes and ranks of its operands and to its attributes, run over lanes.
//
// A column holds the value of one slot for all lanes: lane k starts k * stride bytes after data, its elements
// contiguous and row-major. Stride 0 means one value that all lanes share. All lanes of one call have the same shape.
//
// Outputs are 64-byte aligned and padded: an output may be written up to the next multiple of 64 bytes after its last
// element. Inputs may be arrays of the caller: elements are aligned, but nothing after the last one may be read.
// Outputs and inputs do not overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace undertow {

enum class DType : uint8_t { Bool, I32, I64, F32, F64, C64, C128 };  // a bool is one byte, 0 or 1

constexpr int kDTypes = 7;
constexpr int kMostAxes = 40;  // of an operand or result: 32 for users, and some for the internal use of kernels
constexpr int64_t kMostElements = int64_t{1} << 31;  // of an array whose size is computed at run time

constexpr int64_t size_of(DType dtype) {
  constexpr int64_t sizes[kDTypes] = {1, 4, 8, 4, 8, 8, 16};
  return sizes[static_cast<int>(dtype)];
}

constexpr bool is_complex(DType dtype) { return dtype == DType::C64 || dtype == DType::C128; }

/// Of floats and complex numbers there are derivatives, and sums of them.
constexpr bool is_inexact(DType dtype) { return dtype >= DType::F32; }

/// The dtype of a part of complex numbers, which are two of it side by side; of others their own.
constexpr DType part_of(DType dtype) {
  return dtype == DType::C64 ? DType::F32 : dtype == DType::C128 ? DType::F64 : dtype;
}

struct View {
  void* data;
  int64_t stride;  ///< bytes from lane to lane; 0: one value for all lanes
  const int64_t* shape;
  int rank;
  DType dtype;

  int64_t count() const {
    int64_t n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= shape[axis];
    return n;
  }
  int64_t bytes() const { return count() * size_of(dtype); }
  template <class T>
  T* lane(int64_t k) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data) + k * stride);
  }
};

/// What is known of an operand or result when a kernel is bound.
struct Type {
  DType dtype;
  int rank;
};

struct Shape {
  int rank = 0;
  int64_t sizes[kMostAxes];

  Shape() = default;
  explicit Shape(const View& view);
  void append(int64_t size) { sizes[rank++] = size; }
  int64_t count() const;
};

/// Why a kernel stopped. The operator's reference kernel is then run on that lane's operands and raises the error: so
/// all engines raise the same one, and kernels have no messages.
struct Fault {
  enum class Code : uint8_t {
    None,
    DivisionByZero,  // of integers
    NegativePower,   // of an integer
    NegativeShift,
    IndexOutOfRange,
    NegativeSize,
    TooLarge,
    ShapesDiffer,
    NoElements,
    ZeroStep,
    Assertion,
    Overflow,
    NoInteger,   // nan, or a float that is too large
    NoSolution,  // a matrix is singular, not positive definite, or not finite
  };
  Code code = Code::None;
  int64_t lane = 0;  ///< the first lane that faults

  explicit operator bool() const { return code != Code::None; }
};

const char* name_of(Fault::Code code);

/// What a kernel has of its caller: memory for one call at a time, which only grows, and a lookout that may stop it.
/// One for each thread.
class Scratch {
 public:
  using Lookout = void (*)(void* context);

  static constexpr int64_t kLook = int64_t{1} << 22;  ///< bytes: a few milliseconds of any operator
  static constexpr int64_t kStep = kLook / 4;         ///< bytes that are worked on without a look up

  /// At least that many bytes, 64-byte aligned and padded; invalidates what it returned before.
  void* get(int64_t bytes);

  /// From now on `lookout` is called after every few milliseconds of work. What it throws ends the kernel, whose
  /// outputs then hold anything.
  void watch(Lookout lookout, void* context) {
    lookout_ = lookout;
    context_ = context;
  }

  /// Some work is done: bytes that were read and written, or as many as take that long.
  void worked(int64_t bytes) {
    work_ += bytes;
    if (work_ >= kLook) look();
  }

  /// Multiplications with additions, as work.
  static int64_t products(int64_t count) { return count / 8; }

  /// Work on 0, 1, ... n - 1, some at a time: work(first, count), where each takes so many bytes.
  template <class Work>
  [[gnu::always_inline]] void in_steps(int64_t n, int64_t bytes, Work&& work) {
    const int64_t most = n * bytes <= kStep ? n : step_of(bytes);
    for (int64_t first = 0; first < n; first += most) {
      const int64_t count = std::min(most, n - first);
      work(first, count);
      worked(count * bytes);
    }
  }

 private:
  void look();
  static int64_t step_of(int64_t bytes);

  struct Release {
    void operator()(void* block) const;
  };
  std::unique_ptr<void, Release> block_;
  int64_t size_ = 0;
  int64_t work_ = 0;
  Lookout lookout_ = nullptr;
  void* context_ = nullptr;
};

struct Elementwise;
class Attrs;
struct Functions;
class PackedMatrix;

/// Packed matrices that are kept for a run: those that all its waves multiply with.
class Keeper {
 public:
  virtual ~Keeper() = default;

  /// Operand number `operand`, as a matrix of k rows and n columns with strides in elements; packed at its first use.
  /// Null if waves do not share it, or there is no room.
  virtual const PackedMatrix* packed(int operand, const View& matrix, int64_t k, int64_t n, int64_t row_stride,
                                     int64_t column_stride) = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  /// The shapes of the outputs. Reads the value of deciding operands in the first lane: if such an operand is not
  /// shared, the caller asks for each lane, and runs lanes with equal shapes together.
  virtual Fault shape(const View* inputs, Shape* outputs) const = 0;

  /// Compute all lanes. The outputs have the shapes from `shape`; after a fault their contents are undefined.
  virtual Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const = 0;

  /// The same with packed matrices that are kept for the run; results are bit for bit those of the other `run`.
  virtual Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch, Keeper&) const {
    return run(lanes, inputs, outputs, scratch);
  }

  /// Bit k: the value of operand k decides the shape of an output.
  uint64_t deciding() const { return deciding_; }

  /// Is it a matrix product?
  bool is_product() const { return is_product_; }

  /// Is its only result the first operand, but for what it writes? If the two have the same memory, it writes there.
  bool is_change() const { return is_change_; }

  /// If the result is a contiguous part of the first operand: the offset of its first element; else -1.
  virtual int64_t part_at(const View& operand) const { return (void)operand, -1; }

  /// Is the result just the operands, one after the other?
  virtual bool is_row(const View& result) const { return (void)result, false; }

  /// The flat functions of an elementwise operator; else null. See fused.h.
  virtual const Elementwise* elementwise() const { return nullptr; }

 protected:
  uint64_t deciding_ = 0;
  bool is_product_ = false;
  bool is_change_ = false;
};

/// What a kernel is made from.
struct Binding {
  const Attrs& attrs;
  std::span<const Type> inputs;
  std::span<const Type> outputs;
  const Functions& isa;
};

/// The kernel of an operator; null if there is none for these dtypes.
std::unique_ptr<Kernel> bind(std::string_view op, const Binding& binding);

/// The names of all operators that have kernels.
std::vector<std::string_view> kernel_names();

}  // namespace undertow
