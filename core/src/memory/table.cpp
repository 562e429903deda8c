#include "memory/table.h"

#include <algorithm>

#include "memory/lanes.h"
#include "undertow/run.h"
#include "undertow/size.h"

namespace undertow {
Tables::~Tables() {
  if (frames_left_ != nullptr) frames_left_->give(most_frames);
  // After a fault some tables are still in use: then the space is not kept.
  if (pool.live() > 0 || space_->tables.size() > Idle<TableSpace>::kFew ||
      space_->shapes.size() > Idle<TableSpace>::kFew)
    return;
  Idle<TableSpace>::all().give(std::move(space_));
}

void Tables::missing() { throw Stop{Stop::Kind::Missing}; }

Table* Tables::make(const Region& region, int64_t lanes, int32_t visits, bool are_frames) {
  const bool stands_for_others = !are_frames;  // nothing is entered from it then
  are_frames = are_frames && region.kind != Region::Kind::Branch;
  if (are_frames) {
    frames += lanes;
    if (frames > most_frames) [[unlikely]]
      extend(lanes);
    if (frames > peak_frames) peak_frames = frames;
  }
  const int64_t slots = static_cast<int64_t>(region.slots.size());
  const int64_t head = (slots * static_cast<int64_t>(sizeof(Column)) + 63) / 64 * 64;
  // Every column is aligned to 64 bytes. What follows it may be the next one: nothing is written behind the last lane.
  Block* block = pool.take(head + (region.small > 0 ? region.row * lanes + 64 * region.small + 64 : 0));
  Table* table = space_->tables.take();
  table->region = &region;
  table->lanes = lanes;
  table->visits = visits;
  table->are_frames = are_frames;
  table->is_joint = stands_for_others;
  table->block = block;
  table->columns = reinterpret_cast<Column*>(block->data());
  table->small = block->data() + head;
  for (int64_t k = 0; k < slots; ++k) new (table->columns + k) Column;
  table->parent = nullptr;
  table->index = table->numbers = table->entries = nullptr;
  table->chunk = nullptr;
  table->entry = nullptr;
  table->site = 0;
  table->iteration = 0;
  table->branches.assign(stands_for_others ? 0 : z(region.branches), Sides{});
  table->maps.assign(stands_for_others ? 0 : z(region.maps), nullptr);
  if (const size_t calls = stands_for_others ? 0 : z(region.calls); table->calls.size() != calls)
    table->calls.resize(calls);
  for (CallState& call : table->calls) {
    call.part = nullptr;
    call.entries.clear();
  }
  return table;
}

void Tables::extend(int64_t lanes) {
  constexpr int64_t kMore = 1 << 14;
  if (frames_left_ != nullptr) most_frames += frames_left_->take(frames - most_frames, kMore);
  if (frames <= most_frames) return;
  frames -= lanes;
  throw OverLimit{OverLimit::Kind::Frames};
}

void Tables::drop(Table& table, int32_t number) {
  Column& column = table.columns[number];
  if (column.data == nullptr) return;
  const Slot& slot = table.region->slots[z(number)];
  if (slot.is_dynamic) {
    const int64_t count = column.stride == 0 ? 1 : table.lanes;
    for (int64_t k = 0; k < count; ++k) pool.drop(column.lane<Box>(k)->block);
  }
  pool.drop(column.block);
  column = {};
}

void Tables::drop_sums(Entry& entry) {
  for (Sum& sum : entry.sums) {
    pool.drop(sum.whole);
    for (Sum::Rows& rows : sum.rows) {
      pool.drop(rows.numbers);
      pool.drop(rows.rows);
    }
    sum = {};
  }
}

void Tables::end(Table* root) {
  std::vector<Table*>& todo = space_->ending;
  todo.assign(1, root);
  while (!todo.empty()) {
    Table* table = todo.back();
    todo.pop_back();
    for (Sides& sides : table->branches)
      for (int side = 0; side < 2; ++side) {
        if (sides.table[side] != nullptr) todo.push_back(sides.table[side]);
        pool.drop(sides.index[side]);
      }
    for (CallState& call : table->calls)
      for (Entry& entry : call.entries) drop_sums(entry);
    for (Table* map : table->maps)
      if (map != nullptr) todo.push_back(map);
    for (int32_t slot : table->region->boxed) drop(*table, slot);
    const Column* const end = table->columns + table->region->slots.size();
    for (const Column* column = table->columns; column != end; ++column) pool.drop(column->block);
    pool.drop(table->block);
    pool.drop(table->index);
    pool.drop(table->numbers);
    pool.drop(table->entries);
    if (table->are_frames) frames -= table->lanes;
    space_->tables.give(table);
  }
}

bool Tables::is_alone(const Table& table, int32_t number, bool is_uniform) const {
  const Slot& slot = table.region->slots[z(number)];
  const Column& column = table.columns[number];
  if (column.block == nullptr || table.is_joint) return false;
  const int64_t lanes = is_uniform ? 1 : table.lanes;
  if (lanes > 1 && column.stride != slot.bytes) return false;
  if (!slot.is_dynamic) return slot.offset < 0 && column.block->refs == 1;
  for (int64_t first = 0; first < lanes;) {  // values of several lanes may be side by side in one block
    const Box* box = column.lane<Box>(first);
    if (box->block == nullptr) return false;
    int64_t count = 1;
    for (; first + count < lanes && box[count].block == box->block; ++count) {
      const Box& before = box[count - 1];
      const View value{before.data, 0, before.shape, slot.rank(), slot.dtype};
      if (box[count].data < before.data + value.bytes()) return false;
    }
    if (box->block->refs != count) return false;
    first += count;
  }
  return true;
}

std::byte* Tables::own(Table& table, int32_t number, bool is_uniform) {
  const Slot& slot = table.region->slots[z(number)];
  Column& column = table.columns[number];
  if (column.block != nullptr && column.stride == slot.bytes) return column.data;
  const int64_t lanes = is_uniform ? 1 : table.lanes;
  drop(table, number);
  if (slot.offset >= 0) {
    std::byte* data = table.small + (slot.offset * table.lanes + 63) / 64 * 64 + 64 * slot.place;
    // Offsets grow with places, so rounding up leaves every column room of its own.
    ++table.block->refs;
    column = {table.block, data, is_uniform ? 0 : slot.bytes};
  } else {
    Block* block = pool.take(slot.bytes * lanes, slot.column_home());
    column = {block, block->data(), is_uniform ? 0 : slot.bytes};
  }
  if (slot.is_dynamic) lanes::zero(column.data, slot.bytes * lanes);
  if (slot.bytes == 0 && !is_uniform) column.stride = 0;  // values without elements are all equal
  return column.data;
}

const int64_t* Tables::shape(std::span<const int64_t> sizes) {
  static const int64_t nothing = 0;
  if (sizes.empty()) return &nothing;
  for (const std::vector<int64_t>* shape : space_->recent)
    if (shape != nullptr && std::ranges::equal(*shape, sizes)) return shape->data();
  const auto found = space_->shapes.emplace(sizes.begin(), sizes.end()).first;
  space_->recent[space_->oldest++ % std::size(space_->recent)] = &*found;
  return found->data();
}

Box Tables::lent(const Slot& slot, const View& input) {
  const int64_t bytes = input.bytes();
  Box box{nullptr, static_cast<std::byte*>(input.data), shape({input.shape, z(input.rank)})};
  // Kernels need aligned elements.
  const bool is_aligned = bytes > 0 && reinterpret_cast<uintptr_t>(input.data) % z(size_of(input.dtype)) == 0;
  if (is_aligned && !slot.is_away()) return box;
  box.block = pool.take(bytes, slot.home);
  box.data = box.block->data();
  lanes::copy(box.data, input.data, bytes);
  return box;
}

void Tables::adopt(const Slot& slot, Box& to, Box& from, Pool& other) {
  const int64_t* own = shape({from.shape, z(slot.rank())});
  pool.drop(to.block);
  if (from.block != nullptr && from.block->refs == 1 && from.block->data() == from.data && !from.block->is_away()) {
    other.release(from.block);
    pool.adopt(from.block);
    to = {from.block, from.data, own};
  } else {
    const int64_t bytes = View{from.data, 0, own, slot.rank(), slot.dtype}.bytes();
    Block* block = pool.take(bytes, slot.home);
    lanes::copy(block->data(), from.data, bytes);
    other.drop(from.block);
    to = {block, block->data(), own};
  }
  from = {};
}

Box Tables::boxed(const Slot& slot, const Column& column, int64_t lane) {
  std::byte* data = column.data + lane * column.stride;
  Box box{column.block, data, static_shape(slot)};
  if (column.block == nullptr) return box;  // borrowed: the owner outlives the run
  if (column.stride == 0 || slot.bytes % 64 == 0) {
    ++column.block->refs;
    return box;
  }
  // Kernels need a value by itself to be aligned to 64 bytes: one in the middle of a column is copied.
  Block* block = pool.take(slot.bytes, slot.home);
  lanes::copy(block->data(), data, slot.bytes);
  return {block, block->data(), box.shape};
}

void Tables::take(Table& to, int32_t number, const Slot& from_slot, Column from, const int32_t* index, int64_t count) {
  const Slot& slot = to.region->slots[z(number)];
  if (slot.is_dynamic) {
    const bool is_uniform = from.stride == 0;
    Box* boxes = reinterpret_cast<Box*>(own(to, number, is_uniform));
    for (int64_t k = 0; k < (is_uniform ? 1 : count); ++k) boxes[k] = box_of(from_slot, from, index ? index[k] : k);
    return;
  }
  if (from.stride == 0 || index == nullptr) {
    if (from.block != nullptr) ++from.block->refs;
    drop(to, number);
    to.columns[number] = from;
    return;
  }
  lanes::gather(own(to, number), from.data, from.stride, index, count, slot.bytes);
}

void Tables::take_side(Table& to, int32_t number, const Slot& from_slot, Column from, const int32_t* index, Column pred,
                       bool is_yes, int64_t lanes) {
  const Slot& slot = to.region->slots[z(number)];
  const bool is_packed = !slot.is_dynamic && (slot.bytes == 4 || slot.bytes == 8) && from.stride == slot.bytes;
  if (index == nullptr || pred.stride != 1 || !is_packed) return take(to, number, from_slot, from, index, to.lanes);
  lanes::part(own(to, number), reinterpret_cast<const uint8_t*>(pred.data), is_yes, lanes, from.data, slot.bytes);
}

bool Tables::meet(Table& to, int32_t number, Column pred, Column yes, Column no) {
  const Slot& slot = to.region->slots[z(number)];
  const auto is_packed = [&](const Column& column) { return column.stride == 0 || column.stride == slot.bytes; };
  if (slot.is_dynamic || (slot.bytes != 4 && slot.bytes != 8) || pred.stride != 1) return false;
  if (yes.data == nullptr || no.data == nullptr || !is_packed(yes) || !is_packed(no)) return false;
  lanes::meet(own(to, number), reinterpret_cast<const uint8_t*>(pred.data), to.lanes, yes.data, yes.stride, no.data,
              no.stride, slot.bytes);
  return true;
}

void Tables::put(const Slot& slot, Column to, const int32_t* places, const Slot& from_slot, Column from,
                 int64_t count) {
  if (slot.is_dynamic) {
    for (int64_t k = 0; k < count; ++k) {
      Box* box = to.lane<Box>(places != nullptr ? places[k] : k);
      pool.drop(box->block);
      *box = box_of(from_slot, from, k);
    }
    return;
  }
  if (places != nullptr)
    lanes::scatter(to.data, places, from.data, from.stride, count, slot.bytes);
  else
    lanes::move(to.data, to.stride, from.data, from.stride, count, slot.bytes);
}

Block* Tables::copy_index(const int32_t* index, int64_t count) {
  Block* block = pool.take(4 * count);
  lanes::copy(block->data(), index, 4 * count);
  return block;
}

}  // namespace undertow
