// The door of a group of functions that are recursive together: how calls enter it, whoever runs it.
//
// Calls that enter a group together are an invocation, with a part for each of them: its lanes, side by side. A caller
// makes invocations, a runner runs them, and neither looks behind the other's side. Invocations are strictly nested:
// one that another makes is over, for this phase, before the other goes on.
#pragma once

#include <algorithm>
#include <vector>

#include "memory/table.h"
#include "undertow/run.h"

namespace undertow {

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

/// A caller whose calls are those of tables.
class TableCaller : public Caller {
 public:
  TableCaller(const TableCaller&) = delete;
  TableCaller& operator=(const TableCaller&) = delete;

  Column room(Part& part, size_t result) override;
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override;
  void taken(Part& part) override;

 protected:
  explicit TableCaller(Tables& tables) : tables_(tables) {}
  ~TableCaller() = default;

  /// Begin a part: a call of a table, whose arguments are lent later.
  static void begin(TablePart& part, Table& table, const CallItem& item);
  /// Let a part enter its group together with others: those of one of `waiting`, or of a new invocation.
  void join(std::vector<Invocation*>& waiting, Store<Invocation>& store, Part& part, int32_t visits, int64_t depth);
  void lend_arguments(TablePart& part) const;

  Tables& tables_;
};

}  // namespace undertow
