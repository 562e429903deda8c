#include "table.h"

#include <algorithm>

namespace undertow::expand {

/// The row of an activation, or the empty one where it would be.
template <bool kIsShared>
typename TablePart<kIsShared>::Row* TablePart<kIsShared>::find(const Path& path, int32_t body) {
  const auto is_other = [&](const Row& row) { return row.record != nullptr && (row.path != path || row.body != body); };
  size_t place = home(path);
  while (is_other(rows_[place])) place = (place + 1) & (size_ - 1);
  return &rows_[place];
}

template <bool kIsShared>
void TablePart<kIsShared>::remove(const Path& path, int32_t body) {
  size_t hole = static_cast<size_t>(find(path, body) - rows_);
  if (rows_[hole].record == nullptr) return;
  --used_;
  for (size_t place = hole;;) {
    place = (place + 1) & (size_ - 1);
    if (rows_[place].record == nullptr) break;
    const size_t wanted = home(rows_[place].path);
    if (((place - wanted) & (size_ - 1)) >= ((place - hole) & (size_ - 1))) {
      rows_[hole] = rows_[place];
      hole = place;
    }
  }
  rows_[hole] = {};
}

template <bool kIsShared>
void TablePart<kIsShared>::grow(Heap<kIsShared>& heap) {
  const size_t before = size_;
  Row* const old = rows_;
  Block* const old_block = block_;
  const size_t size = std::max<size_t>(16, size_ * 2);
  block_ = heap.take(static_cast<int64_t>(size * sizeof(Row)));
  size_ = size;
  rows_ = reinterpret_cast<Row*>(block_->data());
  std::fill(rows_, rows_ + size_, Row{});
  for (size_t place = 0; place < before; ++place)
    if (old[place].record != nullptr) *find(old[place].path, old[place].body) = old[place];
  if (old_block != nullptr) heap.drop(old_block);
}

template class TablePart<false>;
template class TablePart<true>;

}  // namespace undertow::expand
