// The door of a group of mutually recursive functions: how calls enter it, whatever schedule runs it.
//
// Calls that enter a group together are an invocation, with a part for each call: its lanes, contiguous. A caller makes
// invocations, a runner runs them, and neither knows the other's internals. Invocations are strictly nested: one made
// by another ends, for this phase, before the other continues.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "memory/lanes.h"
#include "memory/table.h"
#include "run/clock.h"
#include "run/operators.h"
#include "run/values.h"
#include "undertow/run.h"

namespace undertow {

class Run;
struct Invocation;

/// The lanes of one call, their arguments, and the entries that they are below.
struct Part {
  Invocation* invocation;
  const CallItem* item;  ///< of the current phase: which function, which site
  const Region* region;  ///< of the caller: its slots are the types of operands and results
  const void* origin;    ///< equal for calls made by the same lanes
  int64_t lanes;
  std::vector<Column> arguments;  ///< of all lanes; borrowed from the caller until `taken`

  // The entries above the lanes: one for all, an array with a stride, or a pointer for each lane. Null: none.
  Entry* entry;
  Entry* row;
  Entry* const* entries;
  bool makes_entries;   ///< does the call itself make them?
  int64_t entry_bytes;  ///< that such an entry holds for its lane alone

  Entry* entry_of(int64_t lane) const {
    return row != nullptr ? row + lane : entries != nullptr ? entries[lane] : entry;
  }
};

/// A lane of a part: the caller of an activation.
struct Place {
  Part* part = nullptr;  ///< null: none, since main has no caller
  int64_t lane = 0;
};

/// Makes invocations, and takes their results.
class Caller {
 public:
  /// Where to write lanes of a result, from lane 0 on; the same for every call.
  virtual Column room(Part& part, size_t result) = 0;
  /// A result of all lanes, as a column to which the caller may keep a reference.
  virtual void take(Part& part, size_t result, const Slot& slot, const Column& column) = 0;
  /// The runner has taken the arguments of a part: columns that are dead from here on may be dropped.
  virtual void taken(Part& part) = 0;
  /// A phase has ended, and all results are written.
  virtual void back(Invocation& invocation) = 0;
  /// Append the labels of a calling lane, innermost first, up to the call of its own activation; returns that call.
  virtual Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const = 0;
  /// The same for the deepest tag; but a caller may take it over and append labels one by one as its own frames return:
  /// then it returns no place.
  virtual Place climb(const Part& part, int64_t lane, std::vector<Label>& labels) { return out(part, lane, labels); }

 protected:
  ~Caller() = default;
};

/// Runs invocations. It calls `Run::leave` when a phase of one ends.
class Runner {
 public:
  virtual void enter(Invocation& invocation) = 0;   ///< its first phase
  virtual void resume(Invocation& invocation) = 0;  ///< the next one
  virtual void step() = 0;                          ///< do some work on the innermost invocation
  /// Append labels from what runs now up to the call of the innermost invocation; returns that call.
  virtual Place where(std::vector<Label>& labels) const = 0;
  virtual void forget_deepest() {}  ///< another thread has been deeper, and its tag is complete

 protected:
  ~Runner() = default;
};

/// Calls that enter a group together.
struct Invocation {
  Caller* caller;
  int32_t group;
  int32_t visits;        ///< number of phases
  int32_t resume_group;  ///< see CallItem
  int32_t phase;
  int64_t depth;
  std::vector<Part*> parts;
  Runner* runner;    ///< the same for all phases
  void* handle;      ///< private to the runner
  size_t asked = 0;  ///< private to the caller: parts that have asked for the next phase

  int64_t lanes() const {
    int64_t all = 0;
    for (const Part* part : parts) all += part->lanes;
    return all;
  }
};

/// Progress of the first phase of an invocation.
struct Progress {
  size_t part = 0;                                    ///< part of the next lane to call
  int64_t lane = 0;                                   ///< number of that lane
  int64_t done = 0;                                   ///< lanes called so far
  int64_t calls_before = 0;                           ///< calls of the run before the first of them
  int64_t own = std::numeric_limits<int64_t>::max();  ///< lanes that are called here: the rest has been given away

  bool gives() const { return own != std::numeric_limits<int64_t>::max(); }
};

/// A call by all lanes of a table.
struct TablePart : Part {
  Table* table;
};

/// A runner whose calls are made by tables, with all that schedules share: calls, operators, entries.
class TableRunner : public Runner, public Caller {
 public:
  TableRunner(const TableRunner&) = delete;
  TableRunner& operator=(const TableRunner&) = delete;

  Column room(Part& part, size_t result) override;
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override;
  void taken(Part& part) override;

 protected:
  explicit TableRunner(Run& run);
  ~TableRunner() = default;

  /// Begin a part: a call by a table, whose arguments are set later.
  static void begin(TablePart& part, Table& table, const CallItem& item);
  /// Add a part to an invocation: one of `waiting` that it can join, or a new one.
  void join(std::vector<Invocation*>& waiting, Store<Invocation>& store, Part& part, int32_t visits, int64_t depth);
  void lend_arguments(TablePart& part) const;

  /// Run an item that enters nothing.
  void straight(Table& table, const Item& item);
  /// Several, in order; fused operators one by one if each result is checked.
  void straight_in_order(Table& table, std::span<const Item> items);
  /// The entry that a lane of a table made when it called.
  /// Send a value of each lane to another part.
  virtual void send(Table& table, const SendItem& item);
  /// Choose by the tag of each lane.
  virtual void choose(Table& table, const ReplicaItem& item);
  virtual Entry* made_entry(const Table& table, int32_t call, int64_t lane) const = 0;
  /// Gather the results of the lanes of a map as one array: in a box, or as elements of a slot. `lane(k)` is a column
  /// that begins with the value of lane k; `locate()` sets the position for errors.
  template <class Lane, class Locate>
  void stack_lanes(const Slot& to, std::byte* at, bool is_box, const Slot& from, int64_t count, int32_t site,
                   Lane&& lane, Locate&& locate);

  Run& run_;
  const Plan& plan_;
  const RunOptions& options_;
  RunStats& stats_;
  OperatorRunner& operators_;
  StepClock& clock_;
  Tables& tables_;

 private:
  void read(Table& table, const ReadItem& item);
};

template <class Lane, class Locate>
void TableRunner::stack_lanes(const Slot& to, std::byte* at, bool is_box, const Slot& from, int64_t count, int32_t site,
                              Lane&& lane, Locate&& locate) {
  std::vector<int64_t> shape{count};
  if (count > 0) {
    const int64_t* row = shape_of(from, lane(0), 0);
    shape.insert(shape.end(), row, row + from.rank());
  }
  for (size_t axis = 1; count == 0 && axis < to.shape.size(); ++axis)
    shape.push_back(to.shape[axis] == kUnknown ? 0 : to.shape[axis]);
  const auto is_alike = [&](int64_t k) {
    return std::equal(shape.begin() + 1, shape.end(), shape_of(from, lane(k), 0));
  };
  for (int64_t k = 1; from.is_dynamic && k < count; ++k) {
    if (is_alike(k)) continue;
    std::vector<View> views;
    for (int64_t n = 0; n < count; ++n) {
      const Box* box = lane(n).template lane<Box>(0);
      views.push_back({box->data, 0, box->shape, from.rank(), from.dtype});
    }
    locate();
    Stop stop = stop_of(Stop::Kind::UnequalResults, -1, views);
    stop.site = site;
    throw stop;
  }
  if (!is_shaped(to, shape.data(), to.rank())) throw Stop{Stop::Kind::Internal};
  const int64_t bytes = row_bytes(to.dtype, shape.data(), to.rank());
  if (is_box) {
    Box* box = reinterpret_cast<Box*>(at);
    Block* block = tables_.pool.take(lanes_bytes(bytes, count), to.home);
    tables_.pool.drop(box->block);
    *box = {block, block->data(), tables_.shape(shape)};
    at = block->data();
  }
  lanes::join(at, count, bytes, [&](int64_t k) {
    const Column column = lane(k);
    return from.is_dynamic ? column.template lane<Box>(0)->data : column.data;
  });
}

}  // namespace undertow
