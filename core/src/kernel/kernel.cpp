// What all kernels share: shapes, faults, scratch memory.
#include "undertow/kernel.h"

#include <algorithm>
#include <new>

namespace undertow {

Shape::Shape(const View& view) : rank(view.rank) { std::copy_n(view.shape, view.rank, sizes); }

int64_t Shape::count() const {
  int64_t n = 1;
  for (int axis = 0; axis < rank; ++axis) n *= sizes[axis];
  return n;
}

const char* name_of(Fault::Code code) {
  constexpr const char* names[] = {"none",         "division by zero", "negative power", "negative shift",
                                   "out of range", "negative size",    "too large",      "shapes differ",
                                   "no elements",  "zero step",        "assertion",      "overflow",
                                   "no integer",   "no solution"};
  return names[static_cast<int>(code)];
}

constexpr std::align_val_t kAlignment{64};

void Scratch::Release::operator()(void* block) const { ::operator delete(block, kAlignment); }

void* Scratch::get(int64_t bytes) {
  if (bytes > size_ || !block_) {
    const int64_t size = std::max<int64_t>((bytes + 127) / 64 * 64, 2 * size_);
    block_.reset();
    size_ = 0;
    block_.reset(::operator new(static_cast<size_t>(size), kAlignment));
    size_ = size;
  }
  return block_.get();
}

int64_t Scratch::step_of(int64_t bytes) { return std::max<int64_t>(kStep / bytes / 64 * 64, 1); }

void Scratch::look() {
  work_ = 0;
  if (lookout_ != nullptr) lookout_(context_);
}

}  // namespace undertow
