// One run of a plan: what it is told, what it tells, and what it needs of its host.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "undertow/memory.h"
#include "undertow/plan.h"

namespace undertow {

/// A value on its own: dtype and rank are known from the plan.
struct Value {
  std::vector<int64_t> shape;
  Buffer bytes;
};

/// Thrown by a host that wants the run to end at once, wherever that is.
struct Interrupted {};

/// What runs operators that act on the world, and those that have no kernel; and may stop the run by throwing.
class Host {
 public:
  virtual ~Host() = default;
  virtual void apply(int32_t node, std::span<const View> inputs, std::span<Value> outputs) = 0;
  virtual void poll() = 0;  ///< called every few milliseconds; may throw Interrupted
  /// Lanes of a region begin a phase, or a stage of it, together; only where the run is traced.
  virtual void wave(int32_t region, int64_t lanes, int64_t depth, int32_t phase, int32_t stage) {
    (void)region, (void)lanes, (void)depth, (void)phase, (void)stage;
  }
};

struct RunOptions {
  int64_t width = 4096;  ///< lanes of a wave, at most
  int64_t frames = std::numeric_limits<int64_t>::max();
  int64_t max_depth = std::numeric_limits<int64_t>::max();
  int64_t memory = std::numeric_limits<int64_t>::max();
  double timeout = std::numeric_limits<double>::infinity();
  bool check_finite = false;
  bool is_traced = false;
  int64_t threads = 1;
  bool is_timed = false;   ///< is `RunStats::seconds` asked for?
  bool goes_deep = false;  ///< no group by agenda, which makes frames as early as it can: they are few
};

/// What a run may be busy with: an item of some kind, lanes of a narrow wave one by one, or something else.
enum class Step : uint8_t { Operator, Branch, Call, Loop, Map, Entry, Narrow, Rest };
using StepSeconds = std::array<double, static_cast<size_t>(Step::Rest) + 1>;

struct Label {
  int64_t site;
  int64_t index;  ///< of the iteration or lane; -1 for calls
};

/// Why a run stopped.
struct Stop {
  enum class Kind : uint8_t {
    Fault,           // of a kernel: `values` are the operands of the lane
    NotFinite,       // `values` is what the operator gave
    UnequalLanes,    // arrays of `a` and of `b` elements are mapped together
    UnequalResults,  // of the lanes of a map: `values` are those of one map
    UnequalVisits,   // `a` lanes are resumed with an array of `b` elements
    Memory,          // `a` bytes
    Frames,
    Depth,
    Timeout,
    OutOfMemory,
    Missing,  // a column is read that is not there
    Internal,
  };
  Kind kind;
  int32_t node = -1;
  int32_t site = -1;            ///< where there is no node: what was being entered
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
  int64_t packed = 0;        ///< matrices that were packed, to be used by all waves
  int64_t recalled = 0;      ///< results that an earlier wave had computed
  int64_t shared_steps = 0;  ///< runs of operators that several threads worked on
  int64_t joint_runs = 0;    ///< runs of operators for several tables at once
  int64_t joint_tables = 0;  ///< of all these runs
  int64_t peak_frames = 0;
  int64_t peak_bytes = 0;
  int64_t max_depth = 0;
  std::vector<Label> deepest;
  std::vector<Label> stopped;  ///< where the host has stopped the run
  std::vector<int64_t> fired;  ///< lanes by node, of operators
  StepSeconds seconds{};       ///< by kind of step, of all threads together; where that is asked for
};

/// Run; gives a value for each result of main. Throws Stop, and what the host throws. Inputs stay where they are,
/// unchanged, until the run is over; results are copies of theirs, never the same memory.
std::vector<Value> run_waves(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                             RunStats& stats);

}  // namespace undertow
