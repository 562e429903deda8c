// Runs lanes narrow: frames stand on a stack on the heap, and those of phases to come stay there.
#pragma once

#include <vector>

#include "narrow/program.h"
#include "operate.h"
#include "table.h"
#include "undertow/run.h"

namespace undertow {

struct NarrowFrame {
  NarrowFrame* below;   ///< on the stack
  NarrowFrame* caller;  ///< null: a lane of a table
  const NarrowBody* body;
  const NarrowCall* call;  ///< how it was entered last; null for a lane
  Entry* entry;
  int64_t depth;
  int32_t pc;  ///< where it waits
  int32_t site;
  int32_t visits;
  bool is_over;
  uint64_t cells[1];
};

/// Runs lanes of one run.
class Narrow {
 public:
  Narrow(const Plan& plan, Tables& tables, Host& host, const RunOptions& options, RunStats& stats)
      : plan_(plan), program_(*plan.narrow), tables_(tables), host_(host), options_(options), stats_(stats) {}
  ~Narrow();

  /// A new activation, its arguments still to be written.
  NarrowFrame* call(int32_t body, int32_t site, int32_t visits, Entry* entry, int64_t depth);
  /// Run a phase of it to its end.
  void run(NarrowFrame* frame, int32_t phase);
  void end(NarrowFrame* frame);  ///< after its last phase

  const NarrowBody& body(int32_t region) const { return *program_.bodies[static_cast<size_t>(region)]; }
  uint64_t value(const NarrowFrame& frame, Cell x) const {
    return x >= 0 ? frame.cells[x] : program_.constants[static_cast<size_t>(~x)];
  }
  /// What it is at, after something was thrown.
  Doing doing() const;
  /// The labels from the frame that runs now up to its lane.
  std::vector<Label> tag() const;
  int64_t polls = 0;
  void (*is_late)(void*) = nullptr;   ///< called now and then; may throw
  void (*climb_on)(void*) = nullptr;  ///< the deepest tag goes on outside of the lane that runs now
  void* context = nullptr;

 private:
  NarrowFrame* push(const NarrowBody& body);
  void pop(NarrowFrame* frame);
  void open_segment(int64_t bytes);
  void drop_entry(NarrowFrame& frame, int32_t cell);
  Entry* make_entry(NarrowFrame& frame, const NarrowCall& call);
  void climb();
  [[noreturn]] void fault(const NarrowFrame& frame, const NarrowInstr& at);
  void look(const NarrowFrame& frame, const NarrowPick& pick, View* views) const;
  // Not inline: the loop over instructions needs the registers.
  [[gnu::noinline]] uint64_t pick(const NarrowFrame& frame, const NarrowInstr& at);
  [[gnu::noinline]] static void read_array(const Slot& given, const Column& column, uint64_t* to);
  [[gnu::noinline]] const Slot& given(const Entry& entry, int32_t index) const;
  [[gnu::noinline]] void collect_at(Entry& entry, const NarrowInstr& at, uint64_t value, uint64_t number);

  const Plan& plan_;
  const NarrowProgram& program_;
  Tables& tables_;
  Host& host_;
  const RunOptions& options_;
  RunStats& stats_;

 public:
  const Table* main_ = nullptr;  ///< of the run: what it shares

 private:
  NarrowFrame* now_ = nullptr;
  NarrowFrame* top_ = nullptr;
  /// The first at the greatest depth, or one that it stands below, if those under it have returned: each adds its label
  /// to the tag as it returns.
  NarrowFrame* deepest_ = nullptr;
  struct Segment {
    Block* block;
    std::byte *free, *end;  ///< of the one before
  };
  std::vector<Segment> segments_;
  Store<Entry> entries_;
  std::byte* free_ = nullptr;  ///< of the last segment
  std::byte* end_ = nullptr;
};

}  // namespace undertow
