// Tables: the slots of one region for some lanes, as columns, and the state kept with them between phases.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <utility>
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

/// The values of a slot for all lanes. Stride 0: one value for all. A stride larger than a value: the column is a part
/// of another column's rows. Without a block, the memory is borrowed from an owner that outlives it. Columns of boxed
/// slots hold boxes, and are never shared between tables.
struct Column {
  Block* block = nullptr;
  std::byte* data = nullptr;  ///< null: not computed yet, or dropped
  int64_t stride = 0;

  template <class T>
  T* lane(int64_t k) const {
    return reinterpret_cast<T*>(data + k * stride);
  }

  /// Every `step`-th lane from `first` on.
  Column from(int64_t first, int64_t step = 1) const { return {block, data + first * stride, stride * step}; }
};

/// The shape of a value of one lane.
inline const int64_t* shape_of(const Slot& slot, const Column& column, int64_t lane) {
  return slot.is_dynamic ? column.lane<Box>(lane)->shape : slot.shape.data();
}

struct Table;
struct Chunk;
struct Part;

/// The sum collected for one hoisted value of an entry.
struct Sum {
  Block* whole = nullptr;  // copied before it is added to, if somebody has read it
  int64_t bytes = 0;
  struct Rows {
    int64_t count, bytes;
    Block* numbers;  // i64
    Block* rows;
  };
  std::vector<Rows> rows;
};

/// The hoisted values of one activation that entered a recursion, and the sums collected below it.
struct Entry {
  const Region* region;        // of the caller
  const CallItem* item;        // its `hoists` are the slots of the values
  std::vector<Column> values;  // of one lane, borrowed from the caller's table; boxed ones point to a box
  std::vector<Sum> sums;
};

struct CallState {
  Part* part = nullptr;  ///< of the invocation, if later phases are still to come
  std::vector<Entry> entries;
};

struct Sides {
  Table* table[2] = {nullptr, nullptr};
  Block* index[2] = {nullptr, nullptr};  ///< lanes of the parent, i32; null if the side has all of them, or none
  int64_t count[2] = {0, 0};

  const int32_t* lanes(size_t side) const {
    return index[side] != nullptr ? reinterpret_cast<const int32_t*>(index[side]->data()) : nullptr;
  }
};

struct Table {
  const Region* region;
  int64_t lanes;
  int32_t visits;           ///< phases that will be visited
  bool are_frames = false;  ///< do its lanes count as frames?
  bool is_joint = false;    ///< does it stand for lanes of other tables, which still hold its values?
  Column* columns;
  Block* block = nullptr;      ///< holds `columns` and the values of small slots
  std::byte* small = nullptr;  ///< these values

  // Where its lanes come from. A branch, loop or map has a parent table; a function has a chunk.
  Table* parent = nullptr;
  Block* index = nullptr;  ///< lane -> lane of the parent, i32; null: the same, or all come from lane 0
  Chunk* chunk = nullptr;
  int32_t site = 0;
  int64_t iteration = 0;     ///< of a loop
  Block* numbers = nullptr;  ///< of a map: the number of each lane within its parent lane, i64

  Entry* entry = nullptr;    ///< that all lanes are below
  Block* entries = nullptr;  ///< or, if these differ, an Entry* for each lane

  std::vector<Sides> branches;
  std::vector<CallState> calls;
  std::vector<Table*> maps;

  /// The entry of each lane, where these differ.
  Entry** below() const { return reinterpret_cast<Entry**>(entries->data()); }

  int64_t parent_lane(int64_t lane) const {
    if (index != nullptr) return reinterpret_cast<const int32_t*>(index->data())[lane];
    return parent != nullptr && parent->lanes == 1 ? 0 : lane;
  }
};

/// What tables need besides blocks; kept for the next run.
struct TableSpace {
  Store<Table> tables;
  std::vector<Table*> ending;
  std::set<std::vector<int64_t>> shapes;
  const std::vector<int64_t>* recent[4] = {};  ///< of `shapes`: most look-ups hit one of these
  size_t oldest = 0;
  Scratch scratch;
};

/// Makes and ends tables, and moves values between columns.
class Tables {
 public:
  Tables(const Plan& plan, int64_t memory, Budget* bytes = nullptr, Budget* frames_left = nullptr)
      : plan_(plan), pool(memory, bytes), frames_left_(frames_left), space_(Idle<TableSpace>::all().take()) {}
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;
  ~Tables();

  /// Lanes of bodies count as frames, unless the table stands for lanes of other tables, which are already counted.
  Table* make(const Region& region, int64_t lanes, int32_t visits, bool are_frames = true);
  /// The table of a branch, loop or map inside the table of its parent region.
  Table* make_inside(Table& parent, const Region& region, int64_t lanes, int32_t visits, int32_t site = 0) {
    Table* table = make(region, lanes, visits);
    table->parent = &parent;
    table->chunk = parent.chunk;
    table->site = site;
    return table;
  }
  void end(Table* table);  ///< with its branches and maps

  /// The value of one lane. Valid until the column is written or dropped.
  View view(const Table& table, Operand x, int64_t lane) const {
    const Slot& own = slot(*table.region, x);
    const Column found = column(table, x);
    if (!own.is_dynamic) return {found.data + lane * found.stride, 0, own.shape.data(), own.rank(), own.dtype};
    const Box* box = found.lane<Box>(lane);
    return {box->data, 0, box->shape, own.rank(), own.dtype};
  }

  /// The column of an operand that is about to be read. If a wrong plan has dropped it, the run stops.
  Column column(const Table& table, Operand x) const {
    const Column found = peek(table, x);
    if (found.data == nullptr) [[unlikely]]
      missing();
    return found;
  }
  /// The same, but the column may be missing.
  Column peek(const Table& table, Operand x) const {
    if (x < 0) return {nullptr, plan_.constants[static_cast<size_t>(~x)].data, 0};
    return table.columns[x];
  }
  const Slot& slot(const Region& region, Operand x) const { return plan_.slot(region, x); }

  /// Memory of its own for the column of a slot: for every lane, or one value for all.
  std::byte* own(Table& table, int32_t slot, bool is_uniform = false);
  void drop(Table& table, int32_t slot);
  void drop(Table& table, std::span<const int32_t> slots) {
    for (int32_t slot : slots) drop(table, slot);
  }
  void drop_sums(Entry& entry);

  /// May the lanes of a slot be changed where they are? Only if nothing else refers to their memory, and no two lanes
  /// share it.
  bool is_alone(const Table& table, int32_t slot, bool is_uniform) const;
  /// Move a column to another slot of the same type.
  void move(Table& table, int32_t from, int32_t to, bool is_uniform) {
    drop(table, to);
    table.columns[to] = table.columns[from];
    table.columns[to].stride = is_uniform ? 0 : table.region->slots[z(to)].bytes;
    table.columns[from] = {};
  }

  /// Fill a slot that has no column yet with lanes of another column: those in `index`, or all.
  void take(Table& to, int32_t slot, const Slot& from_slot, Column from, const int32_t* index, int64_t count);
  /// The same for the lanes that take one side of a branch: `index` lists them, `pred` is the predicate's column.
  void take_side(Table& to, int32_t slot, const Slot& from_slot, Column from, const int32_t* index, Column pred,
                 bool is_yes, int64_t lanes);
  /// Merge the values of both sides of a branch into a slot that has no column yet. False if these columns do not
  /// allow it: then the caller scatters each side.
  bool meet(Table& to, int32_t slot, Column pred, Column yes, Column no);
  /// Write the first `count` lanes of a column to another that exists: to its first lanes, or to those in `places`.
  void put(const Slot& slot, Column to, const int32_t* places, const Slot& from_slot, Column from, int64_t count);
  /// A value of a static slot as a box.
  Box boxed(const Slot& slot, const Column& column, int64_t lane);
  Box box_of(const Slot& slot, const Column& column, int64_t lane) {
    if (!slot.is_dynamic) return boxed(slot, column, lane);
    Box box = *column.lane<Box>(lane);
    if (box.block != nullptr) ++box.block->refs;
    return box;
  }

  /// An input of the run: borrowed from the caller if it is aligned and the host may read it there, else copied.
  Box lent(const Slot& slot, const View& input);

  const int64_t* shape(std::span<const int64_t> sizes);
  const int64_t* static_shape(const Slot& slot) { return shape(slot.shape); }

  /// Move a value from a pool of another thread, which is done with it, to a box.
  void adopt(const Slot& slot, Box& to, Box& from, Pool& other);
  /// Measure peaks from here on.
  void measure() {
    peak_frames = frames;
    pool.measure();
  }
  /// As many frames and bytes were in use elsewhere at once.
  void reached(int64_t other_frames, int64_t bytes) {
    peak_frames = std::max(peak_frames, frames + other_frames);
    pool.reached(bytes);
  }
  /// How many more there may be.
  int64_t frames_room() const { return most_frames - frames + (frames_left_ != nullptr ? frames_left_->left() : 0); }
  /// There are more frames than there may be, by so many lanes: take more of the budget, or throw.
  void extend(int64_t lanes);
  /// Give back what is not in use to the budgets.
  void give_back() {
    if (frames_left_ != nullptr) frames_left_->give(std::exchange(most_frames, frames) - frames);
    pool.give_back();
  }

  /// Scratch memory for one kernel call at a time.
  Scratch& scratch() { return space_->scratch; }

  Block* copy_index(const int32_t* index, int64_t count);

 private:
  [[noreturn]] static void missing();

  const Plan& plan_;

 public:
  Pool pool;
  int64_t frames = 0;  ///< live lanes of bodies
  int64_t peak_frames = 0;
  int64_t most_frames = INT64_MAX;

 private:
  Budget* frames_left_;  ///< which it shares: `most_frames` is what it has taken of it
  std::unique_ptr<TableSpace> space_;
};

}  // namespace undertow
