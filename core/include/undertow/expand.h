// The graph-expanding engine: every call makes a copy of the callee's graph, and tokens move one at a time. Threads
// share a queue of the steps that are ready.
//
// A template is one phase of a body. A copy of it has a slot for each value, a count for each step that waits for more
// than one thing, and goes when none of its steps is ready and no copy below it is left: nothing can happen to it then.
// What later phases need goes into a table by call path; the copy of a later phase is a fresh one and finds it there.
//
// What a slot holds is of the slot's type, whoever wrote the templates: decoding checks the types of all that is moved,
// and a run those lengths that only it knows. So an operator whose types state all lengths need not look at shapes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "undertow/run.h"
#include "undertow/scalar.h"

namespace undertow::expand {

/// A slot of the copy or, if negative, constant number ~operand.
using Operand = int32_t;

/// What happens after a step has fired, an argument has arrived, or a copy has begun.
struct Edge {
  enum class Code : uint8_t {
    Ready,  // step a is ready
    Count,  // decrement count a; at zero step b is ready
    Move,   // copy operand a to slot b
    Share,  // the same for an array: one more reference
    Up,     // return operand b as result a
  };
  Code code;
  int32_t a, b;
};

struct Program {
  int32_t first = 0, count = 0;  ///< in Plan::edges
  int32_t tail = -1;             ///< the step to run right after it, if any
  bool goes_up = false;          ///< does it return results to the caller?
};

struct Pair {
  int32_t from, to;
};

struct Read {
  int32_t to;
  int32_t index;   ///< of the hoisted value, or slot of main
  bool is_shared;  ///< does it read main?
};

enum class StepCode : uint8_t {
  Op,
  Flat,
  Host,
  Branch,
  Call,
  Loop,
  Map,
  Again,
  Collect,
  Collected,
  Pass,
  Identity,
// Scalar operators, see undertow/scalar.h; most have a code for each of I32, I64, F32, F64, in this order.
#define UNDERTOW_SINGLE(name, ...) name,
#define UNDERTOW_ROW(name, ...) name, Last##name = name + 3,
  UNDERTOW_SINGLES(UNDERTOW_SINGLE) UNDERTOW_ARITHMETIC(UNDERTOW_ROW) UNDERTOW_DIVISIONS(UNDERTOW_ROW)
      UNDERTOW_TESTS(UNDERTOW_ROW)
#undef UNDERTOW_ROW
#undef UNDERTOW_SINGLE
};

/// A node of a template. Steps are in the order in which Python would come to them.
struct Step {
  StepCode code;
  Operand a = 0, b = 0, c = 0;
  int32_t to = 0;
  int32_t node = -1;
  int32_t extra = 0;  ///< number in the table of its kind
  int32_t ahead = 0;  ///< steps on the longest path from it to the end of its body
  int32_t part = -1;  ///< of a collect: number of the part of a copy that keeps what it collects
  Program program;
};

struct Op {
  int32_t kernel;
  std::vector<Operand> inputs;
  std::vector<int32_t> outputs;  ///< slots, or kNoSlot for order tokens
  bool is_static = false;        ///< all shapes are known, and were compared with what the kernel gives
};

struct Branch {
  Program sides[2];
};

struct Result {
  bool is_there = false;
  int32_t node = -1;
  bool is_order = false;
  int32_t to = kNoSlot;
  Program program;
};

struct Entering {
  enum class Kind : uint8_t { Call, Loop, Map };
  Kind kind;
  int32_t site, phase, callee;
  int32_t order;      ///< of its step, among those of the caller
  int32_t ahead;      ///< of its step
  int32_t part = -1;  ///< number of the part of a copy that keeps what is collected below; -1: nothing is, for the copy
  bool has_path;
  std::vector<Operand> hoists;  ///< hoisted values of the entry that it makes
  int32_t entry;                ///< slot of the caller that holds it
  std::vector<Pair> arguments;
  std::vector<Pair> mapped;  ///< arrays, and slots of a lane for their elements
  Operand counted;           ///< an array whose leading dimension is the number of lanes; first phase only
  int32_t lanes;             ///< slot for this number
  int32_t lanes_too;
  std::vector<Result> results;
  Program done;
  std::vector<int32_t> visits;  ///< [k]: how often the callee is visited if the caller is k + 1 times
};

struct Collect {
  int32_t index;
  bool is_rows;
  Operand values[2];
};

struct Collected {
  int32_t entry;
  int32_t index;
  Operand like;
  int32_t to[2];
};

/// The number of values of each kind: arrays come first, then entries, then scalars.
struct Layout {
  int32_t arrays, entries, all;
};

struct Template {
  int32_t number;  ///< in Plan::templates
  int32_t body, phase;
  bool is_function;
  Layout layout;
  std::vector<ValueType> types;  ///< of slots
  Layout record;                 ///< of the values that phases of the body save for later ones
  std::vector<Pair> loads;       ///< from the record
  std::vector<Pair> saves;       ///< to the record
  std::vector<Read> reads;
  std::vector<uint32_t> counts;
  Program start;
  std::vector<Step> steps;
  std::vector<std::vector<Pair>> again;  ///< arguments of the next iteration
  int32_t parts = 0;                     ///< steps that collect, or enter what does
  std::vector<int32_t> series;           ///< parts with the sums of several copies: of loops and maps
  int64_t counts_at, parts_at;           ///< bytes from the start of a copy
  int32_t copy_size, record_size;        ///< size classes of Arena
};

class Plan {
 public:
  /// Decode; throws std::invalid_argument if the templates are not valid.
  Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> constants);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  struct Fetch {
    bool is_order;
    ValueType type;
  };

  std::vector<Template> templates;  // the first is main
  std::vector<Edge> edges;
  std::vector<Op> ops;
  std::vector<Branch> branches;
  std::vector<Entering> enterings;
  std::vector<Collect> collects;
  std::vector<Collected> collecteds;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<ValueType> constant_types;
  std::vector<uint64_t> constants;  // scalars, or arrays as blocks without reference counts
  std::vector<int32_t> inputs;      // slots of main
  std::vector<Fetch> fetches;
  int32_t nodes = 0;
  size_t most_operands = 0;

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// Run; returns a value for each fetch. Throws Stop, and what the host throws.
std::vector<Value> run(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                       RunStats& stats);

}  // namespace undertow::expand
