// Memory of a run: one pool, what each thread keeps of it for itself, and pieces of equal size for copies.
//
// A run on one thread (kIsShared false) takes no lock and keeps nothing apart.
#pragma once

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

#include "array.h"
#include "undertow/memory.h"

namespace undertow::expand {

struct NoMutex {
  void lock() {}
  void unlock() {}
};

template <bool kIsShared>
using MutexOf = std::conditional_t<kIsShared, std::mutex, NoMutex>;

/// The pool of a run. Its lock is innermost: who holds it takes no other.
template <bool kIsShared>
class Heap {
 public:
  static constexpr bool kShared = kIsShared;

  explicit Heap(int64_t limit) : limit_(limit), pool_(limit) {}

  Block* take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    return pool_.take(bytes);
  }
  void drop(Block* block) {
    if constexpr (kIsShared) {
      if (take_one<true>(block->refs) == 0) give(block);
    } else {
      pool_.drop(block);
    }
  }
  /// A block that nobody refers to any more.
  void give(Block* block) {
    const std::lock_guard lock(mutex_);
    block->refs = 1;
    pool_.drop(block);
  }
  int64_t live() {
    const std::lock_guard lock(mutex_);
    return pool_.live();
  }
  int64_t peak() {
    const std::lock_guard lock(mutex_);
    return pool_.peak();
  }
  int64_t limit() const { return limit_; }

 private:
  const int64_t limit_;
  MutexOf<kIsShared> mutex_;
  Pool pool_;  // guarded by the mutex
};

/// The blocks that one thread has dropped and will take again, in front of the heap that all threads share. What it
/// keeps counts as used; it is given back where the heap has no more.
class Magazine {
 public:
  static constexpr bool kShared = true;

  explicit Magazine(Heap<true>& heap) : heap_(heap), most_(std::min(kMost, heap.limit() / 256)) {}

  Block* take(int64_t bytes) {
    const int64_t size = Blocks::size_for(bytes);
    if (List* list = find(size); list != nullptr && list->first != nullptr) {
      Block* block = list->first;
      list->first = block->next;
      kept_ -= size;
      block->refs = 1;
      return block;
    }
    try {
      return heap_.take(bytes);
    } catch (const OverLimit&) {
      if (kept_ == 0) throw;
    }
    give_back();
    return heap_.take(bytes);
  }
  void drop(Block* block) {
    if (take_one<true>(block->refs) == 0) keep(block);
  }

 private:
  struct List {
    int64_t size;
    Block* first;
  };
  static constexpr int64_t kMost = int64_t{1} << 21;  // bytes
  static constexpr size_t kSizes = 32;                // a run has few sizes of arrays

  List* find(int64_t size) {
    for (size_t k = 0; k < count_; ++k)
      if (lists_[k].size == size) return &lists_[k];
    return nullptr;
  }
  void keep(Block* block) {
    List* list = find(block->size);
    if (kept_ + block->size > most_ || (list == nullptr && count_ == kSizes)) {
      heap_.give(block);
      return;
    }
    if (list == nullptr) list = &(lists_[count_++] = {block->size, nullptr});
    block->next = list->first;
    list->first = block;
    kept_ += block->size;
  }
  void give_back() {
    for (size_t k = 0; k < count_; ++k)
      while (lists_[k].first != nullptr) {
        Block* block = lists_[k].first;
        lists_[k].first = block->next;
        heap_.give(block);
      }
    kept_ = 0;
  }

  Heap<true>& heap_;
  const int64_t most_;
  int64_t kept_ = 0;  // bytes
  List lists_[kSizes];
  size_t count_ = 0;
};

template <bool kIsShared>
using MemoryOf = std::conditional_t<kIsShared, Magazine, Heap<false>>;

/// A piece that is free, or the first of several.
struct Piece {
  Piece* next;
};

/// Free pieces that threads have handed in for others, as lists of equal length: a thread may free what another made.
class Stash {
 public:
  static constexpr int32_t kBatch = 64;

  void put(int32_t number, Piece* first) {
    const std::lock_guard lock(mutex_);
    if (static_cast<size_t>(number) >= lists_.size()) lists_.resize(static_cast<size_t>(number) + 1);
    lists_[static_cast<size_t>(number)].push_back(first);
  }
  Piece* take(int32_t number) {
    const std::lock_guard lock(mutex_);
    if (static_cast<size_t>(number) >= lists_.size() || lists_[static_cast<size_t>(number)].empty()) return nullptr;
    Piece* first = lists_[static_cast<size_t>(number)].back();
    lists_[static_cast<size_t>(number)].pop_back();
    return first;
  }

 private:
  std::mutex mutex_;  // guards the lists; no other lock is taken under it
  std::vector<std::vector<Piece*>> lists_;
};

/// The size class of a piece, computed once for each template rather than at each call.
inline int32_t size_number(int64_t bytes) { return static_cast<int32_t>((bytes + 31) / 32); }

/// Memory for copies and records, of one thread: a free list for each size class.
template <bool kIsShared>
class Arena {
 public:
  Arena(Heap<kIsShared>& heap, Stash& stash) : heap_(heap), stash_(stash) {}

  void reserve(int32_t number) {
    if (static_cast<size_t>(number) >= free_.size()) free_.resize(static_cast<size_t>(number) + 1);
  }
  void* take(int32_t number) {  ///< which must have been reserved
    List& list = free_[static_cast<size_t>(number)];
    if (list.first == nullptr) [[unlikely]]
      return fresh(number);
    Piece* found = list.first;
    list.first = found->next;
    if constexpr (kIsShared) --list.count;
    return found;
  }
  void give(void* object, int32_t number) {
    List& list = free_[static_cast<size_t>(number)];
    Piece* piece = static_cast<Piece*>(object);
    piece->next = list.first;
    list.first = piece;
    if constexpr (kIsShared)
      if (++list.count == 2 * Stash::kBatch) share(number);
  }

 private:
  struct List {
    Piece* first = nullptr;
    int32_t count = 0;  ///< if threads share
  };

  void* fresh(int32_t number) {
    if constexpr (kIsShared)
      if (Piece* first = stash_.take(number)) {
        free_[static_cast<size_t>(number)] = {first->next, Stash::kBatch - 1};
        return first;
      }
    const int64_t bytes = int64_t{number} * 32;
    if (end_ - at_ < bytes) {
      size_ = std::max(std::min<int64_t>(size_ * 2, 1 << 20), bytes);
      at_ = heap_.take(size_)->data();
      end_ = at_ + size_;
    }
    void* found = at_;
    at_ += bytes;
    return found;
  }
  void share(int32_t number) {
    List& list = free_[static_cast<size_t>(number)];
    Piece* const first = list.first;
    Piece* last = first;
    for (int32_t k = 1; k < Stash::kBatch; ++k) last = last->next;
    list = {last->next, Stash::kBatch};
    last->next = nullptr;
    stash_.put(number, first);
  }

  Heap<kIsShared>& heap_;
  Stash& stash_;
  std::vector<List> free_;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  int64_t size_ = 128;
};

}  // namespace undertow::expand
