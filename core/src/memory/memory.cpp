#include "undertow/memory.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "memory/guarded.h"

namespace undertow {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 46;  // of a block: more than any machine has
constexpr int64_t kLarge = int64_t{1} << 26;      // blocks that are not kept: the system has better use for them
constexpr int64_t kMostSpare = int64_t{1} << 28;  // bytes that are kept while nothing runs

void free_block(Block* block) {
  if (block->is_away()) give_guarded(block->data(), block->size);
  ::operator delete(block, std::align_val_t{64});
}

Block* new_block(int64_t size, int64_t behind) {
  void* made = ::operator new(sizeof(Block) + static_cast<size_t>(behind), std::align_val_t{64}, std::nothrow);
  if (made == nullptr) throw OverLimit{OverLimit::Kind::OutOfMemory};
  Block* block = new (made) Block;
  block->size = size;
  return block;
}

constexpr size_t kMostSets = 64;

/// What is kept while nothing runs: the blocks that each run, or each thread of one, has left. Nobody waits for it: who
/// finds it taken gets fresh memory, and gives it back to the system. (So a process that was forked at a bad moment
/// does not wait for ever.)
struct Spare {
  std::mutex mutex;
  std::vector<Blocks> sets;
  int64_t bytes = 0;

  /// One of them; an empty one, if there is none.
  Blocks& any() { return sets.empty() ? sets.emplace_back() : sets.back(); }
};

Spare& spare() {
  static Spare& all = *new Spare;  // for ever: arrays may outlive whatever is destroyed at exit
  return all;
}

}  // namespace

// Sizes up to 4096 bytes in steps of 64, above that in four steps from one power of two to the next.
int Blocks::class_of(int64_t size) {
  if (size <= 4096) return static_cast<int>((size + 63) / 64 - 1);
  const uint64_t last = static_cast<uint64_t>(size - 1);
  const int octave = std::bit_width(last) - 13;  // 4097..8192 -> 0
  const int quarter = static_cast<int>((last >> (octave + 10)) & 3);
  return 64 + 4 * octave + quarter;
}

int64_t Blocks::size_of_class(int number) {
  if (number < 64) return int64_t{64} * (number + 1);
  const int octave = (number - 64) / 4, quarter = (number - 64) % 4;
  return (int64_t{5} + quarter) << (octave + 10);
}

int64_t Blocks::size_for(int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes) throw OverLimit{OverLimit::Kind::OutOfMemory};
  return size_of_class(class_of(bytes + 128));
}

Block* Blocks::take(int64_t bytes, Home home) {
  const int64_t size = size_for(bytes);
  Block*& first = free_[class_of(size)];
  Block* block = first;
  if (home == Home::Lanes && memory_is_guarded) [[unlikely]] {
    block = new_block(size, 0);
    block->at = take_guarded(size);
    bytes_ += size;
  } else if (block != nullptr) {
    first = block->next;
  } else {
    block = new_block(size, size - static_cast<int64_t>(sizeof(Block)));
    bytes_ += size;
  }
  block->refs = 1;
  link(block);
  return block;
}

void Blocks::add(Block* block) {
  bytes_ += block->size;
  push(block);
}

void Blocks::remove(Block* block) {
  unlink(block);
  bytes_ -= block->size;
}

void Blocks::free_away(Block* block) {
  bytes_ -= block->size;
  free_block(block);
}

void Blocks::adopt(Blocks& other, int64_t most) {
  other.put_all();
  for (Block*& first : other.free_)
    while (first != nullptr) {
      Block* block = std::exchange(first, first->next);
      if (bytes_ + block->size <= most)
        add(block);
      else
        free_block(block);
    }
  other.bytes_ = 0;
}

void Blocks::clear() {
  Blocks none;
  none.adopt(*this, 0);
}

Pool::Pool(int64_t limit) : limit_(limit) {
  const std::unique_lock lock(spare().mutex, std::try_to_lock);
  if (!lock.owns_lock() || spare().sets.empty()) return;
  blocks_ = spare().sets.back();
  spare().sets.pop_back();
  spare().bytes -= blocks_.bytes();
}

Pool::~Pool() {
  const std::unique_lock lock(spare().mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    blocks_.clear();
    return;
  }
  const int64_t room = kMostSpare - spare().bytes;
  blocks_.put_all();  // of a run that was stopped
  if (blocks_.bytes() <= room && spare().sets.size() < kMostSets) {
    spare().bytes += blocks_.bytes();
    spare().sets.push_back(blocks_);
  } else {
    Blocks& some = spare().any();
    const int64_t before = some.bytes();
    // Half of what there is room for: if all were full, the next run would take a block more, and we were here again.
    some.adopt(blocks_, before + room / 2);
    spare().bytes += some.bytes() - before;
  }
}

Block* Pool::take(int64_t bytes, Home home) {
  const int64_t size = Blocks::size_for(bytes);
  if (live_ + size > limit_) throw OverLimit{OverLimit::Kind::Memory, live_ + size};
  Block* block = blocks_.take(bytes, home);
  live_ += size;
  if (live_ > peak_) peak_ = live_;
  return block;
}

void Pool::recycle(Block* block) {
  live_ -= block->size;
  if (block->size < kLarge) {
    blocks_.put(block);
    return;
  }
  blocks_.remove(block);
  free_block(block);
}

void Pool::release(Block* block) {
  live_ -= block->size;
  blocks_.remove(block);
}

Buffer::Buffer(const Buffer& other) {
  resize(other.size_);
  if (size_ > 0) std::memcpy(data(), other.data(), size_);
}

void Buffer::resize(size_t size) {
  give_back(std::exchange(block_, nullptr));
  size_ = size;
  if (size == 0) return;
  const std::unique_lock lock(spare().mutex, std::try_to_lock);
  Blocks own;
  Blocks& some = lock.owns_lock() ? spare().any() : own;
  const int64_t before = some.bytes();
  block_ = some.take(static_cast<int64_t>(size));
  some.remove(block_);
  if (lock.owns_lock()) spare().bytes += some.bytes() - before;
}

void Buffer::give_back(Block* block) noexcept {
  if (block == nullptr) return;
  const std::unique_lock lock(spare().mutex, std::try_to_lock);
  if (!lock.owns_lock() || block->size >= kLarge || spare().bytes + block->size > kMostSpare) {
    free_block(block);
    return;
  }
  Blocks& some = spare().any();
  some.add(block);
  spare().bytes += block->size;
}

}  // namespace undertow
