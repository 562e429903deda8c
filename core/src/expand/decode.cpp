// Decode templates: every number and every type is looked at once, here, so that a run need not.
//
// The order of what happens is not looked at. A run stands any: an array that is not there yet stops it, a copy lives
// as long as something can happen to it, and time is looked at while steps fire.
#include <algorithm>
#include <map>
#include <new>
#include <string_view>

#include "array.h"
#include "copy.h"
#include "heap.h"
#include "plan/int_reader.h"
#include "undertow/elementwise.h"
#include "undertow/expand.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

constexpr int64_t kVersion = 3;

Layout read_layout(IntReader& in) {
  Layout layout{in.count(), in.count(), in.count()};
  if (int64_t{layout.arrays} + layout.entries > layout.all) not_a_plan("a layout is wrong");
  return layout;
}

class Decoder {
 public:
  Decoder(Plan& plan, std::span<const int64_t> rows, std::span<const std::string> words)
      : plan_(plan), in_(rows), words_(words) {}

  void decode() {
    if (in_.next() != kVersion)
      not_a_plan("the core was built for another version of the encoding; rebuild it: `make core`");
    plan_.nodes = in_.between(0, IntReader::kMost);
    if (in_.count() != static_cast<int32_t>(plan_.constants.size())) not_a_plan("constants are missing");
    const int32_t kernels = in_.count();
    for (int32_t k = 0; k < kernels; ++k) {
      kernels_.push_back(read_kernel(in_, words_));
      plan_.kernels.push_back(std::move(kernels_.back().kernel));
    }
    const int32_t templates = in_.count();
    if (templates == 0) not_a_plan("there is no main");
    plan_.templates.resize(z(templates));
    ups_.resize(z(templates));
    collects_.resize(z(templates));
    for (Template& made : plan_.templates) read_template(made);
    Template& main = plan_.templates[0];
    read(plan_.inputs, [&] { return slot_of(main); });
    read(plan_.fetches, [&] {
      const bool is_value = in_.flag();
      return Plan::Fetch{!is_value, is_value ? read_type(in_) : ValueType{}};
    });
    if (!in_.at_end()) not_a_plan("it goes on after its end");
    for (const Template& made : plan_.templates) bodies_[made.body].push_back(&made);
    for (const auto& [body, phases] : bodies_) check_phases(phases);
    if (main.phase != 0 || phases_of(main) != 1) not_a_plan("main has phases");
    for (const Edge& up : ups_[0])
      if (z(up.a) >= plan_.fetches.size() || !is_given(plan_.fetches[z(up.a)], up.b))
        not_a_plan("there is no such fetch");
    for (const Template& made : plan_.templates) check(made);
    find_collecting();
    for (Template& made : plan_.templates) lay_out(made);
  }

 private:
  /// A list: its length, then its members.
  template <class T, class Each>
  void read(std::vector<T>& to, Each&& each) {
    to.resize(z(in_.count()));
    for (T& one : to) one = each();
  }
  /// A constant, or a slot that holds a value.
  Operand operand(const Template& from) {
    const Operand x = in_.between(-static_cast<int64_t>(plan_.constants.size()), from.layout.all);
    if (x >= 0 && kind(from.layout, x) == kEntry) not_a_plan("an entry is no value");
    return x;
  }
  int32_t slot_there(const Template& from) {
    const Operand x = operand(from);
    if (x < 0) not_a_plan("there is no such slot");
    return x;
  }
  /// The same, or kNoSlot.
  Operand operand_of(const Template& from) { return in_.peek() == kNoSlot ? in_.any() : operand(from); }
  int32_t slot_of(const Template& from) { return in_.peek() == kNoSlot ? in_.any() : slot_there(from); }
  int32_t entry_of(const Template& from) {
    if (in_.peek() == kNoSlot) return in_.any();
    const int32_t slot = in_.between(0, from.layout.all);
    if (kind(from.layout, slot) != kEntry) not_a_plan("an entry is none");
    return slot;
  }
  /// A slot for a number of lanes, or kNoSlot.
  int32_t count_of(const Template& from) {
    const int32_t slot = slot_of(from);
    if (slot != kNoSlot && (from.types[z(slot)].dtype != DType::I64 || from.types[z(slot)].rank() != 0))
      not_a_plan("a number of lanes is no i64");
    return slot;
  }
  const ValueType& type(const Template& from, Operand x) const {
    return x >= 0 ? from.types[z(x)] : plan_.constant_types[z(~x)];
  }

  Program read_program(const Template& from) {
    const int32_t count = in_.count();
    Program program{static_cast<int32_t>(plan_.edges.size()), count};
    for (int32_t k = 0; k < count; ++k) {
      Edge edge{};
      switch (in_.between(0, 4)) {
        case 0:
          edge = {Edge::Code::Ready, in_.between(0, IntReader::kMost), 0};
          in_.next();
          break;
        case 1:
          edge = {Edge::Code::Count, in_.between(0, static_cast<int64_t>(from.counts.size())), 0};
          edge.b = in_.between(0, IntReader::kMost);
          break;
        case 2:
          edge = {Edge::Code::Move, operand(from), 0};
          edge.b = slot_there(from);
          if (!is_fitting(type(from, edge.b), type(from, edge.a))) not_a_plan("a value of another type is moved");
          if (is_array(type(from, edge.b))) edge.code = Edge::Code::Share;
          break;
        default:
          edge = {Edge::Code::Up, in_.between(0, IntReader::kMost), 0};
          edge.b = operand_of(from);
          program.goes_up = true;
          ups_[z(from.number)].push_back(edge);
      }
      plan_.edges.push_back(edge);
    }
    program.tail = in_.between(-1, IntReader::kMost);
    return program;
  }

  std::vector<Pair> read_pairs(int32_t froms, int32_t tos) {
    std::vector<Pair> pairs;
    read(pairs, [&] { return Pair{in_.between(0, froms), in_.between(0, tos)}; });
    return pairs;
  }

  void read_template(Template& made) {
    made.number = static_cast<int32_t>(&made - plan_.templates.data());
    made.body = in_.between(0, IntReader::kMost);
    made.phase = in_.between(0, IntReader::kMost);
    made.is_function = in_.flag();
    made.layout = read_layout(in_);
    for (int32_t k = 0; k < made.layout.all; ++k) {
      made.types.push_back(read_type(in_));
      if (is_array(made.types.back()) != (k < made.layout.arrays)) not_a_plan("an array stands among scalars");
    }
    made.record = read_layout(in_);
    made.loads = read_pairs(made.record.all, made.layout.all);
    made.saves = read_pairs(made.layout.all, made.record.all);
    read(made.reads, [&] { return Read{slot_there(made), in_.between(0, IntReader::kMost), in_.flag()}; });
    read(made.counts, [&] { return static_cast<uint32_t>(in_.between(2, IntReader::kMost)); });
    made.start = read_program(made);
    made.steps.resize(z(in_.count()));
    for (Step& step : made.steps) read_step(made, step);
    made.record_size = size_number(8 * int64_t{made.record.all});
    while (made.counts.size() % 4 != 0) made.counts.push_back(0);  // `open` copies 16 bytes at a time
  }

  void read_step(Template& made, Step& step) {
    const int32_t kind = in_.between(0, 7);
    step.ahead = in_.between(0, IntReader::kMost);
    step.program = read_program(made);
    switch (kind) {
      case 0: read_op(made, step); break;
      case 1: {
        step.code = StepCode::Branch;
        step.a = operand(made);
        if (type(made, step.a).dtype != DType::Bool || type(made, step.a).rank() != 0)
          not_a_plan("a branch is not decided by a bool");
        Branch branch{};
        for (Program& side : branch.sides) side = read_program(made);
        step.extra = added(plan_.branches, branch);
        break;
      }
      case 2: read_entering(made, step); break;
      case 3: {
        step.code = StepCode::Again;
        std::vector<Pair> pairs;
        read(pairs, [&] { return Pair{operand(made), slot_there(made)}; });
        for (const Pair& pair : pairs) {
          if (!is_fitting(type(made, pair.to), type(made, pair.from))) not_a_plan("a variable changes its type");
        }
        step.extra = added(made.again, std::move(pairs));
        break;
      }
      case 4: {
        step.code = StepCode::Collect;
        step.node = in_.between(0, plan_.nodes);
        Collect collect{};
        collect.index = in_.between(0, IntReader::kMost);
        collect.is_rows = in_.flag();
        for (Operand& value : collect.values) value = operand(made);
        if (collect.is_rows ? !is_integer(type(made, collect.values[0]))
                            : !is_float(type(made, collect.values[1])) || collect.values[0] != collect.values[1])
          not_a_plan("what is collected is neither rows nor a float");
        collects_[z(made.number)] = true;
        step.extra = added(plan_.collects, collect);
        break;
      }
      case 5: {
        step.code = StepCode::Collected;
        Collected collected{};
        collected.entry = entry_of(made);
        if (collected.entry == kNoSlot) not_a_plan("an entry is none");
        collected.index = in_.between(0, IntReader::kMost);
        collected.like = operand(made);
        for (int32_t& to : collected.to) to = slot_of(made);
        check(made, collected);
        step.extra = added(plan_.collecteds, collected);
        break;
      }
      default: step.code = StepCode::Pass;
    }
  }

  void read_op(Template& made, Step& step) {
    step.node = in_.between(0, plan_.nodes);
    Op op;
    op.kernel = in_.between(-1, static_cast<int64_t>(kernels_.size()));
    read(op.inputs, [&] { return operand(made); });
    read(op.outputs, [&] { return slot_of(made); });
    plan_.most_operands = std::max(plan_.most_operands, op.inputs.size() + op.outputs.size());
    if (op.kernel >= 0 && plan_.kernels[z(op.kernel)] == nullptr) op.kernel = -1;
    step.code = op.kernel < 0 ? StepCode::Host : StepCode::Op;
    if (op.kernel >= 0) {
      const BoundKernel& bound = kernels_[z(op.kernel)];
      if (bound.inputs.size() != op.inputs.size() || bound.outputs.size() != op.outputs.size())
        not_a_plan("an operator has other operands than its kernel");
      bool is_scalar = op.inputs.size() <= 3 && op.outputs.size() == 1;
      const auto fit = [&](const std::vector<int32_t>& operands, const std::vector<Type>& wanted) {
        for (size_t k = 0; k < operands.size(); ++k) {
          if (operands[k] == kNoSlot) not_a_plan("a kernel has nowhere to write to");
          const ValueType& own = type(made, operands[k]);
          if (own.dtype != wanted[k].dtype || own.rank() != wanted[k].rank)
            not_a_plan("an operand or result is of another type than the kernel's");
          is_scalar = is_scalar && !is_array(own);
        }
      };
      fit(op.inputs, bound.inputs);
      fit(op.outputs, bound.outputs);
      op.is_static = is_static(made, op);
      if (is_scalar) read_scalar(op, bound, step);
    }
    step.extra = added(plan_.ops, std::move(op));
  }

  /// Do types state all lengths, and do they state what the kernel gives? Where that stops on them, a run says so.
  bool is_static(const Template& made, const Op& op) const {
    const Kernel& kernel = *plan_.kernels[z(op.kernel)];
    std::vector<View> views;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const Operand x = op.inputs[k];
      const ValueType& own = type(made, x);
      const bool decides = k < 64 && (kernel.deciding() >> k & 1) != 0;
      if (own.is_dynamic || (decides && (x >= 0 || is_array(own)))) return false;
      views.push_back({x < 0 && !is_array(own) ? const_cast<uint64_t*>(&plan_.constants[z(~x)]) : nullptr, 0,
                       own.shape.data(), own.rank(), own.dtype});
    }
    for (int32_t to : op.outputs)
      if (made.types[z(to)].is_dynamic) return false;
    std::vector<Shape> shapes(op.outputs.size());
    if (kernel.shape(views.data(), shapes.data())) return false;
    for (size_t k = 0; k < op.outputs.size(); ++k)
      if (!is_shaped(made.types[z(op.outputs[k])], shapes[k].sizes, shapes[k].rank))
        not_a_plan("the result of a kernel does not have the shape of its slot");
    return true;
  }

  void read_scalar(const Op& op, const BoundKernel& bound, Step& step) {
    step.to = op.outputs[0];
    Operand* const operands[3] = {&step.a, &step.b, &step.c};
    for (size_t k = 0; k < op.inputs.size(); ++k) *operands[k] = op.inputs[k];
    const bool is_one = op.inputs.size() == 1;
    if (is_one && (bound.op == "identity" || bound.op == "stop_gradient" || bound.op == "fill")) {
      step.code = StepCode::Identity;
    } else if (const Elementwise* each = plan_.kernels[z(op.kernel)]->elementwise()) {
      step.code = code_of<StepCode>(bound.op, *each);
    }
  }

  void read_entering(Template& made, Step& step) {
    step.node = in_.between(0, plan_.nodes);
    Entering row{};
    row.kind = static_cast<Entering::Kind>(in_.between(0, 3));
    constexpr StepCode codes[] = {StepCode::Call, StepCode::Loop, StepCode::Map};
    step.code = codes[static_cast<int>(row.kind)];
    row.site = in_.between(0, IntReader::kMost);
    row.phase = in_.between(0, IntReader::kMost);
    row.callee = in_.between(1, static_cast<int64_t>(plan_.templates.size()));
    row.has_path = in_.flag();
    read(row.hoists, [&] { return operand(made); });
    row.entry = entry_of(made);
    if (!row.hoists.empty() && row.entry == kNoSlot) not_a_plan("an entry has no place");
    if (row.kind == Entering::Kind::Map && row.entry != kNoSlot) not_a_plan("a map makes an entry");
    for (auto* pairs : {&row.arguments, &row.mapped})
      read(*pairs, [&] { return Pair{operand(made), in_.between(kNoSlot, IntReader::kMost)}; });
    row.counted = operand_of(made);
    if (row.counted != kNoSlot && type(made, row.counted).rank() == 0) not_a_plan("a map over no array");
    row.lanes = count_of(made);
    row.lanes_too = count_of(made);
    read(row.results, [&] {
      if (!in_.flag()) return Result{};
      return Result{true, in_.between(0, plan_.nodes), in_.flag(), slot_of(made), read_program(made)};
    });
    row.done = read_program(made);
    read(row.visits, [&] { return in_.between(0, IntReader::kMost); });
    row.order = static_cast<int32_t>(&step - made.steps.data());
    row.ahead = step.ahead;
    step.extra = added(plan_.enterings, std::move(row));
  }

  static bool enters(const Step& step) {
    return step.code == StepCode::Call || step.code == StepCode::Loop || step.code == StepCode::Map;
  }

  /// Which templates collect for the entry that their copies are below, in steps of their own or in what they enter?
  void find_collecting() {
    std::vector<std::vector<int32_t>> callers(plan_.templates.size());
    for (const Template& made : plan_.templates)
      for (const Step& step : made.steps)
        if (enters(step) && plan_.enterings[z(step.extra)].entry == kNoSlot)
          callers[z(plan_.enterings[z(step.extra)].callee)].push_back(made.number);
    std::vector<int32_t> todo;
    for (size_t k = 0; k < collects_.size(); ++k)
      if (collects_[k]) todo.push_back(static_cast<int32_t>(k));
    while (!todo.empty()) {
      const int32_t callee = todo.back();
      todo.pop_back();
      for (int32_t caller : callers[z(callee)])
        if (!collects_[z(caller)]) {
          collects_[z(caller)] = true;
          todo.push_back(caller);
        }
    }
  }

  /// Where what stands in a copy, now that it is known what collects. A series is kept even if its sums go to an entry.
  void lay_out(Template& made) {
    for (Step& step : made.steps) {
      if (step.code == StepCode::Collect) step.part = made.parts++;
      if (!enters(step)) continue;
      Entering& row = plan_.enterings[z(step.extra)];
      const bool is_one = row.kind == Entering::Kind::Call;
      if (!collects_[z(row.callee)] || (is_one && row.entry != kNoSlot)) continue;
      row.part = made.parts++;
      if (!is_one) made.series.push_back(row.part);
    }
    // What is collected in main, or in what it enters, is for entries.
    made.counts_at = copy_head() + 8 * int64_t{made.layout.all};
    made.parts_at = made.counts_at + 4 * static_cast<int64_t>(made.counts.size());
    made.copy_size = size_number(std::max(static_cast<int64_t>(sizeof(Copy)), made.parts_at + 8 * int64_t{made.parts}));
  }

  static bool is_float(const ValueType& type) { return is_inexact(type.dtype); }
  static bool is_integer(const ValueType& type) { return type.dtype == DType::I32 || type.dtype == DType::I64; }

  void check(const Template& made, const Collected& row) const {
    const ValueType& like = type(made, row.like);
    if (row.to[1] == kNoSlot) {
      if (!is_float(like)) not_a_plan("what is added up is no float");
      if (row.to[0] == kNoSlot || !is_fitting(made.types[z(row.to[0])], like))
        not_a_plan("what is collected goes nowhere");
      return;
    }
    if (like.rank() == 0) not_a_plan("rows of a scalar");
    ValueType numbers{DType::I64, {kUnknown}}, rows{like.dtype, like.shape};
    rows.shape[0] = kUnknown;
    if ((row.to[0] != kNoSlot && !is_fitting(made.types[z(row.to[0])], numbers)) ||
        !is_fitting(made.types[z(row.to[1])], rows))
      not_a_plan("rows of another type than what is collected");
  }

  // -- what could not be looked at before everything was there --------------------------------------------------

  /// The phases of a body are all there, and agree on what earlier ones leave to later ones.
  void check_phases(const std::vector<const Template*>& phases) const {
    std::vector<bool> found(phases.size(), false);
    const Layout& record = phases[0]->record;
    std::vector<const ValueType*> types(z(record.all), nullptr);
    for (const Template* made : phases) {
      if (z(made->phase) >= phases.size() || found[z(made->phase)]) not_a_plan("a phase is missing");
      found[z(made->phase)] = true;
      if (made->record.all != record.all || made->record.arrays != record.arrays ||
          made->record.entries != record.entries)
        not_a_plan("phases of one body have unequal records");
      for (const Pair& save : made->saves) {
        const ValueType& own = made->types[z(save.from)];
        const ValueType*& known = types[z(save.to)];
        if (kind(made->layout, save.from) != kind(record, save.to)) not_a_plan("a value of another kind is saved");
        if (known != nullptr && !is_fitting(*known, own)) not_a_plan("a value of another type is saved");
        known = &own;
      }
    }
    for (const Template* made : phases)
      for (const Pair& load : made->loads) {
        const ValueType* known = types[z(load.from)];
        if (kind(record, load.from) != kind(made->layout, load.to)) not_a_plan("a value of another kind is loaded");
        if (known == nullptr || !is_fitting(made->types[z(load.to)], *known))
          not_a_plan("a value of another type is loaded");
      }
  }

  int32_t phases_of(const Template& made) const { return static_cast<int32_t>(bodies_.at(made.body).size()); }

  bool is_given(const Plan::Fetch& fetch, Operand x) const {
    return fetch.is_order || (x != kNoSlot && is_fitting(fetch.type, type(plan_.templates[0], x)));
  }

  void check(const Template& made) const {
    check(made, made.start);
    const Template& main = plan_.templates[0];
    for (const Read& read : made.reads)
      if (read.is_shared && (read.index >= main.layout.all || kind(main.layout, read.index) == kEntry ||
                             !is_fitting(made.types[z(read.to)], main.types[z(read.index)])))
        not_a_plan("there is no such value in main");
    std::vector<std::vector<int32_t>> tails(made.steps.size());
    for (size_t k = 0; k < made.steps.size(); ++k) {
      const Step& step = made.steps[k];
      check(made, step.program);
      if (step.code == StepCode::Branch) {
        for (const Program& side : plan_.branches[z(step.extra)].sides) {
          check(made, side);
          tails[k].push_back(side.tail);
        }
      } else {
        tails[k].push_back(step.program.tail);
      }
      if (enters(step)) check(made, plan_.enterings[z(step.extra)]);
    }
    check_tails(tails);
  }

  /// Steps that go on to each other without a token come to an end.
  static void check_tails(const std::vector<std::vector<int32_t>>& tails) {
    std::vector<int32_t> before(tails.size(), 0), ready;
    for (const auto& next : tails)
      for (int32_t step : next)
        if (step >= 0) ++before[z(step)];
    for (size_t k = 0; k < tails.size(); ++k)
      if (before[k] == 0) ready.push_back(static_cast<int32_t>(k));
    for (size_t at = 0; at < ready.size(); ++at)
      for (int32_t step : tails[z(ready[at])])
        if (step >= 0 && --before[z(step)] == 0) ready.push_back(step);
    if (ready.size() != tails.size()) not_a_plan("a step goes on to itself");
  }

  void check(const Template& made, const Program& program) const {
    const auto steps = static_cast<int32_t>(made.steps.size());
    if (program.tail >= steps) not_a_plan("there is no such step");
    for (int32_t k = 0; k < program.count; ++k) {
      const Edge& edge = plan_.edges[z(program.first + k)];
      if ((edge.code == Edge::Code::Ready && edge.a >= steps) || (edge.code == Edge::Code::Count && edge.b >= steps))
        not_a_plan("there is no such step");
    }
  }

  void check(const Template& made, const Entering& row) const {
    const Template& callee = plan_.templates[z(row.callee)];
    const auto to = [&](int32_t slot) -> const ValueType& {
      if (slot < 0 || slot >= callee.layout.all || kind(callee.layout, slot) == kEntry)
        not_a_plan("there is no such argument");
      return callee.types[z(slot)];
    };
    const bool is_map = row.kind == Entering::Kind::Map;
    for (const Pair& pair : row.arguments)
      if (!is_fitting(to(pair.to), type(made, pair.from))) not_a_plan("an argument has another type");
    for (const Pair& pair : row.mapped)
      if (type(made, pair.from).rank() == 0 ||
          (pair.to != kNoSlot && !is_fitting(to(pair.to), row_of(type(made, pair.from)))))
        not_a_plan("a lane is no row of the stack");
    for (const Result& result : row.results) check(made, result.program);
    for (const Edge& up : ups_[z(row.callee)]) {
      if (z(up.a) >= row.results.size() || row.results[z(up.a)].is_order || row.results[z(up.a)].to == kNoSlot)
        continue;
      const ValueType& taken = made.types[z(row.results[z(up.a)].to)];
      if (up.b == kNoSlot || (is_map && taken.rank() == 0) ||
          !is_fitting(is_map ? row_of(taken) : taken, type(callee, up.b)))
        not_a_plan("a result has another type");
    }
    check(made, row.done);
    if (is_map && row.counted == kNoSlot && row.lanes == kNoSlot)
      not_a_plan("it is not known how many lanes there are");
    for (const Step& step : callee.steps) {
      if (step.code == StepCode::Again && row.kind != Entering::Kind::Loop) not_a_plan("what is no loop goes on");
      if (enters(step) && plan_.enterings[z(step.extra)].has_path && !row.has_path) not_a_plan("a path is not known");
    }
    if (callee.record.all > 0 && !row.has_path) not_a_plan("a path is not known");
    if (callee.phase != row.phase) not_a_plan("another phase is entered");
    if (static_cast<int32_t>(row.visits.size()) != phases_of(made))
      not_a_plan("it is not said how often something is visited");
    for (size_t count = z(made.phase); count < row.visits.size(); ++count)
      if (row.visits[count] <= row.phase || row.visits[count] > phases_of(callee))
        not_a_plan("a phase is visited that is not there");
  }

  /// The type of one row of an array.
  static ValueType row_of(const ValueType& stack) {
    return {stack.dtype, std::vector<int64_t>(stack.shape.begin() + 1, stack.shape.end())};
  }

  static constexpr int kEntry = 1;
  /// 0: an array, 1: an entry, 2: a scalar.
  static int kind(const Layout& layout, int32_t number) {
    return number < layout.arrays ? 0 : number < layout.arrays + layout.entries ? kEntry : 2;
  }

  template <class T>
  static int32_t added(std::vector<T>& table, T row) {
    table.push_back(std::move(row));
    return static_cast<int32_t>(table.size() - 1);
  }

  Plan& plan_;
  IntReader in_;
  std::span<const std::string> words_;
  std::vector<BoundKernel> kernels_;                        // their kernels are the plan's
  std::vector<std::vector<Edge>> ups_;                      // of each template: what it hands up
  std::vector<bool> collects_;                              // of each template: for the entry that it is below
  std::map<int32_t, std::vector<const Template*>> bodies_;  // the phases of each
};

}  // namespace

Plan::Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> given) {
  for (const Constant& constant : given) {
    const ValueType& slot = constant.slot;
    uint64_t cell = 0;
    if (!is_array(slot)) {
      std::memcpy(&cell, constant.data, z(slot.bytes));
    } else {
      const int64_t bytes = static_cast<int64_t>(sizeof(Block)) + shape_bytes(slot.rank()) + slot.bytes + 192;
      memory_.push_back(std::make_unique<std::byte[]>(z(bytes)));
      const auto address = reinterpret_cast<uintptr_t>(memory_.back().get());
      Block* array = new (memory_.back().get() + (64 - address % 64) % 64) Block{};
      array->refs = kConstant;
      if (slot.rank() > 0) std::memcpy(shape_of(array), slot.shape.data(), slot.shape.size() * 8);
      if (slot.bytes > 0) std::memcpy(data_of(array, slot.rank()), constant.data, z(slot.bytes));
      cell = as_cell(array);
    }
    constants.push_back(cell);
    constant_types.push_back(slot);
  }
  Decoder(*this, rows, words).decode();
}

Plan::~Plan() = default;

}  // namespace undertow::expand
