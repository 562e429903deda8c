#include "run/entries.h"

#include "kernel/sizes.h"
#include "memory/lanes.h"
#include "run/values.h"
#include "undertow/elementwise.h"
#include "undertow/isa.h"
#include "undertow/matmul.h"
#include "undertow/size.h"

namespace undertow {
namespace {

Entry& entry_at(const Table& table, int64_t lane, int32_t index) {
  Entry* entry = entry_of(table, lane);
  if (entry == nullptr || z(index) >= entry->values.size()) throw Stop{Stop::Kind::Internal};
  return *entry;
}

constexpr Home kHome = Home::Lanes;  // of sums: like the floats that they sum, they live with the lanes

Block* copy_of(Tables& tables, const void* data, int64_t bytes, Home home) {
  Block* block = tables.pool.take(bytes, home);
  lanes::copy(block->data(), data, bytes);
  return block;
}

/// Prepare a sum for adding to it; true if it is new, and must be written instead.
bool is_new(Tables& tables, Sum& sum, int64_t bytes) {
  if (sum.whole == nullptr) {
    sum.whole = tables.pool.take(bytes, kHome);
    sum.bytes = bytes;
    return true;
  }
  if (sum.bytes != bytes) throw Stop{Stop::Kind::Internal};
  if (sum.whole->refs > 1) {  // also read elsewhere: copy before adding to it
    Block* copy = copy_of(tables, sum.whole->data(), bytes, kHome);
    tables.pool.drop(sum.whole);
    sum.whole = copy;
  }
  return false;
}

/// Add the values of lanes, in order.
void collect_whole(Tables& tables, Sum& sum, int64_t lanes, const View& value) {
  const int64_t bytes = value.bytes(), count = value.count();
  int64_t done = 0;
  if (lanes > 0 && is_new(tables, sum, bytes)) {
    lanes::copy(sum.whole->data(), value.data, bytes);
    done = 1;
  }
  for (; done < lanes; ++done) add_floats(value.dtype, sum.whole->data(), value.lane<void>(done), count);
}

/// Append rows of lanes and their indices. If a column holds just these rows, it is not copied: `owner` is its block.
void collect_rows(Tables& tables, Sum& sum, int64_t lanes, const View& numbers, const View& rows, Block* owner) {
  const int64_t bytes = rows.bytes(), count = numbers.count();
  Sum::Rows made{lanes * count, lanes * bytes, nullptr, nullptr};
  made.numbers = tables.pool.take(8 * made.count);
  int64_t* to = reinterpret_cast<int64_t*>(made.numbers->data());
  for (int64_t lane = 0; lane < lanes; ++lane)
    for (int64_t k = 0; k < count; ++k) *to++ = integer_at(numbers, lane, k);
  if (owner != nullptr && owner->data() == rows.data && (lanes == 1 || rows.stride == bytes)) {
    ++owner->refs;
    made.rows = owner;
  } else {
    made.rows = tables.pool.take(made.bytes, kHome);
    lanes::join(made.rows->data(), lanes, bytes, [&](int64_t lane) { return rows.lane<void>(lane); });
  }
  sum.rows.push_back(made);
}

/// The rows of an operand of a collected product: a vector is one row.
View rows_of(View x, int64_t rows) {
  if (x.rank > 1) {
    ++x.shape;
    --x.rank;
    x.stride = rows == 1 ? x.stride : x.bytes();
  }
  return x;
}

/// Add the sum over lanes of transpose(x) @ g: one product for all lanes, if their rows are contiguous.
void collect_product(Tables& tables, Sum& sum, int64_t lanes, const View& x, const View& g, Scratch& scratch) {
  const int64_t rows = x.rank > 1 ? x.shape[0] : 1;
  const bool is_one = rows == 1 || lanes == 1 || (x.stride == x.bytes() && g.stride == g.bytes());
  for (int64_t k = 0; k < (is_one ? 1 : lanes); ++k) {
    View left = x, right = g;
    left.data = x.lane<void>(k);
    right.data = g.lane<void>(k);
    left = rows_of(left, rows);
    right = rows_of(right, rows);
    const bool adds = !is_new(tables, sum, left.count() * right.count() * size_of(x.dtype));
    accumulate_outer(functions(), is_one ? lanes * rows : rows, left, right, sum.whole->data(), adds, scratch);
  }
}

/// Put a value into a lane of a slot; takes ownership of the block.
void put_block(Tables& tables, Table& table, int32_t number, int64_t lane, Block* block,
               std::span<const int64_t> shape) {
  const Slot& slot = table.region->slots[z(number)];
  if (block->is_away() && slot.home == Home::Host) {
    Block* here = copy_of(tables, block->data(), block->size - 128, Home::Host);
    tables.pool.drop(block);
    block = here;
  }
  if (!slot.is_dynamic && slot.offset < 0 && table.lanes == 1) {
    tables.drop(table, number);
    table.columns[number] = {block, block->data(), 0};
    return;
  }
  std::byte* out = tables.own(table, number, table.lanes == 1);
  if (slot.is_dynamic) {
    reinterpret_cast<Box*>(out)[lane] = {block, block->data(), tables.shape(shape)};
    return;
  }
  lanes::copy(out + lane * slot.bytes, block->data(), slot.bytes);
  tables.pool.drop(block);
}

void give_sum(Tables& tables, Table& table, const CollectedItem& item, int64_t lane, const Sum& sum, const View& like) {
  const int64_t bytes = like.bytes(), length = like.rank > 0 ? like.shape[0] : 1;
  const int64_t row = length == 0 ? 0 : like.count() / length, row_bytes = row * size_of(like.dtype);
  Block* total = sum.whole;
  if (sum.whole != nullptr && sum.rows.empty()) {
    ++total->refs;
  } else if (sum.whole != nullptr) {
    total = copy_of(tables, sum.whole->data(), bytes, kHome);
  } else {
    total = tables.pool.take(bytes, kHome);
    lanes::zero(total->data(), bytes);
  }
  const Access access;
  for (const Sum::Rows& rows : sum.rows) {
    const int64_t* numbers = reinterpret_cast<const int64_t*>(rows.numbers->data());
    if (rows.bytes != rows.count * row_bytes) throw Stop{Stop::Kind::Internal};
    for (int64_t k = 0; k < rows.count; ++k) {
      const int64_t n = numbers[k] < 0 ? numbers[k] + length : numbers[k];
      if (n < 0 || n >= length) throw Stop{Stop::Kind::Internal};
      add_floats(like.dtype, total->data() + n * row_bytes, rows.rows->data() + k * row_bytes, row);
    }
  }
  put_block(tables, table, item.to[0], lane, total, {like.shape, z(like.rank)});
}

/// Write indices and rows in the order in which they were collected; then every row of the sum of whole arrays, if any.
void give_rows(Tables& tables, Table& table, const CollectedItem& item, int64_t lane, const Sum& sum,
               const View& like) {
  const int64_t length = like.shape[0];
  const int64_t row_bytes = undertow::row_bytes(like.dtype, like.shape, like.rank);
  int64_t count = sum.whole != nullptr ? length : 0;
  for (const Sum::Rows& rows : sum.rows) {
    if (rows.bytes != rows.count * row_bytes) throw Stop{Stop::Kind::Internal};
    count += rows.count;
  }
  std::vector<int64_t> shape(like.shape, like.shape + like.rank);
  shape[0] = count;
  if (sum.whole == nullptr && sum.rows.size() == 1) {  // not copied: collected rows are never written to
    for (Block* block : {sum.rows[0].numbers, sum.rows[0].rows}) ++block->refs;
    put_block(tables, table, item.to[0], lane, sum.rows[0].numbers, {&count, 1});
    put_block(tables, table, item.to[1], lane, sum.rows[0].rows, shape);
    return;
  }
  Block* numbers = tables.pool.take(8 * count);
  Block* all = tables.pool.take(count * row_bytes, kHome);
  int64_t* number = reinterpret_cast<int64_t*>(numbers->data());
  std::byte* to = all->data();
  for (const Sum::Rows& rows : sum.rows) {
    lanes::copy(number, rows.numbers->data(), 8 * rows.count);
    lanes::copy(to, rows.rows->data(), rows.bytes);
    number += rows.count;
    to += rows.bytes;
  }
  if (sum.whole != nullptr) {
    for (int64_t k = 0; k < length; ++k) number[k] = k;
    lanes::copy(to, sum.whole->data(), sum.bytes);
  }
  put_block(tables, table, item.to[0], lane, numbers, {&count, 1});
  put_block(tables, table, item.to[1], lane, all, shape);
}

}  // namespace

void read_entry(Tables& tables, Table& table, const ReadItem& item) {
  const Slot& slot = table.region->slots[z(item.to)];
  const auto at = z(item.index);
  const auto given = [&](const Entry& entry) -> const Slot& {
    return tables.slot(*entry.region, entry.item->hoists[at]);
  };
  const Entry& first = entry_at(table, 0, item.index);
  bool is_same = true;
  for (int64_t k = 1; table.entry == nullptr && k < table.lanes && is_same; ++k)
    is_same = entry_at(table, k, item.index).values[at].data == first.values[at].data;
  if (is_same) {
    tables.take(table, item.to, given(first), first.values[at], nullptr, 1);
    return;
  }
  tables.own(table, item.to);
  for (int64_t k = 0; k < table.lanes; ++k) {
    const Entry& entry = entry_at(table, k, item.index);
    tables.put(slot, table.columns[item.to].from(k), nullptr, given(entry), entry.values[at], 1);
  }
}

void collect_lanes(Tables& tables, Entry& entry, const CollectItem& item, int64_t lanes, const View* values,
                   Block* owner, Scratch& scratch) {
  if (z(item.index) >= entry.sums.size()) throw Stop{Stop::Kind::Internal};
  Sum& sum = entry.sums[z(item.index)];
  const Access access;
  if (item.kind == CollectKind::Product)
    collect_product(tables, sum, lanes, values[0], values[1], scratch);
  else if (item.kind == CollectKind::Rows)
    collect_rows(tables, sum, lanes, values[0], values[1], owner);
  else
    collect_whole(tables, sum, lanes, values[0]);
}

void take_partials(Tables& tables, Entry& from, Entry& entry, std::vector<Partial>& partials) {
  const auto moved = [&](Block* block, int64_t bytes) {
    if (block->refs == 1 && !block->is_away()) {
      tables.pool.release(block);
      return Buffer(block, z(bytes));
    }
    Buffer made;
    made.resize(z(bytes));
    lanes::copy(made.data(), block->data(), bytes);
    tables.pool.drop(block);
    return made;
  };
  for (size_t index = 0; index < from.sums.size(); ++index) {
    Sum& sum = from.sums[index];
    if (sum.whole != nullptr) partials.push_back({&entry, index, false, {}, moved(sum.whole, sum.bytes)});
    for (const Sum::Rows& rows : sum.rows)
      partials.push_back({&entry, index, true, moved(rows.numbers, 8 * rows.count), moved(rows.rows, rows.bytes)});
    sum = {};
  }
}

void add_partial(Tables& tables, Partial& partial) {
  Entry& entry = *partial.entry;
  Sum& sum = entry.sums[partial.index];
  const auto size = [](const Buffer& buffer) { return static_cast<int64_t>(buffer.size()); };
  const auto taken = [&](Buffer& buffer) {
    Block* block = buffer.leave();
    tables.pool.adopt(block);
    return block;
  };
  if (partial.is_rows) {
    Sum::Rows made{size(partial.numbers) / 8, size(partial.values), nullptr, nullptr};
    made.numbers = taken(partial.numbers);
    made.rows = taken(partial.values);
    sum.rows.push_back(made);
    return;
  }
  const int64_t bytes = size(partial.values);
  if (sum.whole == nullptr) {
    sum.bytes = bytes;
    sum.whole = taken(partial.values);
    return;
  }
  is_new(tables, sum, bytes);
  const DType dtype = tables.slot(*entry.region, entry.item->hoists[partial.index]).dtype;
  const Access access;
  add_floats(dtype, sum.whole->data(), partial.values.data(), bytes / size_of(dtype));
}

void collect_into_entries(Tables& tables, Table& table, const CollectItem& item, Scratch& scratch) {
  const bool is_open =
      tables.slot(*table.region, item.values[0]).is_dynamic || tables.slot(*table.region, item.values[1]).is_dynamic;
  const bool is_one = table.entry != nullptr && !is_open && table.lanes > 0;
  const Column columns[2] = {tables.column(table, item.values[0]), tables.column(table, item.values[1])};
  for (int64_t k = 0; k < (is_one ? 1 : table.lanes); ++k) {
    View views[2] = {tables.view(table, item.values[0], k), tables.view(table, item.values[1], k)};
    if (is_one)
      for (int side = 0; side < 2; ++side) views[side].stride = columns[side].stride;
    collect_lanes(tables, entry_at(table, k, item.index), item, is_one ? table.lanes : 1, views,
                  is_one ? columns[1].block : nullptr, scratch);
  }
}

void take_collected(Tables& tables, Table& table, const CollectedItem& item, int64_t lane, const Entry* entry) {
  if (entry == nullptr || entry->sums.size() <= z(item.index)) throw Stop{Stop::Kind::Internal};
  const Sum& sum = entry->sums[z(item.index)];
  const View like = tables.view(table, item.like, lane);
  if (sum.whole != nullptr && sum.bytes != like.bytes()) throw Stop{Stop::Kind::Internal};
  if (item.to[1] != kNoSlot)
    give_rows(tables, table, item, lane, sum, like);
  else
    give_sum(tables, table, item, lane, sum, like);
}

}  // namespace undertow
