#include "undertow/memory.h"

#include <algorithm>
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
constexpr int64_t kLarge = int64_t{1} << 26;      // bytes of a block that goes back to the system when it is dropped
constexpr int64_t kMostSpare = int64_t{1} << 28;  // bytes kept while nothing runs

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
constexpr int64_t kFewBytes = int64_t{1} << 20;  // not worth giving back

/// What is kept while nothing runs: the blocks that each run, or each thread of one, has left; and loose ones, of
/// results that nobody uses any more. Not more than runs have needed lately. Nobody waits for it: who finds it taken
/// gets fresh memory, and gives it back to the system. (So a process that was forked at a bad moment does not wait for
/// ever.)
class Spare {
 public:
  /// The blocks that a run begins with.
  void begin(Blocks& blocks) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || sets_.empty()) return;
    blocks = sets_.back();
    sets_.pop_back();
    bytes_ -= blocks.bytes();
    idle_ = std::min(idle_, sets_.size());
  }

  /// A run is over that has used so many bytes at most.
  void end(Blocks& blocks, int64_t peak) {
    blocks.put_all();  // of a run that was stopped
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || sets_.size() == kMostSets) {
      blocks.trim(0);
      return;
    }
    needed_ = std::max(peak, needed_ - needed_ / 4096);
    if (blocks.bytes() > room()) blocks.trim(room());
    bytes_ += blocks.bytes();
    sets_.push_back(blocks);
    if (++ended_ % 1024 == 0) tidy();
  }

  /// A loose block of a size; null if there is none.
  Block* take(int64_t size) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    Block* block = loose_.pop(size);
    if (block != nullptr) bytes_ -= size;
    return block;
  }

  void give(Block* block) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || loose_.bytes() + block->size > room()) {
      free_block(block);
      return;
    }
    loose_.add(block);
    bytes_ += block->size;
  }

 private:
  /// Bytes that are worth keeping in one place: two programs that take turns may need blocks of different sizes.
  int64_t room() const { return std::min(2 * needed_ + kFewBytes, kMostSpare - bytes_); }

  /// Sets that no run has begun with for a while are those of threads that are gone.
  void tidy() {
    for (size_t k = 0; k < idle_; ++k) {
      bytes_ -= sets_[k].bytes();
      sets_[k].trim(0);
    }
    sets_.erase(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(idle_));
    idle_ = sets_.size();
    bytes_ -= loose_.bytes();
    loose_.trim(room());
    bytes_ += loose_.bytes();
  }

  std::mutex mutex_;          // of all that follows
  std::vector<Blocks> sets_;  // the last is taken first
  Blocks loose_;
  int64_t bytes_ = 0;   // of all
  int64_t needed_ = 0;  // by the run that needed most; slowly forgotten
  int64_t ended_ = 0;   // runs
  size_t idle_ = 0;     // sets that were never taken since it was tidied up
};

Spare& spare() {
  static Spare& all = *new Spare;  // never destroyed: arrays may outlive the static objects
  return all;
}

/// A loose one, or a new one.
Block* unused_block(int64_t size) {
  Block* block = spare().take(size);
  return block != nullptr ? block : new_block(size, size - static_cast<int64_t>(sizeof(Block)));
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

Block* Blocks::pop(int64_t size) {
  Block*& first = free_[class_of(size)];
  Block* block = first;
  if (block == nullptr) return nullptr;
  first = block->next;
  bytes_ -= size;
  return block;
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
    block = unused_block(size);
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

void Blocks::accept(Block* block) {
  link(block);
  bytes_ += block->size;
}

void Blocks::free_away(Block* block) {
  bytes_ -= block->size;
  free_block(block);
}

void Blocks::trim(int64_t most) {
  for (int number = kClasses; number-- > 0 && bytes_ > most;)
    while (free_[number] != nullptr && bytes_ > most) {
      Block* block = std::exchange(free_[number], free_[number]->next);
      bytes_ -= block->size;
      free_block(block);
    }
}

Pool::Pool(int64_t limit, Budget* budget) : budget_(budget), limit_(budget != nullptr ? 0 : limit) {
  spare().begin(blocks_);
}

Pool::~Pool() {
  spare().end(blocks_, peak_);
  if (budget_ != nullptr) budget_->give(limit_);
}

/// Take more of the budget: there must be room for another block.
void Pool::extend(int64_t size) {
  constexpr int64_t kMore = int64_t{1} << 18;
  if (budget_ != nullptr) limit_ += budget_->take(live_ + size - limit_, kMore);
  if (live_ + size > limit_) throw OverLimit{OverLimit::Kind::Memory, live_ + size};
}

Block* Pool::take(int64_t bytes, Home home) {
  const int64_t size = Blocks::size_for(bytes);
  if (live_ + size > limit_) [[unlikely]]
    extend(size);
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

void Pool::adopt(Block* block) {
  blocks_.accept(block);
  live_ += block->size;
  peak_ = std::max(peak_, live_);
}

Buffer::Buffer(const Buffer& other) {
  resize(other.size_);
  if (size_ > 0) std::memcpy(data(), other.data(), size_);
}

void Buffer::resize(size_t size) {
  give_back(std::exchange(block_, nullptr));
  size_ = size;
  if (size == 0) return;
  block_ = unused_block(Blocks::size_for(static_cast<int64_t>(size)));
  block_->refs = 1;
}

void Buffer::give_back(Block* block) noexcept {
  if (block == nullptr) return;
  if (block->size >= kLarge)
    free_block(block);
  else
    spare().give(block);
}

}  // namespace undertow
