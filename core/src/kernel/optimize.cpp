#include "undertow/optimize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "undertow/elementwise.h"
#include "undertow/size.h"

namespace undertow {
namespace {

template <class T>
void add_row(void* to, const void* row, int64_t width) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(row);
  for (int64_t k = 0; k < width; ++k) out[k] += in[k];
}

/// Row `number` of a sparse gradient, which is for row `place` of the parameter.
struct IndexedRow {
  int64_t place, number;
};

/// Stable sort by place: a radix sort if there are many.
void sort(std::vector<IndexedRow>& all, int64_t length) {
  constexpr int kBits = 11;
  constexpr size_t kFew = 128, kDigits = size_t{1} << kBits;
  if (all.size() < kFew) {
    std::ranges::stable_sort(all, {}, &IndexedRow::place);
    return;
  }
  std::vector<IndexedRow> sorted(all.size());
  std::vector<size_t> first(kDigits + 1);
  int shift = 0;
  for (int64_t most = length - 1; most > 0; most >>= kBits, shift += kBits) {
    const auto digit = [&](const IndexedRow& given) { return z(given.place >> shift) % kDigits; };
    std::ranges::fill(first, 0);
    for (const IndexedRow& given : all) ++first[digit(given) + 1];
    for (size_t k = 1; k < kDigits; ++k) first[k] += first[k - 1];
    for (const IndexedRow& given : all) sorted[first[digit(given)]++] = given;
    std::swap(all, sorted);
  }
}

}  // namespace

void update_rows(const UpdateRule& rule, DType dtype, int64_t count, int64_t width, int64_t length,
                 const int64_t* indices, const void* rows, void* const* tables, const double* settings) {
  const int64_t bytes = width * size_of(dtype);
  const int held = rule.slots + 1;
  const auto row = [&](int64_t k) { return static_cast<const std::byte*>(rows) + k * bytes; };
  const auto change = [&](int64_t index, const void* g) {
    void* out[kMostUpdated] = {};
    for (int k = 0; k < held; ++k) out[k] = static_cast<std::byte*>(tables[k]) + index * bytes;
    rule.update(width, g, out, out, settings);
  };
  const auto place = [&](int64_t k) { return indices[k] < 0 ? indices[k] + length : indices[k]; };
  if (held == 1) {  // without slots the rule is linear in g: rows with the same index need not be summed first
    for (int64_t k = 0; k < count; ++k) change(place(k), row(k));
    return;
  }
  std::vector<IndexedRow> order;
  order.reserve(z(count));
  for (int64_t k = 0; k < count; ++k) order.push_back({place(k), k});
  sort(order, length);
  std::vector<std::byte> total(z(bytes));
  for (size_t k = 0; k < order.size();) {
    size_t next = k + 1;
    const void* g = row(order[k].number);
    for (; next < order.size() && order[next].place == order[k].place; ++next) {
      if (next == k + 1 && bytes > 0) std::memcpy(total.data(), g, z(bytes));
      add_floats(dtype, total.data(), row(order[next].number), width);
    }
    change(order[k].place, next == k + 1 ? g : total.data());
    k = next;
  }
}

}  // namespace undertow
