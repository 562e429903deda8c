// Memory of runs: reference-counted blocks, recycled within a run and by the next one, under a limit.
//
// Values of lanes may live outside the host's memory: one day on a device, today in the guarded memory of tests. Only
// kernels and the functions in lanes.h touch them: see docs/design/0013-memory.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace undertow {

/// Thrown when a limit of the run is exceeded; the engine adds where.
struct OverLimit {
  enum class Kind : uint8_t { Memory, Frames, Depth, OutOfMemory };
  Kind kind;
  int64_t bytes = 0;  ///< that would be live
};

/// Where values live. Those that feed predicates, indices or shapes are the host's; the rest only kernels need. Moving
/// a value between slots does not fetch it: so some floats of host slots may be away, and reading them needs an Access.
enum class Home : uint8_t { Host, Lanes };

/// Reference-counted memory. Its data are 64-byte aligned, and may be read and written up to 64 bytes past their end.
/// They follow this header, unless they are away from the host.
struct alignas(64) Block {
  int64_t refs;
  int64_t size;           ///< bytes taken from the system, with this header
  Block* next;            ///< in a list of free blocks
  Block *before, *after;  ///< in the list of those in use
  std::byte* at = behind();

  std::byte* data() { return at; }
  std::byte* behind() { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
  bool is_away() { return at != behind(); }
};
static_assert(sizeof(Block) == 64);

/// Is the memory of lanes guarded, so that the host faults if it touches it without an Access? Chosen for a process by
/// UNDERTOW_MEMORY=guarded in its environment. Threads share one guard: while one has access, all have.
extern const bool memory_is_guarded;

/// While it exists, the host may touch values of lanes. One for each batch, around kernels and in lanes.h; they nest.
class Access {
 public:
  Access() {
    if (memory_is_guarded) [[unlikely]]
      open();
  }
  ~Access() {
    if (memory_is_guarded) [[unlikely]]
      close();
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

 private:
  static void open();
  static void close();
};

/// Blocks: free ones by size, and those in use.
class Blocks {
 public:
  /// A free block with room for that many bytes, or one that nobody uses any more, or a new one; throws OverLimit where
  /// the system has no more.
  Block* take(int64_t bytes, Home home = Home::Host);
  Block* pop(int64_t size);  ///< a free one of that size, which is then the caller's; null if there is none
  /// Make a block that is in use free: to be taken again.
  void put(Block* block) {
    unlink(block);
    if (block->is_away()) [[unlikely]]
      free_away(block);
    else
      push(block);
  }
  /// Free all blocks in use. Free ones are not visited: after a deep run there may be a million.
  void put_all() {
    while (used_ != nullptr) put(used_);
  }
  void add(Block* block);     ///< as a free one
  void remove(Block* block);  ///< one that is in use: it is the caller's
  void accept(Block* block);  ///< one that is in use, and was removed from others
  /// Give free ones back to the system, the largest first, until no more than so many bytes are left.
  void trim(int64_t most);
  int64_t bytes() const { return bytes_; }
  static int64_t size_for(int64_t bytes);  ///< of a block with room for them

 private:
  static constexpr int kClasses = 64 + 4 * 40;
  static int class_of(int64_t size);
  void free_away(Block* block);
  static int64_t size_of_class(int number);
  void push(Block* block) {
    Block*& first = free_[class_of(block->size)];
    block->next = first;
    first = block;
  }
  void link(Block* block) {
    block->before = nullptr;
    block->after = used_;
    if (used_ != nullptr) used_->before = block;
    used_ = block;
  }
  void unlink(Block* block) {
    (block->before != nullptr ? block->before->after : used_) = block->after;
    if (block->after != nullptr) block->after->before = block->before;
  }

  Block* free_[kClasses] = {};
  Block* used_ = nullptr;
  int64_t bytes_ = 0;  ///< of all
};

/// What several threads may take together, of bytes or of frames.
class Budget {
 public:
  explicit Budget(int64_t most) : left_(most) {}

  /// Take so many, and some more if there are: asking often would cost. Returns how many were taken; 0: too many.
  int64_t take(int64_t count, int64_t more) {
    for (const int64_t wanted : {count + more, count}) {
      if (left_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return wanted;
      left_.fetch_add(wanted, std::memory_order_relaxed);
    }
    return 0;
  }
  void give(int64_t count) { left_.fetch_add(count, std::memory_order_relaxed); }
  int64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

/// The blocks of one run; not thread-safe. They are kept for the next run: fresh memory costs a fault for each page.
class Pool {
 public:
  /// With a limit of its own, or with a budget that it shares.
  explicit Pool(int64_t limit, Budget* budget = nullptr);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// A block with room for that many bytes, and one reference; throws OverLimit.
  Block* take(int64_t bytes, Home home = Home::Host);
  void drop(Block* block) {
    if (block != nullptr && --block->refs == 0) recycle(block);
  }
  /// Take a block with one reference out of the pool: the caller owns it, and gives it to a Buffer.
  void release(Block* block);
  /// The opposite: a block that another pool has released is taken into this one.
  void adopt(Block* block);
  /// Others use so many bytes of what this pool may take: fewer, if negative.
  void lend(int64_t bytes) { limit_ -= bytes; }
  void measure() { peak_ = live_; }
  /// Give back to the budget what is not in use.
  void give_back() {
    if (budget_ != nullptr) budget_->give(std::exchange(limit_, live_) - live_);
  }
  void reached(int64_t bytes) { peak_ = peak_ > live_ + bytes ? peak_ : live_ + bytes; }
  int64_t live() const { return live_; }
  int64_t room() const { return limit_ - live_ + (budget_ != nullptr ? budget_->left() : 0); }
  int64_t peak() const { return peak_; }

 private:
  void recycle(Block* block);
  void extend(int64_t size);

  Blocks blocks_;
  Budget* budget_;
  int64_t limit_;  ///< or what it has taken of the budget
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

/// Bytes in a block that belongs to no pool.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Block* block, size_t size) : block_(block), size_(size) {}  ///< of a block that a pool has released
  Buffer(const Buffer& other);
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { give_back(block_); }

  void resize(size_t size);  ///< discards the contents
  std::byte* data() { return block_ == nullptr ? nullptr : block_->data(); }
  const std::byte* data() const { return block_ == nullptr ? nullptr : block_->data(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Hand the block to a new owner, who gives it back by `give_back`.
  Block* leave() {
    size_ = 0;
    return std::exchange(block_, nullptr);
  }
  static void give_back(Block* block) noexcept;

 private:
  Block* block_ = nullptr;
  size_t size_ = 0;
};

}  // namespace undertow
