// Indexing: slices, single elements, rows by index.
#include "kernel/families.h"
#include "kernel/sizes.h"
#include "kernel/strided.h"

namespace undertow {
namespace {

class Slice final : public Kernel {
 public:
  explicit Slice(const Binding& binding) : cuts_(binding.attrs) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0].rank = 0;
    for (int axis = 0; axis < inputs[0].rank; ++axis) outputs[0].append(cut(inputs[0], axis).count);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    if (out.count() == 0) return {};
    Strides from(x);
    for (int axis = 0; axis < x.rank; ++axis) {
      const Cut part = cut(x, axis);
      from.offset += part.start * from.steps[axis];
      from.steps[axis] *= part.step;
    }
    copy_strided(lanes, x, from, out, Strides(out), sizes_of(out), scratch);
    return {};
  }

  int64_t part_at(const View& x) const override {
    int64_t at = 0;
    bool is_cut = false;  // an axis before this one has more than one element left, so this one must be whole
    for (int axis = 0; axis < x.rank; ++axis) {
      const Cut part = cut(x, axis);
      if (part.count == 0 || (part.count > 1 && part.step != 1)) return -1;
      if (is_cut && part.count != x.shape[axis]) return -1;
      is_cut = is_cut || part.count > 1;
      at = at * x.shape[axis] + part.start;
    }
    return at;
  }

 private:
  Cut cut(const View& x, int axis) const { return cuts_.of(axis, x.shape[axis]); }

  Cuts cuts_;
};

/// A slice along one axis with a different start in each lane: the same walk from different addresses.
void copy_cut(const View& x, const View& out, int64_t lane, int axis, const Cut& cut, Scratch& scratch) {
  const Line line(x, axis);
  const int64_t element = size_of(x.dtype), row = line.inner * element;
  Walk<2> walk;
  walk.axis(line.outer, {line.length * row, cut.count * row});
  walk.axis(cut.count, {cut.step * row, row});
  walk.axis(line.inner, {element, element});
  if (out.count() > 0)
    copy_walk(walk, x.lane<std::byte>(lane) + cut.start * row, out.lane<void>(lane), element, scratch);
}

Shape with_axis(const View& x, int axis, int64_t size) {
  Shape out(x);
  out.sizes[axis] = size;
  return out;
}

class SliceAt final : public Kernel {
 public:
  explicit SliceAt(const Binding& binding)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))), size_(binding.attrs.integer("size")) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    if (size_ > inputs[0].shape[axis_]) return {Fault::Code::IndexOutOfRange, 0};
    outputs[0] = with_axis(inputs[0], axis_, size_);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View& x = inputs[0];
    const int64_t length = x.shape[axis_];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t first = integer_at(inputs[1], lane);
      if (first < 0) first += length;
      if (first < 0 || first > length - size_) return {Fault::Code::IndexOutOfRange, lane};
      copy_cut(x, outputs[0], lane, axis_, {first, 1, size_}, scratch);
    }
    return {};
  }

 private:
  int axis_;
  int64_t size_;
};

class SliceBetween final : public Kernel {
 public:
  explicit SliceBetween(const Binding& binding)
      : axis_(static_cast<int>(binding.attrs.integer("axis"))), step_(binding.attrs.integer("step")) {
    deciding_ = 0b110;
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0] = with_axis(inputs[0], axis_, cut(inputs, 0).count);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    for (int64_t lane = 0; lane < lanes; ++lane)
      copy_cut(inputs[0], outputs[0], lane, axis_, cut(inputs, lane), scratch);
    return {};
  }

 private:
  Cut cut(const View* inputs, int64_t lane) const {
    return cut_of(integer_at(inputs[1], lane), integer_at(inputs[2], lane), step_, inputs[0].shape[axis_]);
  }

  int axis_;
  int64_t step_;
};

class Index final : public Kernel {
 public:
  explicit Index(const Binding& binding)
      : axes_(binding.attrs.axes("axes")),
        picked_(axes_of(binding)),
        leading_(picked_ == (uint64_t{1} << axes_.size()) - 1) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0].rank = 0;
    for (int axis = 0; axis < inputs[0].rank; ++axis)
      if (((picked_ >> axis) & 1) == 0) outputs[0].append(inputs[0].shape[axis]);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &out = outputs[0];
    const int64_t element = size_of(x.dtype), bytes = out.bytes();
    int64_t strides[kMostAxes];
    dense_strides(x.shape, x.rank, element, strides);
    Walk<2> walk;  // over the elements that one lane keeps
    if (!leading_) {
      int64_t to[kMostAxes];
      dense_strides(out.shape, out.rank, element, to);
      for (int axis = 0, kept = 0; axis < x.rank; ++axis)
        if (((picked_ >> axis) & 1) == 0) walk.axis(x.shape[axis], {strides[axis], to[kept++]});
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const std::byte* from = x.lane<std::byte>(lane);
      for (size_t k = 0; k < axes_.size(); ++k) {
        const int64_t place = place_of(integer_at(inputs[1 + k], lane), x.shape[axes_[k]]);
        if (place < 0) return {Fault::Code::IndexOutOfRange, lane};
        from += place * strides[axes_[k]];
      }
      if (leading_)
        copy_block(out.lane<void>(lane), from, bytes, scratch);
      else
        copy_walk(walk, from, out.lane<void>(lane), element, scratch);
    }
    return {};
  }

 private:
  std::vector<int> axes_;
  uint64_t picked_;
  bool leading_;  // only leading axes are indexed, so the elements kept are contiguous
};

class Take final : public Kernel {
 public:
  explicit Take(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    outputs[0] = taken_shape(inputs[0], inputs[1], axis_);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &indices = inputs[1], &out = outputs[0];
    const int64_t length = x.shape[axis_], outer = product(x.shape, 0, axis_), count = indices.count();
    const int64_t block = product(x.shape, axis_ + 1, x.rank) * size_of(x.dtype);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const std::byte* from = x.lane<std::byte>(lane);
      std::byte* to = out.lane<std::byte>(lane);
      for (int64_t row = 0; row < outer; ++row, from += length * block, to += count * block) {
        const bool are_there =
            each_place(scratch, count, block, indices, lane, 0, length, [=, &scratch](int64_t n, int64_t place) {
              copy_block(to + n * block, from + place * block, block, scratch);
            });
        if (!are_there) return {Fault::Code::IndexOutOfRange, lane};
      }
    }
    return {};
  }

 private:
  int axis_;
};

/// How many elements of a mask are true. Booleans are 0 or 1.
int64_t count_true(const View& mask, int64_t lane) {
  const uint8_t* x = mask.lane<uint8_t>(lane);
  int64_t count = 0;
  for (int64_t k = 0; k < mask.shape[0]; ++k) count += x[k];
  return count;
}

class Compress final : public Kernel {
 public:
  explicit Compress(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {
    deciding_ = 0b10;
  }

  Fault shape(const View* inputs, Shape* outputs) const override {
    if (inputs[1].shape[0] != inputs[0].shape[axis_]) return {Fault::Code::ShapesDiffer, 0};
    outputs[0] = with_axis(inputs[0], axis_, count_true(inputs[1], 0));
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    const View &x = inputs[0], &mask = inputs[1], &out = outputs[0];
    const Line line(x, axis_);
    const int64_t element = size_of(x.dtype), count = out.shape[axis_];
    for (int64_t lane = 0; lane < lanes; ++lane)
      if (line.inner == 1)
        by_size(element, [&](auto unit) { pick<decltype(unit)>(x, mask, out, lane, line, count, scratch); });
      else
        pick_rows(x, mask, out, lane, line, count, scratch);
    return {};
  }

 private:
  /// Single elements: each is written, and stays if the mask is true.
  template <class T>
  static void pick(const View& x, const View& mask, const View& out, int64_t lane, const Line& line, int64_t count,
                   Scratch& scratch) {
    const T* from = x.lane<T>(lane);
    const uint8_t* wanted = mask.lane<uint8_t>(lane);
    T* to = out.lane<T>(lane);
    for (int64_t k = 0; k < line.outer; ++k, from += line.length, to += count) {
      for (int64_t n = 0, r = 0; n < count; n += wanted[r++]) to[n] = from[r];
      scratch.worked(line.length * static_cast<int64_t>(2 * sizeof(T)));
    }
  }

  static void pick_rows(const View& x, const View& mask, const View& out, int64_t lane, const Line& line, int64_t count,
                        Scratch& scratch) {
    const int64_t block = line.inner * size_of(x.dtype);
    const std::byte* from = x.lane<std::byte>(lane);
    const uint8_t* wanted = mask.lane<uint8_t>(lane);
    std::byte* to = out.lane<std::byte>(lane);
    for (int64_t k = 0; k < line.outer; ++k, from += line.length * block)
      for (int64_t r = 0; r < line.length; ++r)
        if (wanted[r] != 0) {
          copy_block(to, from + r * block, block, scratch);
          to += block;
        }
    scratch.worked(line.outer * count * block);
  }

  int axis_;
};

template <class T>
Fault gather(int64_t lanes, const View& x, const View& indices, const View& out, int axis, Scratch& scratch) {
  const int64_t length = x.shape[axis], count = indices.shape[axis];
  const int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.rank);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const T* from = x.lane<T>(lane);
    T* to = out.lane<T>(lane);
    const int64_t all = count * inner;
    for (int64_t row = 0; row < outer; ++row, from += length * inner, to += all) {
      const int64_t first = row * all;
      const bool are_there = each_place(scratch, all, sizeof(T), indices, lane, first, length,
                                        [=](int64_t n, int64_t place) { to[n] = from[place * inner + n % inner]; });
      if (!are_there) return {Fault::Code::IndexOutOfRange, lane};
    }
  }
  return {};
}

class TakeAlongAxis final : public Kernel {
 public:
  explicit TakeAlongAxis(const Binding& binding) : axis_(static_cast<int>(binding.attrs.integer("axis"))) {}

  Fault shape(const View* inputs, Shape* outputs) const override {
    for (int axis = 0; axis < inputs[0].rank; ++axis)
      if (axis != axis_ && inputs[0].shape[axis] != inputs[1].shape[axis]) return {Fault::Code::ShapesDiffer, 0};
    outputs[0] = Shape(inputs[1]);
    return {};
  }

  Fault run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const override {
    return by_size(size_of(inputs[0].dtype), [&](auto unit) {
      return gather<decltype(unit)>(lanes, inputs[0], inputs[1], outputs[0], axis_, scratch);
    });
  }

 private:
  int axis_;
};

constexpr KernelRow kRows[] = {
    {"slice", forms::slice, make_kernel<Slice>},
    {"slice_at", forms::slice_at, make_kernel<SliceAt>},
    {"slice_between", forms::slice_between, make_kernel<SliceBetween>},
    {"index", forms::index, make_kernel<Index>},
    {"take", forms::take, make_kernel<Take>},
    {"compress", forms::compress, make_kernel<Compress>},
    {"take_along_axis", forms::take_along_axis, make_kernel<TakeAlongAxis>},
};

}  // namespace

std::span<const KernelRow> index_rows() { return kRows; }

}  // namespace undertow
