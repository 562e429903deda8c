// Decode templates. Every number is checked here, once, so that runs need not.
#include <algorithm>
#include <new>
#include <string_view>

#include "array.h"
#include "copy.h"
#include "plan/int_reader.h"
#include "undertow/elementwise.h"
#include "undertow/expand.h"
#include "undertow/size.h"

namespace undertow::expand {
namespace {

constexpr int64_t kVersion = 1;

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
    for (Template& made : plan_.templates) read_template(made);
    Template& main = plan_.templates[0];
    read(plan_.inputs, [&] { return slot_of(main); });
    read(plan_.fetches, [&] {
      const bool is_value = in_.flag();
      return Plan::Fetch{!is_value, is_value ? read_type(in_) : ValueType{}};
    });
    if (!in_.at_end()) not_a_plan("it goes on after its end");
    for (const Template& made : plan_.templates) check(made);
  }

 private:
  /// A list: its length, then its members.
  template <class T, class Each>
  void read(std::vector<T>& to, Each&& each) {
    to.resize(z(in_.count()));
    for (T& one : to) one = each();
  }
  /// A slot of a template, or kNoSlot.
  int32_t slot_of(const Template& from) {
    const int64_t value = in_.next();
    if (value == kNoSlot) return kNoSlot;
    if (value < 0 || value >= from.layout.all) not_a_plan("there is no such slot");
    return static_cast<int32_t>(value);
  }
  int32_t slot_there(const Template& from) { return in_.between(0, from.layout.all); }
  Operand operand(const Template& from) {
    return in_.between(-static_cast<int64_t>(plan_.constants.size()), from.layout.all);
  }
  /// An operand, or kNoSlot.
  Operand operand_of(const Template& from) { return in_.peek() == kNoSlot ? in_.any() : operand(from); }
  int32_t entry_of(const Template& from) {
    const int32_t slot = slot_of(from);
    if (slot != kNoSlot && kind(from.layout, slot) != 1) not_a_plan("an entry is none");
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
          if (type(from, edge.a).rank() != type(from, edge.b).rank()) not_a_plan("a value of another rank is moved");
          if (type(from, edge.b).rank() > 0) edge.code = Edge::Code::Share;
          break;
        default:
          edge = {Edge::Code::Up, in_.between(0, IntReader::kMost), 0};
          edge.b = operand_of(from);
          program.goes_up = true;
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
    made.body = in_.between(0, IntReader::kMost);
    made.phase = in_.between(0, IntReader::kMost);
    made.is_function = in_.flag();
    made.layout = read_layout(in_);
    for (int32_t k = 0; k < made.layout.all; ++k) {
      made.types.push_back(read_type(in_));
      if ((made.types.back().rank() > 0) != (k < made.layout.arrays)) not_a_plan("an array stands among scalars");
    }
    made.record = read_layout(in_);
    made.loads = read_pairs(made.record.all, made.layout.all);
    made.saves = read_pairs(made.layout.all, made.record.all);
    read(made.reads, [&] { return Read{slot_there(made), in_.between(0, IntReader::kMost), in_.flag()}; });
    read(made.counts, [&] { return static_cast<uint32_t>(in_.between(2, IntReader::kMost)); });
    made.size = in_.between(0, IntReader::kMost);
    made.start = read_program(made);
    made.steps.resize(z(in_.count()));
    for (Step& step : made.steps) read_step(made, step);
    made.counts_at = copy_head() + 8 * int64_t{made.layout.all};
    made.copy_size =
        Arena::size_number(std::max(static_cast<int64_t>(sizeof(Copy)),
                                    made.counts_at + 4 * static_cast<int64_t>((made.counts.size() + 3) / 4 * 4)));
    made.record_size = Arena::size_number(8 * int64_t{made.record.all});
    while (made.counts.size() % 4 != 0) made.counts.push_back(0);  // `open` copies 16 bytes at a time
  }

  void read_step(Template& made, Step& step) {
    const int32_t kind = in_.between(0, 7);
    step.program = read_program(made);
    switch (kind) {
      case 0: read_op(made, step); break;
      case 1: {
        step.code = StepCode::Branch;
        step.a = operand(made);
        if (type(made, step.a).dtype != DType::Bool || type(made, step.a).rank() != 0)
          not_a_plan("a branch is not decided by a bool");
        Branch branch{};
        for (int side = 0; side < 2; ++side) {
          branch.sizes[side] = in_.between(0, IntReader::kMost);
          branch.sides[side] = read_program(made);
        }
        step.extra = added(plan_.branches, branch);
        break;
      }
      case 2: read_entering(made, step); break;
      case 3: {
        step.code = StepCode::Again;
        std::vector<Pair> pairs;
        read(pairs, [&] { return Pair{operand(made), slot_there(made)}; });
        for (const Pair& pair : pairs) {
          if (type(made, pair.from).rank() != type(made, pair.to).rank()) not_a_plan("a variable changes its rank");
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
      op.is_static = true;
      bool is_scalar = op.inputs.size() <= 3 && op.outputs.size() == 1;
      const auto fit = [&](const std::vector<int32_t>& operands, const std::vector<Type>& wanted) {
        for (size_t k = 0; k < operands.size(); ++k) {
          if (operands[k] == kNoSlot) not_a_plan("a kernel has nowhere to write to");
          const ValueType& own = type(made, operands[k]);
          if (own.dtype != wanted[k].dtype || own.rank() != wanted[k].rank)
            not_a_plan("an operand or result is of another type than the kernel's");
          op.is_static = op.is_static && !own.is_dynamic;
          is_scalar = is_scalar && own.rank() == 0;
        }
      };
      fit(op.inputs, bound.inputs);
      fit(op.outputs, bound.outputs);
      if (is_scalar) read_scalar(op, bound, step);
    }
    step.extra = added(plan_.ops, std::move(op));
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
    row.callee = in_.between(0, static_cast<int64_t>(plan_.templates.size()));
    row.has_path = in_.flag();
    read(row.hoists, [&] { return operand(made); });
    row.entry = entry_of(made);
    if (!row.hoists.empty() && row.entry == kNoSlot) not_a_plan("an entry has no place");
    for (auto* pairs : {&row.arguments, &row.mapped})
      read(*pairs, [&] { return Pair{operand(made), in_.between(kNoSlot, IntReader::kMost)}; });
    row.counted = operand_of(made);
    if (row.counted != kNoSlot && type(made, row.counted).rank() == 0) not_a_plan("a map over no array");
    row.lanes = slot_of(made);
    row.lanes_too = slot_of(made);
    read(row.results, [&] {
      if (!in_.flag()) return Result{};
      return Result{true, in_.between(0, plan_.nodes), in_.flag(), slot_of(made), read_program(made)};
    });
    row.done = read_program(made);
    read(row.visits, [&] { return in_.between(0, IntReader::kMost); });
    step.extra = added(plan_.enterings, std::move(row));
  }

  /// Checks that need all templates decoded.
  void check(const Template& made) const {
    const auto steps = static_cast<int32_t>(made.steps.size());
    check(made, made.start, steps);
    for (const Read& read : made.reads) {
      const Template& main = plan_.templates[0];
      if (read.is_shared &&
          (read.index >= main.layout.all || main.types[z(read.index)].rank() != made.types[z(read.to)].rank()))
        not_a_plan("there is no such value in main");
    }
    for (const Pair& load : made.loads)
      if (kind(made.record, load.from) != kind(made.layout, load.to)) not_a_plan("a value of another kind is loaded");
    for (const Pair& save : made.saves)
      if (kind(made.layout, save.from) != kind(made.record, save.to)) not_a_plan("a value of another kind is saved");
    for (const Step& step : made.steps) {
      check(made, step.program, steps);
      if (step.code == StepCode::Branch)
        for (const Program& side : plan_.branches[z(step.extra)].sides) check(made, side, steps);
      if (step.code == StepCode::Call || step.code == StepCode::Loop || step.code == StepCode::Map)
        check(made, plan_.enterings[z(step.extra)], steps);
    }
  }

  void check(const Template& made, const Program& program, int32_t steps) const {
    if (program.tail >= steps) not_a_plan("there is no such step");
    for (int32_t k = 0; k < program.count; ++k) {
      const Edge& edge = plan_.edges[z(program.first + k)];
      if ((edge.code == Edge::Code::Ready && edge.a >= steps) || (edge.code == Edge::Code::Count && edge.b >= steps))
        not_a_plan("there is no such step");
      if (edge.code == Edge::Code::Up && &made == plan_.templates.data() && z(edge.a) >= plan_.fetches.size())
        not_a_plan("there is no such fetch");
    }
  }

  void check(const Template& made, const Entering& row, int32_t steps) const {
    const Template& callee = plan_.templates[z(row.callee)];
    const auto to = [&](int32_t slot) -> const ValueType& {
      if (slot < 0 || slot >= callee.layout.all) not_a_plan("there is no such argument");
      return callee.types[z(slot)];
    };
    for (const Pair& pair : row.arguments)
      if (type(made, pair.from).rank() != to(pair.to).rank()) not_a_plan("an argument has another rank");
    for (const Pair& pair : row.mapped)
      if (type(made, pair.from).rank() == 0 ||
          (pair.to != kNoSlot && type(made, pair.from).rank() != to(pair.to).rank() + 1))
        not_a_plan("a lane is no row of the stack");
    for (const Result& result : row.results) {
      check(made, result.program, steps);
      if (row.kind == Entering::Kind::Map && result.is_there && !result.is_order && result.to != kNoSlot &&
          made.types[z(result.to)].rank() == 0)
        not_a_plan("lanes give no array");
    }
    check(made, row.done, steps);
    if (row.kind == Entering::Kind::Map && row.counted == kNoSlot && row.lanes == kNoSlot)
      not_a_plan("it is not known how many lanes there are");
    if (callee.phase != row.phase) not_a_plan("another phase is entered");
    if (row.visits.empty()) not_a_plan("it is not said how often something is visited");
  }

  static int kind(const Layout& layout, int32_t number) {
    return number < layout.arrays ? 0 : number < layout.arrays + layout.entries ? 1 : 2;
  }

  template <class T>
  static int32_t added(std::vector<T>& table, T row) {
    table.push_back(std::move(row));
    return static_cast<int32_t>(table.size() - 1);
  }

  Plan& plan_;
  IntReader in_;
  std::span<const std::string> words_;
  std::vector<BoundKernel> kernels_;  // `kernel` has been moved to the plan
};

}  // namespace

Plan::Plan(std::span<const int64_t> rows, std::span<const std::string> words, std::vector<Constant> given) {
  for (const Constant& constant : given) {
    const ValueType& slot = constant.slot;
    uint64_t cell = 0;
    if (slot.rank() == 0) {
      std::memcpy(&cell, constant.data, z(slot.bytes));
    } else {
      const int64_t bytes = static_cast<int64_t>(sizeof(Block)) + shape_bytes(slot.rank()) + slot.bytes + 192;
      memory_.push_back(std::make_unique<std::byte[]>(z(bytes)));
      const auto address = reinterpret_cast<uintptr_t>(memory_.back().get());
      Block* array = new (memory_.back().get() + (64 - address % 64) % 64) Block{};
      array->refs = kConstant;
      std::memcpy(shape_of(array), slot.shape.data(), slot.shape.size() * 8);
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
