#include "plan/fused_item.h"

#include <algorithm>

#include "plan/int_reader.h"
#include "plan/items.h"
#include "undertow/isa.h"

namespace undertow {
namespace {

constexpr const char* kComplex = "a pass works on complex numbers, which no register holds";

/// Checks and builds one fused pass.
class FusedBuilder {
 public:
  FusedBuilder(const Plan& plan, const Region& region, const FusedFields& from, FusedItem& to)
      : plan_(plan), region_(region), from_(from), to_(to) {}

  void make() {
    const size_t registers = from_.inputs.size() + from_.instructions.size();
    if (from_.width < 1 || from_.inputs.size() > 64 || registers > Fused::kMostRegisters ||
        from_.outputs.size() > Fused::kMostRegisters)
      not_a_plan("a pass has too many inputs, registers or outputs");
    for (int32_t number : to_.ops) {
      const OpItem& op = plan_.ops[z(number)];
      if (op.kernel < 0 || op.is_open || op.outputs.size() != 1)
        not_a_plan("a pass holds an operator that cannot be fused");
    }
    to_.results.assign(to_.ops.size(), -1);
    for (const FusedInput& input : from_.inputs) add(input);
    for (const Instruction& instruction : from_.instructions) add(instruction);
    to_.program = Fused(from_.width, {types_.data(), from_.inputs.size()}, instructions_, find_outputs());
    to_.bytes = bytes_ + 8;
    find_depends();
  }

 private:
  const Slot& slot(Operand x) const { return plan_.slot(region_, x); }

  /// The number of the operator that computes a slot.
  size_t maker(int32_t slot) const {
    const auto found = std::ranges::find_if(to_.ops, [&](int32_t op) { return plan_.ops[z(op)].outputs[0] == slot; });
    if (found == to_.ops.end()) not_a_plan("a pass writes a column that none of its operators computes");
    return z(found - to_.ops.begin());
  }

  void add(const FusedInput& input) {
    if (input.from >= static_cast<int64_t>(region_.slots.size()) ||
        (input.from < 0 && z(~input.from) >= plan_.constants.size()))
      not_a_plan("the number of a column is out of range");
    const Slot& from = slot(input.from);
    if (from.is_dynamic || input.offset < 0 || (input.count != 1 && input.count != from_.width) ||
        int64_t{input.offset} + input.count > from.count)
      not_a_plan("a pass reads past the end of a value, or one of unknown shape");
    to_.inputs.push_back({input.from, input.offset * size_of(from.dtype)});
    if (is_complex(from.dtype)) not_a_plan(kComplex);
    types_.push_back({from.dtype, input.count > 1});
    depends_.push_back(uint64_t{1} << (types_.size() - 1));
    bytes_ += input.count * size_of(from.dtype);
  }

  const Fused::Type& operand(const Instruction& instruction, size_t k) const {
    if (z(instruction.inputs[k]) >= types_.size())
      not_a_plan("an instruction reads a register that is not yet defined");
    return types_[z(instruction.inputs[k])];
  }

  void add(const Instruction& from) {
    constexpr Fused::Kind kinds[] = {Fused::Kind::Each, Fused::Kind::Fold, Fused::Kind::Pick, Fused::Kind::Place};
    constexpr const char* kOther = "an instruction has operands that its kind or operator does not take";
    Fused::Instruction made{kinds[static_cast<int>(from.kind)], nullptr, {}};
    if (z(from.kernel) >= plan_.kernels.size() || !plan_.kernels[z(from.kernel)])
      not_a_plan("an instruction names a kernel that the core does not have");
    if (from.kind != InstructionKind::Pick) made.op = plan_.kernels[z(from.kernel)]->elementwise();
    if (from.kind != InstructionKind::Pick && made.op == nullptr)
      not_a_plan("the operator of an instruction is not elementwise");
    if (from.inputs.size() != z(made.arity()) || from.inputs.size() > 3) not_a_plan(kOther);
    made.adds = from.kind == InstructionKind::Fold && plan_.kernel_ops[z(from.kernel)] == "add";
    bool is_row = from_.width > Fused::kMostPlanes || from.kind == InstructionKind::Place;
    uint64_t depends = 0;
    for (size_t k = 0; k < from.inputs.size(); ++k) {
      const Fused::Type& type = operand(from, k);
      made.inputs[k] = from.inputs[k];
      depends |= depends_[z(from.inputs[k])];
      if (from.kind == InstructionKind::Each) {
        if (type.dtype != made.op->inputs[k]) not_a_plan(kOther);
        is_row = is_row || type.is_row;
      }
    }
    const DType dtype = from.kind == InstructionKind::Each ? made.op->output : operand(from, 0).dtype;
    if (is_complex(dtype)) not_a_plan(kComplex);
    if (from.kind != InstructionKind::Each) {
      const auto is_number = [&](size_t k) {
        const Fused::Type& type = operand(from, k);
        return !type.is_row && (type.dtype == DType::I32 || type.dtype == DType::I64);
      };
      if (!operand(from, 0).is_row || from_.width > Fused::kMostPlanes) not_a_plan(kOther);
      if (made.op != nullptr && (made.op->arity != 2 || made.op->inputs[0] != dtype || made.op->inputs[1] != dtype ||
                                 made.op->output != dtype))
        not_a_plan(kOther);
      if (from.inputs.size() > 1 && !is_number(1)) not_a_plan(kOther);
      if (from.inputs.size() > 2 && (operand(from, 2).is_row || operand(from, 2).dtype != dtype)) not_a_plan(kOther);
    }
    const size_t op = maker(from.to);
    const Slot& own = region_.slots[z(from.to)];  // has a column if the operator's result is the same for all lanes
    if (own.dtype != dtype || own.count < (is_row ? from_.width : 1)) not_a_plan(kOther);
    to_.results[op] = static_cast<int32_t>(types_.size());
    types_.push_back({dtype, is_row});
    depends_.push_back(depends);
    instructions_.push_back(made);
  }

  /// Outputs of one slot must cover it from its first element to its last.
  std::vector<Fused::Output> find_outputs() {
    std::vector<Fused::Output> outputs;
    for (size_t k = 0; k < from_.outputs.size(); ++k) {
      const FusedOutput& from = from_.outputs[k];
      makers_.push_back(maker(from.to));
      const Slot& to = region_.slots[z(from.to)];
      if (z(from.from) >= types_.size()) not_a_plan("a pass writes a register that is not defined");
      const bool is_row = to.count > 1, is_first = from.offset == 0;
      const int64_t count = is_row ? from_.width : 1;
      const bool follows =
          k > 0 && from_.outputs[k - 1].to == from.to && from_.outputs[k - 1].offset + count == from.offset;
      const bool ends = k + 1 == from_.outputs.size() || from_.outputs[k + 1].to != from.to;
      if (types_[z(from.from)].dtype != to.dtype || !(is_first || follows) ||
          (!is_row && types_[z(from.from)].is_row) ||
          (ends ? from.offset + count != to.count : from.offset + count > to.count))
        not_a_plan("a pass does not write all of a column");
      outputs.push_back({from.from, is_row});
      to_.outputs.push_back({from.to, from.offset * size_of(to.dtype), is_first, 0});
      bytes_ += count * size_of(to.dtype);
    }
    return outputs;
  }

  /// On which inputs of the pass the result of each operator depends.
  void find_depends() {
    for (size_t k = 0; k < to_.ops.size(); ++k) {
      const OpItem& op = plan_.ops[z(to_.ops[k])];
      uint64_t depends = 0;
      for (Operand x : op.inputs) {
        for (size_t input = 0; input < from_.inputs.size(); ++input)
          if (from_.inputs[input].from == x) depends |= uint64_t{1} << input;
        for (size_t before = 0; before < k; ++before)
          if (plan_.ops[z(to_.ops[before])].outputs[0] == x) depends |= to_.depends[before];
      }
      if (to_.results[k] >= 0) depends |= depends_[z(to_.results[k])];
      to_.depends.push_back(depends);
    }
    for (size_t k = 0; k < to_.outputs.size(); ++k) to_.outputs[k].depends = to_.depends[makers_[k]];
  }

  const Plan& plan_;
  const Region& region_;
  const FusedFields& from_;
  FusedItem& to_;
  std::vector<Fused::Type> types_;  // of registers
  std::vector<uint64_t> depends_;   // of registers: on these inputs
  std::vector<Fused::Instruction> instructions_;
  std::vector<size_t> makers_;  // by output: the operator that computes it
  int64_t bytes_ = 0;
};

}  // namespace

void make_fused(Plan& plan, std::span<const std::pair<size_t, FusedFields>> fused) {
  std::vector<const FusedFields*> fields(plan.fuseds.size(), nullptr);
  for (const auto& [number, from] : fused) fields[number] = &from;
  for (const Region& region : plan.regions)
    each_item(region, [&](int32_t, const Item& item) {
      if (item.kind == Item::Kind::Fused)
        FusedBuilder(plan, region, *fields[z(item.number)], plan.fuseds[z(item.number)]).make();
    });
}

}  // namespace undertow
