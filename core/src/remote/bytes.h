// What goes to and fro between machines, number by number. A reader believes nothing of what it reads.
#pragma once

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

class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void all(const std::vector<T>& values) {
    put(static_cast<int64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  /// Room for so many bytes, to be written before anything else is put.
  std::byte* room(int64_t count) {
    const size_t before = bytes_.size();
    bytes_.resize(before + z(count));
    return reinterpret_cast<std::byte*>(bytes_.data() + before);
  }
  void copy(const void* from, int64_t count) { lanes::copy(room(count), from, count); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
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
