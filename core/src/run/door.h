// The door of a group of functions that are recursive together: how calls enter it, whoever runs it.
//
// Calls that enter a group together are an invocation, with a part for each of them: its lanes, side by side. A caller
// makes invocations, a runner runs them, and neither looks behind the other's side. Invocations are strictly nested:
// one that another makes is over, for this phase, before the other goes on.
#pragma once

#include <algorithm>
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

/// The lanes of one call, what they are given, and what they are below of.
struct Part {
  Invocation* invocation;
  const CallItem* item;  ///< of the phase at hand: which function, which site
  const Region* region;  ///< of the caller: its slots say what operands and results are
  const void* origin;    ///< equal for calls that the same lanes make
  int64_t lanes;
  std::vector<Column> arguments;  ///< of all lanes; the caller's, who lends them until they are taken

  // What lanes are below of: one entry, a row of them, or each one of its own. Null: nothing was given to any.
  Entry* entry;
  Entry* row;
  Entry* const* entries;
  bool makes_entries;   ///< the call itself does
  int64_t entry_bytes;  ///< what such an entry holds for its lane alone

  Entry* entry_of(int64_t lane) const {
    return row != nullptr ? row + lane : entries != nullptr ? entries[lane] : entry;
  }
};

/// A lane of a part: where something was called.
struct Place {
  Part* part = nullptr;  ///< null: nowhere, outside of main
  int64_t lane = 0;
};

/// Who makes invocations, and takes their results.
class Caller {
 public:
  /// Where lanes of a result are to be written, lane 0 first; the same whenever it is asked for.
  virtual Column room(Part& part, size_t result) = 0;
  /// A result of all lanes, in a column that its user may hold on to.
  virtual void take(Part& part, size_t result, const Slot& slot, const Column& column) = 0;
  /// The arguments of a part are not looked at any more: in this phase, what nobody else reads may go.
  virtual void taken(Part& part) = 0;
  /// A phase is over, and all results are there.
  virtual void back(Invocation& invocation) = 0;
  /// Adds the labels of a lane that calls, innermost first, from there to where its own activation was called: that is
  /// given back.
  virtual Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const = 0;
  /// The same for the deepest tag; but a caller may keep that, and add labels one by one as it goes back itself:
  /// nothing is given back then.
  virtual Place climb(const Part& part, int64_t lane, std::vector<Label>& labels) { return out(part, lane, labels); }

 protected:
  ~Caller() = default;
};

/// What runs invocations. It calls `Run::leave` when a phase of one is over.
class Runner {
 public:
  virtual void enter(Invocation& invocation) = 0;   ///< its first phase
  virtual void resume(Invocation& invocation) = 0;  ///< the next one
  virtual void step() = 0;                          ///< some work on the innermost invocation
  /// Adds labels, from where it is to where the innermost invocation was called: that is given back.
  virtual Place where(std::vector<Label>& labels) const = 0;
  virtual void forget_deepest() {}  ///< another thread has been deeper: that tag is whole

 protected:
  ~Runner() = default;
};

/// Calls that enter a group together.
struct Invocation {
  Caller* caller;
  int32_t group;
  int32_t visits;        ///< phases that there will be
  int32_t resume_group;  ///< see CallItem
  int32_t phase;
  int64_t depth;
  std::vector<Part*> parts;
  Runner* runner;    ///< from the first phase to the last
  void* handle;      ///< its own
  size_t asked = 0;  ///< the caller's: parts for which the next phase was asked for

  int64_t lanes() const {
    int64_t all = 0;
    for (const Part* part : parts) all += part->lanes;
    return all;
  }
};

/// How far the first phase of an invocation has come.
struct Progress {
  size_t part = 0;           ///< the next lanes to be called are those of this part
  int64_t lane = 0;          ///< from this one on
  int64_t done = 0;          ///< lanes that were called
  int64_t calls_before = 0;  ///< that the run had made before the first of them
};

/// The call of all lanes of a table.
struct TablePart : Part {
  Table* table;
};

/// A runner whose calls are those of tables, and all that it does besides entering regions.
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

  /// Begin a part: a call of a table, whose arguments are lent later.
  static void begin(TablePart& part, Table& table, const CallItem& item);
  /// Let a part enter its group together with others: those of one of `waiting`, or of a new invocation.
  void join(std::vector<Invocation*>& waiting, Store<Invocation>& store, Part& part, int32_t visits, int64_t depth);
  void lend_arguments(TablePart& part) const;

  /// Run an item that enters nothing.
  void straight(Table& table, const Item& item);
  /// Some of them, in order; one by one, where each result is looked at.
  void straight_in_order(Table& table, std::span<const Item> items);
  /// The entry that a lane of a table made when it called.
  virtual Entry* made_entry(const Table& table, int32_t call, int64_t lane) const = 0;
  /// The results of the lanes of a map as one array, in a slot of who entered it: in a box, or as elements at a place.
  /// `lane(k)` is a column that begins with the value of lane k; `locate()` says where the map is that stops the run.
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
