// Fused operators: register allocation, that is, which registers share memory.
#include "undertow/fused.h"

#include <algorithm>

namespace undertow {

Fused::Fused(int64_t n, std::span<const Type> inputs, std::span<const Instruction> instructions,
             std::span<const Output> outputs)
    : n_(n),
      inputs_(static_cast<int>(inputs.size())),
      instructions_(instructions.begin(), instructions.end()),
      outputs_(outputs.begin(), outputs.end()),
      types_(inputs.begin(), inputs.end()) {
  for (const Instruction& instruction : instructions_) {
    bool is_row = n_ > kMostPlanes || instruction.kind == Kind::Place;
    for (int k = 0; instruction.kind == Kind::Each && k < instruction.arity(); ++k)
      is_row = is_row || types_[static_cast<size_t>(instruction.inputs[k])].is_row;
    const auto first = static_cast<size_t>(instruction.inputs[0]);
    types_.push_back({instruction.kind == Kind::Each ? instruction.op->output : types_[first].dtype, is_row});
    if (n_ <= kMostPlanes && (!is_row || instruction.kind != Kind::Each)) has_planes_ = true;
  }
  output_of_.assign(types_.size(), -1);
  for (size_t k = outputs_.size(); k-- > 0;)
    if (types_[static_cast<size_t>(outputs_[k].from)].is_row == outputs_[k].is_row)
      output_of_[static_cast<size_t>(outputs_[k].from)] = static_cast<int>(k);
  for (const Type& type : types_) widest_ = std::max(widest_, size_of(type.dtype));
  find_slots();
}

/// A slot is free again after the last instruction that reads it, and already for the result of that instruction if it
/// is elementwise; outputs are read at the end.
void Fused::find_slots() {
  const auto count = static_cast<int>(instructions_.size());
  std::vector<int> last(types_.size(), -1);
  for (int k = 0; k < count; ++k)
    for (int operand = 0; operand < instructions_[static_cast<size_t>(k)].arity(); ++operand)
      last[static_cast<size_t>(instructions_[static_cast<size_t>(k)].inputs[operand])] = k;
  for (const Output& output : outputs_) last[static_cast<size_t>(output.from)] = count;
  slots_.assign(types_.size(), -1);
  std::vector<int> free[2];  // slots for single elements, and for rows
  int made[2] = {0, 0};
  for (int k = 0; k < count; ++k) {
    const Instruction& instruction = instructions_[static_cast<size_t>(k)];
    const auto result = static_cast<size_t>(inputs_ + k);
    const auto release = [&](bool in_place) {
      for (int operand = 0; operand < instruction.arity(); ++operand) {
        const auto source = static_cast<size_t>(instruction.inputs[operand]);
        const bool is_alike = types_[source].is_row == types_[result].is_row &&
                              size_of(types_[source].dtype) == size_of(types_[result].dtype);
        if (static_cast<int>(source) < inputs_ || last[source] != k || (in_place && !is_alike)) continue;
        last[source] = -2;  // freed once, though it is read twice here
        free[types_[source].is_row].push_back(slots_[source]);
      }
    };
    if (instruction.kind == Kind::Each) release(true);
    std::vector<int>& own = free[types_[result].is_row];
    if (own.empty()) own.push_back(made[types_[result].is_row]++);
    slots_[result] = own.back();
    own.pop_back();
    if (last[result] < 0) own.push_back(slots_[result]);
    release(false);
  }
  busy_rows_ = made[1];
  for (int input = 0; input < inputs_; ++input)
    slots_[static_cast<size_t>(input)] = made[types_[static_cast<size_t>(input)].is_row]++;
  ones_ = made[0];
  rows_ = made[1];
}

Fused::Stop Fused::run(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const {
  if (lanes == 0 || n_ == 0) return {};
  return has_planes_ ? run_planes(lanes, given, outputs, scratch) : run_rows(lanes, given, outputs, scratch);
}

}  // namespace undertow
