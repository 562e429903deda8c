// One run of a plan: its options, its statistics, how it stops, and what it needs from its host.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "undertow/memory.h"
#include "undertow/plan.h"

namespace undertow {

class Link;
class Wire;

/// A single value; the plan knows its dtype and rank.
struct Value {
  std::vector<int64_t> shape;
  Buffer bytes;
};

/// Thrown by a host to end the run at once.
struct Interrupted {};

/// How far a run has come.
struct RunProgress {
  double seconds = 0;
  int64_t activations = 0;
  int64_t waves = 0;
  int64_t depth = 0;  ///< the greatest so far
  int64_t bytes = 0;  ///< in use now
};

/// Runs operators that have side effects or no kernel. It may stop the run by throwing.
class Host {
 public:
  virtual ~Host() = default;
  virtual void apply(int32_t node, std::span<const View> inputs, std::span<Value> outputs) = 0;
  virtual void poll() = 0;  ///< called every few milliseconds; may throw Interrupted
  /// Called now and then in a long run, if its options ask for it.
  virtual void progress(const RunProgress& progress) { (void)progress; }
  /// Lanes of a region begin a phase, or a stage of it, together; called only if the run is traced.
  virtual void wave(int32_t region, int64_t lanes, int64_t depth, int32_t phase, int32_t stage) {
    (void)region, (void)lanes, (void)depth, (void)phase, (void)stage;
  }
};

/// Calls may nest so deep unless the user asks for more (MAX_DEPTH in engines/contract.py). Who has not asked may have
/// forgotten a base case, and is told so before the frames take much of the machine's memory: scalars reach the full
/// depth, frames with arrays or with wide waves below them are told much earlier, for each of them also takes longer.
constexpr int64_t kUnaskedDepth = 2'000'000;
constexpr int64_t kUnaskedDepthOfLargeFrames = 110'000;
constexpr int64_t kUnaskedBytes = int64_t{3} << 28;
constexpr int64_t kUnaskedBytesOfLargeFrames = int64_t{1} << 28;
constexpr int64_t kLargeFrame = 512;  // bytes for each call that is open

/// What is ready goes in this order. Depth: what is below most calls first; LongestPath: what most steps follow.
enum class Scheduler : uint8_t { Default, Fifo, Lifo, Random, Depth, LongestPath };

struct RunOptions {
  int64_t width = 4096;  ///< lanes of a wave, at most
  int64_t frames = std::numeric_limits<int64_t>::max();
  int64_t max_depth = std::numeric_limits<int64_t>::max();
  int64_t memory = std::numeric_limits<int64_t>::max();
  double timeout = std::numeric_limits<double>::infinity();
  bool check_finite = false;
  bool is_traced = false;
  int64_t threads = 1;
  bool is_timed = false;        ///< measure `RunStats::seconds`?
  bool goes_deep = false;       ///< frames are limited: do not use the agenda, which makes frames as early as it can
  bool shows_progress = false;  ///< tell the host now and then how far the run has come
  Scheduler scheduler = Scheduler::Default;
  uint64_t schedule_seed = 0;  ///< of Random

  /// Throws if calls may not nest so deep; `live` bytes are in use.
  void check_depth(int64_t depth, int64_t live) const {
    if (depth > max_depth) throw OverLimit{OverLimit::Kind::Depth};
    if (depth <= kUnaskedDepthOfLargeFrames || max_depth != kUnaskedDepth) return;
    const bool is_large = live > depth * kLargeFrame;
    if (live > (is_large ? kUnaskedBytesOfLargeFrames : kUnaskedBytes)) throw OverLimit{OverLimit::Kind::Depth, live};
  }
};

/// What a run spends time on: an item of some kind, narrow code, what crosses to other parts, or anything else.
enum class Step : uint8_t { Operator, Branch, Call, Loop, Map, Entry, Narrow, Crossing, Rest };
using StepSeconds = std::array<double, static_cast<size_t>(Step::Rest) + 1>;

struct Label {
  int64_t site;
  int64_t index;  ///< of the iteration or lane; -1 for calls
};

/// Why a run stopped.
struct Stop {
  enum class Kind : uint8_t {
    Fault,           // of a kernel: `values` are the operands of the lane
    NotFinite,       // `values` is the operator's result
    UnequalLanes,    // arrays of `a` and of `b` elements are mapped together
    UnequalResults,  // of the lanes of a map: `values` are those of one map
    UnequalVisits,   // `a` lanes are resumed with an array of `b` elements
    Memory,          // `a` bytes
    Frames,
    Depth,
    Timeout,
    OutOfMemory,
    Missing,  // a column is read that was dropped or never written
    Internal,
  };
  Kind kind;
  int32_t node = -1;
  int32_t site = -1;            ///< if there is no node: what was being entered
  std::vector<Label> tag = {};  ///< innermost first
  std::vector<Value> values = {};
  std::vector<Type> types = {};  ///< of the values
  int64_t a = 0, b = 0;
};

struct RunStats {
  int64_t activations = 0;
  int64_t waves = 0;
  int64_t lanes = 0;  ///< of all waves
  int64_t peak_width = 0;
  int64_t packed = 0;        ///< matrices that were packed once for all waves
  int64_t recalled = 0;      ///< results that an earlier wave had computed
  int64_t changed = 0;       ///< arrays that an operator has written into, instead of a copy
  int64_t shared_steps = 0;  ///< steps that several threads worked on
  int64_t tasks = 0;         ///< parts of invocations that run by themselves, perhaps on other threads
  int64_t joint_runs = 0;    ///< deferred steps that ran for several tables at once
  int64_t joint_tables = 0;  ///< tables of all these
  int64_t peak_frames = 0;
  int64_t peak_bytes = 0;
  int64_t max_depth = 0;
  std::vector<Label> deepest;
  std::vector<Label> stopped;  ///< tag at which the host stopped the run
  std::vector<int64_t> fired;  ///< by node: lanes on which the operator ran
  StepSeconds seconds{};       ///< by kind of step, summed over threads; if `is_timed`
};

/// Run; returns a value for each result of main. Throws Stop, and what the host throws. Inputs must not move or change
/// during the run; results never share memory with them. With a link, some of it may run elsewhere. The plan of a part
/// of a placed graph needs a wire to the other parts.
std::vector<Value> run_waves(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                             RunStats& stats, Link* link = nullptr, Wire* wire = nullptr);

}  // namespace undertow
