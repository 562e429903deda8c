#include "memory/guarded.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "undertow/memory.h"

namespace undertow {
namespace {

constexpr int64_t kRoom = int64_t{1} << 36;  // bytes of address space; only pages that are written take memory
constexpr int64_t kPage = int64_t{1} << 21;  // bytes: mprotect costs time for each page, so pages are huge
constexpr int64_t kFew = 8 * kPage;          // bytes kept while nothing runs

/// One range of addresses, so that one mprotect opens or closes all of it.
class Arena {
 public:
  std::byte* take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) {
      void* made = mmap(nullptr, kRoom + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (made == MAP_FAILED) throw OverLimit{OverLimit::Kind::OutOfMemory};
      first_ = static_cast<std::byte*>(made) + (kPage - reinterpret_cast<intptr_t>(made) % kPage);
      madvise(first_, kRoom, MADV_HUGEPAGE);  // without huge pages it is only slower
    }
    std::vector<std::byte*>& free = free_[bytes];
    std::byte* data;
    if (!free.empty()) {
      data = free.back();
      free.pop_back();
    } else {
      if (used_ + bytes > kRoom) throw OverLimit{OverLimit::Kind::OutOfMemory};
      data = first_ + used_;
      used_ += bytes;
      if (used_ > grown_) {
        grown_ = (used_ + kPage - 1) / kPage * kPage;
        if (open_ > 0) protect(PROT_READ | PROT_WRITE);
      }
    }
    ++blocks_;
    return data;
  }

  void give(std::byte* data, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[bytes].push_back(data);
    if (--blocks_ > 0) return;
    free_.clear();  // no block is in use: start over at the first page
    used_ = 0;
    if (grown_ <= kFew) return;
    protect(PROT_NONE);
    madvise(first_, static_cast<size_t>(grown_), MADV_DONTNEED);
    grown_ = 0;
  }

  void open() {
    const std::lock_guard lock(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }

  void close() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }

 private:
  void protect(int how) {
    if (grown_ > 0 && mprotect(first_, static_cast<size_t>(grown_), how) != 0) std::abort();
  }

  std::mutex mutex_;  // guards all below
  std::byte* first_ = nullptr;
  int64_t used_ = 0, grown_ = 0;  ///< bytes
  int64_t open_ = 0;              ///< number of Access objects
  int64_t blocks_ = 0;            ///< in use
  std::map<int64_t, std::vector<std::byte*>> free_;
};

Arena& arena() {
  static Arena& made = *new Arena;  // never destroyed: runs may outlive the static objects
  return made;
}

bool wants_guard() {
  const char* wanted = std::getenv("UNDERTOW_MEMORY");
  return wanted != nullptr && std::string_view(wanted) == "guarded";
}

}  // namespace

const bool memory_is_guarded = wants_guard();

std::byte* take_guarded(int64_t bytes) { return arena().take(bytes); }
void give_guarded(std::byte* data, int64_t bytes) { arena().give(data, bytes); }
void Access::open() { arena().open(); }
void Access::close() { arena().close(); }

}  // namespace undertow
