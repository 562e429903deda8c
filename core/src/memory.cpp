#include "undertow/memory.h"

#include <bit>
#include <new>

namespace undertow {

// Sizes up to 4096 bytes in steps of 64, above that in four steps from one power of two to the next.
int Pool::class_of(int64_t size) {
  if (size <= 4096) return static_cast<int>((size + 63) / 64 - 1);
  const uint64_t last = static_cast<uint64_t>(size - 1);
  const int octave = std::bit_width(last) - 13;  // 4097..8192 -> 0
  const int quarter = static_cast<int>((last >> (octave + 10)) & 3);
  return 64 + 4 * octave + quarter;
}

int64_t Pool::size_of_class(int number) {
  if (number < 64) return int64_t{64} * (number + 1);
  const int octave = (number - 64) / 4, quarter = (number - 64) % 4;
  return (int64_t{5} + quarter) << (octave + 10);
}

Block* Pool::take(int64_t bytes) {
  if (bytes > kMost) throw OverLimit{OverLimit::Kind::OutOfMemory};
  const int number = class_of(bytes + 128);
  const int64_t size = size_of_class(number);
  if (live_ + size > limit_) throw OverLimit{OverLimit::Kind::Memory, live_ + size};
  Block* block = free_[number];
  if (block != nullptr) {
    free_[number] = block->next;
  } else {
    void* made = ::operator new(static_cast<size_t>(size), std::align_val_t{64}, std::nothrow);
    if (made == nullptr) throw OverLimit{OverLimit::Kind::OutOfMemory};
    block = new (made) Block;
    block->size = size;
    block->before = nullptr;
    block->after = all_;
    if (all_ != nullptr) all_->before = block;
    all_ = block;
  }
  block->refs = 1;
  live_ += size;
  if (live_ > peak_) peak_ = live_;
  return block;
}

void Pool::recycle(Block* block) {
  live_ -= block->size;
  constexpr int64_t kLarge = int64_t{1} << 26;
  if (block->size >= kLarge) {  // the system has better use for it
    (block->before != nullptr ? block->before->after : all_) = block->after;
    if (block->after != nullptr) block->after->before = block->before;
    ::operator delete(block, std::align_val_t{64});
    return;
  }
  const int number = class_of(block->size);
  block->next = free_[number];
  free_[number] = block;
}

Pool::~Pool() {
  while (all_ != nullptr) {
    Block* next = all_->after;
    ::operator delete(all_, std::align_val_t{64});
    all_ = next;
  }
}

}  // namespace undertow
