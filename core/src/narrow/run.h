// Runs lanes as narrow code: frames are on a stack on the heap, and stay there if later phases are to come.
#pragma once

#include <vector>

#include "narrow/program.h"
#include "run/door.h"
#include "run/operators.h"

namespace undertow {

class Run;

struct NarrowFrame {
  NarrowFrame* below;   ///< on the stack
  NarrowFrame* caller;  ///< null: a lane of a table
  const NarrowBody* body;
  const NarrowCall* call;  ///< how it was entered last; null for a lane
  Entry* entry;
  int64_t depth;
  int32_t pc;  ///< where it continues
  int32_t site;
  int32_t visits;
  bool is_over;
  uint64_t cells[1];
};

/// Runs invocations of few lanes, one lane after the other; a phase runs to its end as soon as it is entered.
class Narrow final : public Runner {
 public:
  explicit Narrow(Run& run);
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
  ~Narrow();

  void enter(Invocation& invocation) override;
  void resume(Invocation& invocation) override;
  void step() override;
  Place where(std::vector<Label>& labels) const override;

 private:
  // enter.cpp: invocations
  void run_lane(Part& part, int64_t lane, NarrowFrame* frame, int32_t phase);

  // run.cpp: frames and instructions
  NarrowFrame* call(const Invocation& invocation, const Part& part, int64_t lane);
  void end(NarrowFrame* frame);                 ///< after its last phase
  void run(NarrowFrame* frame, int32_t phase);  ///< a phase of it, to its end
  uint64_t value(const NarrowFrame& frame, Cell x) const {
    return x >= 0 ? frame.cells[x] : program_.constants[static_cast<size_t>(~x)];
  }
  Position position() const;
  NarrowFrame* push(const NarrowBody& body);
  void pop(NarrowFrame* frame);
  void open_segment(int64_t bytes);
  void drop_entry(NarrowFrame& frame, int32_t cell);
  Entry* make_entry(NarrowFrame& frame, const NarrowCall& call);
  void climb();
  [[noreturn]] void fault(const NarrowFrame& frame, const NarrowInstr& at);
  [[noreturn]] void fail(const NarrowFrame& frame, const NarrowInstr& at);
  void look(const NarrowFrame& frame, const NarrowPick& pick, View* views) const;
  // Not inline: the instruction loop needs the registers.
  [[gnu::noinline]] uint64_t pick(const NarrowFrame& frame, const NarrowInstr& at);
  [[gnu::noinline]] static void read_array(const Slot& given, const Column& column, uint64_t* to);
  [[gnu::noinline]] const Slot& given(const Entry& entry, int32_t index) const;
  [[gnu::noinline]] void collect_at(Entry& entry, const NarrowInstr& at, uint64_t value, uint64_t number);

  Run& run_;
  const Plan& plan_;
  const NarrowProgram& program_;
  Tables& tables_;
  const RunOptions& options_;
  RunStats& stats_;
  Place place_;                 ///< the current lane
  NarrowFrame* now_ = nullptr;  ///< where an exception was thrown
  int64_t polls_ = 0;
  NarrowFrame* top_ = nullptr;
  /// The first frame at the greatest depth or, once that has returned, its nearest live ancestor: each adds its label
  /// to the deepest tag when it returns.
  NarrowFrame* deepest_ = nullptr;
  struct Segment {
    Block* block;
    std::byte *free, *end;  ///< of the segment before it
  };
  std::vector<Segment> segments_;
  Store<Entry> entries_;
  Store<std::vector<NarrowFrame*>> lanes_;  ///< of each invocation with phases to come: its handle
  std::byte* free_ = nullptr;               ///< of the last segment
  std::byte* end_ = nullptr;
};

}  // namespace undertow
