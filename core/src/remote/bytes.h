// What goes to and fro between machines, number by number. A reader believes nothing of what it reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/lanes.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow::remote {

/// Bytes one after the other, in memory that may be used again. Small values are most of what is put, so nothing is
/// called for them.
class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(T value) {
    std::memcpy(room(sizeof value), &value, sizeof value);
  }
  template <class T>
  void all(const std::vector<T>& values) {
    put(static_cast<int64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  /// Room for so many bytes, to be written before anything else is put.
  std::byte* room(int64_t count) {
    const size_t before = size_;
    size_ += z(count);
    if (size_ > memory_.size()) memory_.resize(std::max({size_, 2 * memory_.size(), kLeast}));
    return reinterpret_cast<std::byte*>(memory_.data() + before);
  }
  void copy(const void* from, int64_t count) {
    if (size_ + z(count) <= memory_.size() || z(count) < kLeast) {
      lanes::copy(room(count), from, count);
      return;
    }
    memory_.resize(size_);
    const Access access;
    memory_.append(static_cast<const char*>(from), z(count));  // into memory that nobody fills with zeros before
    size_ = memory_.size();
  }
  std::string take() {
    memory_.resize(std::exchange(size_, 0));
    return std::exchange(memory_, {});
  }

  int64_t size() const { return static_cast<int64_t>(size_); }
  /// Give away the memory, of which the first `size` bytes are what was put, and begin anew in other memory.
  std::string exchange(std::string memory) {
    size_ = 0;
    return std::exchange(memory_, std::move(memory));
  }

 private:
  static constexpr size_t kLeast = 256;
  std::string memory_;
  size_t size_ = 0;  // what was put: the rest of the memory is room
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    std::memcpy(&value, part(sizeof value), sizeof value);
    return value;
  }
  bool flag() { return between<uint8_t>(get<uint8_t>(), 0, 1) != 0; }
  template <class T>
  static T between(T value, T least, T most) {
    if (value < least || value > most) throw BadMessage("a number is out of range");
    return value;
  }
  template <class T>
  T between(T least, T most) {
    return between(get<T>(), least, most);
  }
  /// How many items follow, each of so many bytes at least.
  int64_t count(int64_t least = 1) {
    const auto found = get<int64_t>();
    if (found < 0 || found > static_cast<int64_t>(left_.size()) / least) throw BadMessage("it is too short");
    return found;
  }
  template <class T>
  std::vector<T> all() {
    std::vector<T> values(z(count(sizeof(T))));
    for (T& value : values) value = get<T>();
    return values;
  }
  const std::byte* part(int64_t count) {
    if (count < 0 || count > static_cast<int64_t>(left_.size())) throw BadMessage("it is too short");
    const std::byte* at = left_.data();
    left_ = left_.subspan(z(count));
    return at;
  }
  int64_t left() const { return static_cast<int64_t>(left_.size()); }
  void end() const {
    if (!left_.empty()) throw BadMessage("bytes are left over at its end");
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace undertow::remote
