// Tables: the slots of one region for some lanes, as columns; and what hangs on them between phases.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "memory/store.h"
#include "undertow/memory.h"
#include "undertow/plan.h"

namespace undertow {

/// A value whose shape only the run knows. Shapes are interned: equal ones have one address.
struct Box {
  Block* block;
  std::byte* data;
  const int64_t* shape;
};

/// The value of a slot for all lanes. Stride 0: one value for all. A stride may be more than a value: then the column
/// is a part of another's rows. Without a block it belongs to somebody else who lives longer. Columns of boxed slots
/// hold boxes, and are never shared between tables.
struct Column {
  Block* block = nullptr;
  std::byte* data = nullptr;  ///< null: not there yet
  int64_t stride = 0;

  template <class T>
  T* lane(int64_t k) const {
    return reinterpret_cast<T*>(data + k * stride);
  }

  /// From a lane on, every so many.
  Column from(int64_t first, int64_t step = 1) const { return {block, data + first * stride, stride * step}; }
};

/// The shape of a value of one lane.
inline const int64_t* shape_of(const Slot& slot, const Column& column, int64_t lane) {
  return slot.is_dynamic ? column.lane<Box>(lane)->shape : slot.shape.data();
}

struct Table;
struct Chunk;
struct Part;

/// What was collected for one value that an entry was given.
struct Sum {
  Block* whole = nullptr;  // shared with those who have taken it: then it is not added to
  int64_t bytes = 0;
  struct Rows {
    int64_t count, bytes;
    Block* numbers;  // i64
    Block* rows;
  };
  std::vector<Rows> rows;
};

/// What an activation that entered a recursion was given, for all that runs below it.
struct Entry {
  const Region* region;        // of the caller
  const CallItem* item;        // says which slots of it the values are
  std::vector<Column> values;  // of one lane, owned by the caller's table; boxed ones point to a box
  std::vector<Sum> sums;
};

struct CallState {
  Part* part = nullptr;  ///< of the invocation, where phases are still to come
  std::vector<Entry> entries;
};

struct Sides {
  Table* table[2] = {nullptr, nullptr};
  Block* index[2] = {nullptr, nullptr};  ///< lanes of the parent, i32; null where all of them are there, or none
  int64_t count[2] = {0, 0};

  const int32_t* lanes(size_t side) const {
    return index[side] != nullptr ? reinterpret_cast<const int32_t*>(index[side]->data()) : nullptr;
  }
};

struct Table {
  const Region* region;
  int64_t lanes;
  int32_t visits;           ///< phases that will be visited
  bool are_frames = false;  ///< are its lanes counted as such?
  Column* columns;
  Block* block = nullptr;      ///< of the columns themselves, and of the values of the small ones
  std::byte* small = nullptr;  ///< these values

  // Where it comes from. A branch, loop or map stands in a parent; a function has a chunk.
  Table* parent = nullptr;
  Block* index = nullptr;  ///< lane -> lane of the parent, i32; null: the same, or all come from lane 0
  Chunk* chunk = nullptr;
  int32_t site = 0;
  int64_t iteration = 0;     ///< of a loop
  Block* numbers = nullptr;  ///< of a map: the number of each lane within its parent lane, i64

  Entry* entry = nullptr;    ///< all lanes are below this one
  Block* entries = nullptr;  ///< or each below one of its own: Entry*

  std::vector<Sides> branches;
  std::vector<CallState> calls;
  std::vector<Table*> maps;

  /// The entry that each lane is below of, where these are several.
  Entry** below() const { return reinterpret_cast<Entry**>(entries->data()); }

  int64_t parent_lane(int64_t lane) const {
    if (index != nullptr) return reinterpret_cast<const int32_t*>(index->data())[lane];
    return parent != nullptr && parent->lanes == 1 ? 0 : lane;
  }
};

/// What tables need besides blocks.
struct TableSpace {
  Store<Table> tables;
  std::vector<Table*> ending;
  std::set<std::vector<int64_t>> shapes;
  const std::vector<int64_t>* recent[4] = {};  ///< of the shapes: most are one of these
  size_t oldest = 0;
  Scratch scratch;
};

/// Makes and ends tables, and moves values between columns.
class Tables {
 public:
  Tables(const Plan& plan, int64_t memory) : plan_(plan), pool(memory), space_(Idle<TableSpace>::all().take()) {}
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;
  ~Tables();

  /// Lanes of bodies count as frames, unless they stand for others that do.
  Table* make(const Region& region, int64_t lanes, int32_t visits, bool are_frames = true);
  /// The table of a region inside that of another.
  Table* make_inside(Table& parent, const Region& region, int64_t lanes, int32_t visits, int32_t site = 0) {
    Table* table = make(region, lanes, visits);
    table->parent = &parent;
    table->chunk = parent.chunk;
    table->site = site;
    return table;
  }
  void end(Table* table);  ///< and all that hangs on it

  /// The value of one lane, which may be read as long as nothing changes.
  View view(const Table& table, Operand x, int64_t lane) const {
    const Slot& own = slot(*table.region, x);
    const Column found = column(table, x);
    if (!own.is_dynamic) return {found.data + lane * found.stride, 0, own.shape.data(), own.rank(), own.dtype};
    const Box* box = found.lane<Box>(lane);
    return {box->data, 0, box->shape, own.rank(), own.dtype};
  }

  /// A value that is to be read. Plans say which columns go when: one that is gone stops the run.
  Column column(const Table& table, Operand x) const {
    const Column found = peek(table, x);
    if (found.data == nullptr) [[unlikely]]
      missing();
    return found;
  }
  /// The same, which may not be there yet.
  Column peek(const Table& table, Operand x) const {
    if (x < 0) return {nullptr, plan_.constants[static_cast<size_t>(~x)].data, 0};
    return table.columns[x];
  }
  const Slot& slot(const Region& region, Operand x) const { return plan_.slot(region, x); }

  /// A column of its own for a slot that has none yet; `lanes` of it, or one for all.
  std::byte* own(Table& table, int32_t slot, bool is_uniform = false);
  void drop(Table& table, int32_t slot);
  void drop(Table& table, std::span<const int32_t> slots) {
    for (int32_t slot : slots) drop(table, slot);
  }
  void drop_sums(Entry& entry);  ///< what it has collected

  /// Put lanes of a value into a slot of a table that is not there yet: those that `index` names, or all.
  void take(Table& to, int32_t slot, const Slot& from_slot, Column from, const int32_t* index, int64_t count);
  /// The same for the lanes that take one side of a branch; `index` names them, `pred` is the column that says so.
  void take_side(Table& to, int32_t slot, const Slot& from_slot, Column from, const int32_t* index, Column pred,
                 bool is_yes, int64_t lanes);
  /// The values of both sides of a branch, each for its lanes, into a slot that is not there yet; false where that is
  /// to be done one by one.
  bool meet(Table& to, int32_t slot, Column pred, Column yes, Column no);
  /// Write the first lanes of a value to a column that is there: to its first ones, or where `places` says.
  void put(const Slot& slot, Column to, const int32_t* places, const Slot& from_slot, Column from, int64_t count);
  /// A value of a static slot as a box.
  Box boxed(const Slot& slot, const Column& column, int64_t lane);
  Box box_of(const Slot& slot, const Column& column, int64_t lane) {
    if (!slot.is_dynamic) return boxed(slot, column, lane);
    Box box = *column.lane<Box>(lane);
    if (box.block != nullptr) ++box.block->refs;
    return box;
  }

  /// An input of the run, read where it is if that can be: it stays there, without a block, as long as the run.
  Box lent(const Slot& slot, const View& input);

  const int64_t* shape(std::span<const int64_t> sizes);
  const int64_t* static_shape(const Slot& slot) { return shape(slot.shape); }

  /// For one call of a kernel at a time.
  Scratch& scratch() { return space_->scratch; }

  Block* copy_index(const int32_t* index, int64_t count);

 private:
  [[noreturn]] static void missing();

  const Plan& plan_;

 public:
  Pool pool;
  int64_t frames = 0;  ///< lanes of bodies that are alive
  int64_t peak_frames = 0;
  int64_t most_frames = INT64_MAX;

 private:
  std::unique_ptr<TableSpace> space_;
};

}  // namespace undertow
