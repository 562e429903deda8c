// Operators that collect for hoisted values, and how what they collect is added up.
#include "sums.h"

#include <algorithm>
#include <utility>

#include "executor.h"
#include "kernel/sizes.h"
#include "run/values.h"
#include "undertow/elementwise.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

bool is_alike(const View& a, const View& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

constexpr int64_t kLarger = static_cast<int64_t>(std::max(sizeof(Sums), sizeof(Rows)));

Sums*& sums_at(uint64_t& part) { return reinterpret_cast<Sums*&>(part); }
Series* series_in(uint64_t part) { return reinterpret_cast<Series*>(part); }

}  // namespace

/// What an entry was given: what is collected for it has its shape, or that of its rows.
template <bool kIsShared>
View Executor<kIsShared>::given(const Entry* entry, int32_t index) {
  if (entry == nullptr || z(index) >= entry->values.size()) throw Stop{Stop::Kind::Internal};
  const ValueType& slot = type(*entry->caller, entry->row->hoists[z(index)]);
  if (!is_array(slot)) return {nullptr, 0, nullptr, 0, slot.dtype};
  return view_of(array_in(entry->values[z(index)]), slot.rank(), slot.dtype);
}

template <bool kIsShared>
void Executor<kIsShared>::collect(Copy& copy, const Step& step) {
  const Collect& row = plan_.collects[z(step.extra)];
  const View whole = given(copy.entry, row.index);
  const View values = view(copy, row.values[1], 1);
  auto* sums = static_cast<Sums*>(arena_.take(size_number(kLarger)));
  *sums = {nullptr, row.index, !row.is_rows, whole.dtype, whole.rank, 0, nullptr, nullptr};
  const uint64_t value = cell(copy, row.values[1]);
  const bool is_boxed = is_array(values.rank, values.dtype);
  if (row.is_rows) {
    const View numbers = view(copy, row.values[0], 0);
    const bool fits = whole.rank > 0 && values.dtype == whole.dtype && values.rank == numbers.rank + whole.rank - 1 &&
                      std::equal(numbers.shape, numbers.shape + numbers.rank, values.shape) &&
                      std::equal(whole.shape + 1, whole.shape + whole.rank, values.shape + numbers.rank);
    if (!fits) throw Stop{Stop::Kind::Internal};
    auto* rows = static_cast<Rows*>(arena_.take(size_number(kLarger)));
    const uint64_t number = cell(copy, row.values[0]);
    *rows = {nullptr, copy.made_of, &row, is_array(numbers.rank, numbers.dtype) ? shared<kIsShared>(number) : number,
             is_boxed ? shared<kIsShared>(value) : value};
    sums->first = sums->last = rows;
  } else {
    if (!is_alike(values, whole)) throw Stop{Stop::Kind::Internal};
    sums->cell = is_boxed ? shared<kIsShared>(value) : value;
  }
  sums_at(copy.parts()[step.part]) = sums;
}

/// A loop or map is about to be entered, below which something is collected for this copy's entry, or for its own.
template <bool kIsShared>
void Executor<kIsShared>::make_series(Copy& copy, const Entering& row) {
  Series* series = take_from(common_.series);
  series->next = 0;
  series->sums = nullptr;
  copy.parts()[row.part] = reinterpret_cast<uint64_t>(series);
}

/// A copy ends: add up what has been collected in it and below it, in the order of its steps.
template <bool kIsShared>
void Executor<kIsShared>::hand_up(Copy& copy) {
  const Template& made_of = *copy.made_of;
  for (int32_t part : made_of.series) {
    Series* series = series_in(copy.parts()[part]);
    if (series == nullptr) continue;
    sums_at(copy.parts()[part]) = series->sums;
    give_to(common_.series, series);
  }
  Sums* sums = nullptr;
  for (int32_t k = 0; k < made_of.parts; ++k) sums = merged(sums, sums_at(copy.parts()[k]));
  const Entering& row = *copy.row;
  if (row.kind != Entering::Kind::Call) {
    Series& series = *series_in(copy.parent->parts()[row.part]);
    const std::lock_guard lock(series.mutex);
    if (copy.index != series.next) {
      series.early[copy.index] = sums;
      return;
    }
    Sums*& all = row.entry != kNoSlot ? copy.entry->sums : series.sums;
    all = merged(all, sums);
    ++series.next;
    for (auto at = series.early.begin(); at != series.early.end() && at->first == series.next; ++series.next) {
      all = merged(all, at->second);
      at = series.early.erase(at);
    }
  } else if (row.entry != kNoSlot) {
    copy.entry->sums = merged(copy.entry->sums, sums);
  } else {
    sums_at(copy.parent->parts()[row.part]) = sums;
  }
}

/// Add the second to the first, which comes before it. Both are used up.
template <bool kIsShared>
Sums* Executor<kIsShared>::merged(Sums* first, Sums* second) {
  Sums* all = nullptr;
  Sums** end = &all;
  while (first != nullptr && second != nullptr) {
    Sums*& less = second->index < first->index ? second : first;
    Sums* sums = less;
    if (first->index == second->index) {
      Sums* more = second;
      second = second->next;
      add(*first, *more);
      arena_.give(more, size_number(kLarger));
    }
    less = sums->next;
    *end = sums;
    end = &sums->next;
  }
  *end = first != nullptr ? first : second;
  return all;
}

template <bool kIsShared>
void Executor<kIsShared>::add(Sums& to, Sums& more) {
  if (more.first != nullptr) {
    (to.first == nullptr ? to.first : to.last->next) = more.first;
    to.last = more.last;
  }
  if (!more.is_whole) return;
  if (!to.is_whole) {
    to.is_whole = true;
    to.cell = more.cell;
    return;
  }
  if (!is_array(to.rank, to.dtype)) {
    add_floats(to.dtype, &to.cell, &more.cell, 1);
    return;
  }
  const auto is_own = [](uint64_t cell) { return undertow::expand::load<kIsShared>(as_array(cell)->refs) == 1; };
  if (!is_own(to.cell) && is_own(more.cell)) std::swap(to.cell, more.cell);  // a + b has the bits of b + a
  View sum = view_of(as_array(to.cell), to.rank, to.dtype);
  if (!is_own(to.cell)) {  // both are also read elsewhere: copy one before adding to it
    Block* own = make_array(memory_, sum.shape, sum.rank, sum.dtype);
    std::memcpy(data_of(own, sum.rank), sum.data, z(sum.bytes()));
    drop(memory_, as_array(to.cell));
    to.cell = as_cell(own);
    sum = view_of(own, to.rank, to.dtype);
  }
  add_floats(to.dtype, sum.data, data_of(as_array(more.cell), to.rank), sum.count());
  drop(memory_, as_array(more.cell));
}

template <bool kIsShared>
void Executor<kIsShared>::drop_sums(Sums* sums) {
  while (sums != nullptr) {
    if (sums->is_whole && is_array(sums->rank, sums->dtype)) drop(memory_, as_array(sums->cell));
    for (Rows* rows = sums->first; rows != nullptr;) {
      if (is_array(type(*rows->of, rows->row->values[0]))) drop(memory_, as_array(rows->numbers));
      if (is_array(type(*rows->of, rows->row->values[1]))) drop(memory_, as_array(rows->rows));
      arena_.give(std::exchange(rows, rows->next), size_number(kLarger));
    }
    arena_.give(std::exchange(sums, sums->next), size_number(kLarger));
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Reading what was collected

namespace {

/// Rows that were collected, one set after the other: each with its indices.
template <class Each>
void for_each_row(const Sums* sums, Each&& each) {
  for (const Rows* rows = sums == nullptr ? nullptr : sums->first; rows != nullptr; rows = rows->next) {
    const auto view_in = [&](const uint64_t& cell, const ValueType& type) {
      return is_array(type) ? view_of(as_array(cell), type.rank(), type.dtype)
                            : View{const_cast<uint64_t*>(&cell), 0, nullptr, 0, type.dtype};
    };
    each(*rows, view_in);
  }
}

}  // namespace

template <bool kIsShared>
void Executor<kIsShared>::collected(Copy& copy, const Collected& row) {
  Entry* entry = reinterpret_cast<Entry*>(copy.slots[row.entry]);
  const View like = view(copy, row.like, 0);
  if (!is_alike(like, given(entry, row.index))) throw Stop{Stop::Kind::Internal};
  const Sums* sums = entry->sums;
  while (sums != nullptr && sums->index != row.index) sums = sums->next;
  if (row.to[1] != kNoSlot) {
    collected_rows(copy, row, sums, like);
    return;
  }
  const bool is_whole = sums != nullptr && sums->is_whole;
  if (!is_array(like.rank, like.dtype)) {
    copy.slots[row.to[0]] = is_whole ? sums->cell : 0;
    return;
  }
  if (is_whole && sums->first == nullptr) {
    copy.slots[row.to[0]] = shared<kIsShared>(sums->cell);
    return;
  }
  Block* total = make_array(memory_, like.shape, like.rank, like.dtype);
  copy.slots[row.to[0]] = as_cell(total);
  const View out = view_of(total, like.rank, like.dtype);
  if (out.bytes() == 0) return;
  if (is_whole)
    std::memcpy(out.data, data_of(as_array(sums->cell), like.rank), z(out.bytes()));
  else
    std::memset(out.data, 0, z(out.bytes()));
  if (like.rank == 0) return;
  const int64_t width = out.bytes() / like.shape[0];
  for_each_row(sums, [&](const Rows& rows, const auto& view_in) {
    const View numbers = view_in(rows.numbers, type(*rows.of, rows.row->values[0]));
    const View values = view_in(rows.rows, type(*rows.of, rows.row->values[1]));
    const int64_t count = numbers.count();
    for (int64_t k = 0; k < count; ++k) {
      int64_t number = integer_at(numbers, 0, k);
      if (number < 0) number += like.shape[0];
      if (number < 0 || number >= like.shape[0]) throw Stop{Stop::Kind::Internal};
      add_floats(like.dtype, static_cast<std::byte*>(out.data) + number * width,
                 static_cast<const std::byte*>(values.data) + k * width, width / size_of(like.dtype));
    }
  });
}

/// Indices and rows in the order in which they were collected, then every row of the sum of whole arrays, if any.
template <bool kIsShared>
void Executor<kIsShared>::collected_rows(Copy& copy, const Collected& row, const Sums* sums, const View& like) {
  const int64_t all = sums != nullptr && sums->is_whole ? like.shape[0] : 0;
  int64_t count = all;
  for_each_row(sums, [&](const Rows& rows, const auto& view_in) {
    count += view_in(rows.numbers, type(*rows.of, rows.row->values[0])).count();
  });
  Block* numbers = make_array(memory_, &count, 1, DType::I64);
  if (row.to[0] != kNoSlot) copy.slots[row.to[0]] = as_cell(numbers);
  std::vector<int64_t> shape(like.shape, like.shape + like.rank);
  shape[0] = count;
  Block* made = make_array(memory_, shape.data(), like.rank, like.dtype);
  copy.slots[row.to[1]] = as_cell(made);
  auto* to = reinterpret_cast<int64_t*>(data_of(numbers, 1));
  std::byte* out = data_of(made, like.rank);
  for_each_row(sums, [&](const Rows& rows, const auto& view_in) {
    const View own = view_in(rows.numbers, type(*rows.of, rows.row->values[0]));
    const View values = view_in(rows.rows, type(*rows.of, rows.row->values[1]));
    const int64_t more = own.count();
    for (int64_t k = 0; k < more; ++k) *to++ = integer_at(own, 0, k);
    if (values.bytes() > 0) std::memcpy(out, values.data, z(values.bytes()));
    out += values.bytes();
  });
  for (int64_t k = 0; k < all; ++k) *to++ = k;
  if (all > 0 && like.bytes() > 0) std::memcpy(out, data_of(as_array(sums->cell), like.rank), z(like.bytes()));
}

template class Executor<false>;
template class Executor<true>;

}  // namespace undertow::expand
