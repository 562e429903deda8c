#include "copy.h"

#include <algorithm>
#include <cstring>

namespace undertow::expand {

void* Arena::fresh(int32_t number) {
  const int64_t bytes = int64_t{number} * 32;
  if (end_ - at_ < bytes) {
    size_ = std::max(std::min<int64_t>(size_ * 2, 1 << 20), bytes);
    at_ = pool_.take(size_)->data();
    end_ = at_ + size_;
  }
  void* found = at_;
  at_ += bytes;
  return found;
}

void Table::put(const Path& path, int32_t body, uint64_t* record) {
  if (used_ * 4 >= size_ * 3) grow();
  *find(path, body) = {path, record, body};
  ++used_;
}

/// The row of an activation, or the empty one where it would be.
Table::Row* Table::find(const Path& path, int32_t body) {
  const auto is_other = [&](const Row& row) { return row.record != nullptr && (row.path != path || row.body != body); };
  size_t place = home(path);
  while (is_other(rows_[place])) place = (place + 1) & (size_ - 1);
  return &rows_[place];
}

void Table::remove(const Path& path, int32_t body) {
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

void Table::grow() {
  const size_t before = size_;
  Row* const old = rows_;
  Block* const old_block = block_;
  const size_t size = std::max<size_t>(16, size_ * 2);
  block_ = pool_.take(static_cast<int64_t>(size * sizeof(Row)));
  size_ = size;
  rows_ = reinterpret_cast<Row*>(block_->data());
  std::fill(rows_, rows_ + size_, Row{});
  for (size_t place = 0; place < before; ++place)
    if (old[place].record != nullptr) *find(old[place].path, old[place].body) = old[place];
  pool_.drop(old_block);
}

}  // namespace undertow::expand
