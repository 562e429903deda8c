// Memory of a run: blocks that are counted, recycled, and kept under a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace undertow {

/// What goes over a limit of the run; the engine says which lanes it happened to.
struct OverLimit {
  enum class Kind : uint8_t { Memory, Frames, Depth, OutOfMemory };
  Kind kind;
  int64_t bytes = 0;  ///< that would be alive
};

/// Memory with a number of users. Its data follow it, 64-byte aligned, and may be read and written up to 64 bytes
/// behind their end.
struct alignas(64) Block {
  int64_t refs;
  int64_t size;           ///< of what was taken from the system, this header included
  Block* next;            ///< in a list of free blocks
  Block *before, *after;  ///< in the list of all blocks

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + sizeof(Block); }
};
static_assert(sizeof(Block) == 64);

/// Blocks by size. Not for several threads.
class Pool {
 public:
  explicit Pool(int64_t limit) : limit_(limit) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  /// A block with room for that many bytes and one user; throws OverLimit.
  Block* take(int64_t bytes);
  void drop(Block* block) {
    if (block != nullptr && --block->refs == 0) recycle(block);
  }
  int64_t live() const { return live_; }
  int64_t room() const { return limit_ - live_; }
  int64_t peak() const { return peak_; }

 private:
  static constexpr int kClasses = 64 + 4 * 40;
  static constexpr int64_t kMost = int64_t{1} << 46;  // bytes of a block: more than any machine has
  static int class_of(int64_t size);
  static int64_t size_of_class(int number);
  void recycle(Block* block);

  Block* free_[kClasses] = {};
  Block* all_ = nullptr;  ///< every block that there is, alive or free: they go with the pool
  int64_t limit_;
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

}  // namespace undertow
