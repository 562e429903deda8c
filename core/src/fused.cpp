// Runs of operators on each element, piece by piece.
#include "undertow/fused.h"

#include <algorithm>
#include <cstring>

namespace undertow {
namespace {

constexpr int64_t kCache = 24 * 1024;  // bytes that all slots together may take: they and what streams by fit into L1

template <class T>
void repeat_each(const View& view, int64_t lane, int64_t lanes, int64_t n, void* out) {
  T* to = static_cast<T*>(out);
  for (int64_t k = 0; k < lanes; ++k, to += n) std::fill_n(to, n, *view.lane<T>(lane + k));
}

/// n copies of the one element of each lane.
void repeat_each(const View& view, int64_t lane, int64_t lanes, int64_t n, void* out) {
  switch (size_of(view.dtype)) {
    case 1:
      return repeat_each<uint8_t>(view, lane, lanes, n, out);
    case 4:
      return repeat_each<uint32_t>(view, lane, lanes, n, out);
    default:
      return repeat_each<uint64_t>(view, lane, lanes, n, out);
  }
}

}  // namespace

Fused::Fused(std::span<const Type> inputs, std::span<const Instruction> instructions, std::span<const int> outputs)
    : inputs_(static_cast<int>(inputs.size())),
      instructions_(instructions.begin(), instructions.end()),
      outputs_(outputs.begin(), outputs.end()) {
  for (const Type& type : inputs) dtypes_.push_back(type.dtype);
  for (const Instruction& instruction : instructions) dtypes_.push_back(instruction.op->output);
  output_of_.assign(dtypes_.size(), -1);
  for (size_t k = 0; k < outputs_.size(); ++k) output_of_[outputs_[k]] = static_cast<int>(k);

  // A slot is free again behind the last instruction that reads it; outputs are read at the end.
  std::vector<int> last(dtypes_.size(), -1);
  for (size_t k = 0; k < instructions_.size(); ++k)
    for (int operand = 0; operand < instructions_[k].op->arity; ++operand)
      last[instructions_[k].inputs[operand]] = static_cast<int>(k);
  for (int output : outputs_) last[output] = static_cast<int>(instructions_.size());
  slots_.assign(dtypes_.size(), -1);
  std::vector<int> free;
  for (size_t k = 0; k < instructions_.size(); ++k) {
    const Instruction& instruction = instructions_[k];
    const int result = inputs_ + static_cast<int>(k);
    if (free.empty()) free.push_back(slot_count_++);
    slots_[result] = free.back();
    free.pop_back();
    if (last[result] < 0) free.push_back(slots_[result]);
    for (int operand = 0; operand < instruction.op->arity; ++operand) {
      const int source = instruction.inputs[operand];
      if (source < inputs_ || last[source] != static_cast<int>(k)) continue;
      last[source] = -2;  // once, if it is read twice here
      free.push_back(slots_[source]);
    }
  }
  for (int input = 0; input < inputs_; ++input) slots_[input] = slot_count_ + input;
  for (DType dtype : dtypes_) widest_ = std::max(widest_, size_of(dtype));
}

/// One run: where the registers of the piece at hand stand.
struct Fused::Run {
  const Fused& plan;
  const View* inputs;
  const View* outputs;
  int64_t n;           // elements of a lane
  const void** where;  // of registers
  bool* single;        // of registers: one element, for the whole piece
  std::byte* memory;   // slots
  int64_t slot_bytes;

  void* slot(int reg) const { return memory + plan.slots_[reg] * slot_bytes; }

  /// All instructions on `count` elements from element `first` of lane `lane` on.
  Stop step(int64_t lane, int64_t first, int64_t count) {
    for (size_t k = 0; k < plan.instructions_.size(); ++k) {
      const Instruction& instruction = plan.instructions_[k];
      const Elementwise& op = *instruction.op;
      const int result = plan.inputs_ + static_cast<int>(k);
      const void* operands[3] = {};
      unsigned mask = 0;
      for (int operand = 0; operand < op.arity; ++operand) {
        const int source = instruction.inputs[operand];
        operands[operand] = where[source];
        if (single[source]) mask |= 1u << operand;
      }
      if (op.scan != nullptr) {
        const int64_t found = op.scan(operands[1], (mask & 2) != 0 ? 1 : count);
        if (found >= 0) return {{op.code, lane + ((mask & 2) != 0 ? 0 : (first + found) / n)}, static_cast<int>(k)};
      }
      void* out = place(result, lane, first);
      if (single[result])
        op.flat[0](operands[0], operands[1], operands[2], out, 1);
      else
        op.flat[mask](operands[0], operands[1], operands[2], out, count);
      where[result] = out;
    }
    for (size_t k = 0; k < plan.outputs_.size(); ++k) deliver(static_cast<int>(k), lane, first, count);
    return {};
  }

  bool is_dense(const View& view) const { return view.stride == n * size_of(view.dtype); }

  /// Where an instruction writes: into the output itself, if that is one piece.
  void* place(int reg, int64_t lane, int64_t first) const {
    const int output = plan.output_of_[reg];
    if (output < 0 || single[reg] || !is_dense(outputs[output])) return slot(reg);
    return outputs[output].lane<std::byte>(lane) + first * size_of(plan.dtypes_[reg]);
  }

  /// Copy a result that was not made in its place.
  void deliver(int output, int64_t lane, int64_t first, int64_t count) const {
    const int reg = plan.outputs_[output];
    const View& view = outputs[output];
    const int64_t element = size_of(view.dtype);
    if (plan.output_of_[reg] == output && place(reg, lane, first) != slot(reg) && reg >= plan.inputs_) return;
    for (int64_t done = 0; done < count;) {  // lane by lane: the lanes of an output may stand apart
      const int64_t at = first + done, part = std::min(count - done, n - at % n);
      std::byte* to = view.lane<std::byte>(lane + at / n) + at % n * element;
      if (single[reg]) {
        const View one{const_cast<void*>(where[reg]), 0, nullptr, 0, view.dtype};
        repeat_each(one, 0, 1, part, to);
      } else {
        std::memcpy(to, static_cast<const std::byte*>(where[reg]) + done * element,
                    static_cast<size_t>(part * element));
      }
      done += part;
    }
  }

  /// Results are single where all operands are.
  void spread_single() {
    for (size_t k = 0; k < plan.instructions_.size(); ++k) {
      bool all = true;
      for (int operand = 0; operand < plan.instructions_[k].op->arity; ++operand)
        all = all && single[plan.instructions_[k].inputs[operand]];
      single[plan.inputs_ + k] = all;
    }
  }

  /// Rows that fill pieces by themselves: one lane after the other, its single elements stay single.
  Stop run_long(int64_t lanes, int64_t piece) {
    for (int input = 0; input < plan.inputs_; ++input) single[input] = inputs[input].count() == 1 && n != 1;
    spread_single();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t first = 0; first < n; first += piece) {
        for (int input = 0; input < plan.inputs_; ++input) {
          const View& view = inputs[input];
          where[input] = view.lane<std::byte>(lane) + (single[input] ? 0 : first * size_of(view.dtype));
        }
        if (Stop stop = step(lane, first, std::min(piece, n - first)); stop.fault) return stop;
      }
    }
    return {};
  }

  /// Short rows: several lanes in a piece. Single elements of lanes are repeated, shared rows are laid out once.
  Stop run_short(int64_t lanes, int64_t piece) {
    const int64_t block = std::max<int64_t>(piece / n, 1);
    for (int input = 0; input < plan.inputs_; ++input) {
      const View& view = inputs[input];
      single[input] = view.stride == 0 && view.count() == 1;
      where[input] = view.data;
      if (view.stride != 0 || single[input]) continue;
      const auto bytes = static_cast<size_t>(n * size_of(view.dtype));
      for (int64_t k = 0; k < std::min(block, lanes); ++k)
        std::memcpy(static_cast<std::byte*>(slot(input)) + k * static_cast<int64_t>(bytes), view.data, bytes);
      where[input] = slot(input);
    }
    spread_single();
    for (int64_t lane = 0; lane < lanes; lane += block) {
      const int64_t some = std::min(block, lanes - lane);
      for (int input = 0; input < plan.inputs_; ++input) {
        const View& view = inputs[input];
        if (view.stride != 0) where[input] = lanes_of(input, lane, some);
      }
      if (Stop stop = step(lane, 0, some * n); stop.fault) return stop;
    }
    return {};
  }

  /// The rows of some lanes, side by side.
  const void* lanes_of(int input, int64_t lane, int64_t some) const {
    const View& view = inputs[input];
    if (view.count() == n && is_dense(view)) return view.lane<void>(lane);
    if (view.count() == 1) {
      repeat_each(view, lane, some, n, slot(input));
      return slot(input);
    }
    const auto bytes = static_cast<size_t>(n * size_of(view.dtype));
    for (int64_t k = 0; k < some; ++k)
      std::memcpy(static_cast<std::byte*>(slot(input)) + k * static_cast<int64_t>(bytes), view.lane<void>(lane + k),
                  bytes);
    return slot(input);
  }
};

Fused::Stop Fused::run(int64_t lanes, const View* inputs, const View* outputs, Scratch& scratch) const {
  const int64_t n = outputs[0].count();
  if (lanes == 0 || n == 0) return {};
  const int64_t piece = std::clamp<int64_t>(kCache / (widest_ * std::max(slot_count_, 1)) / 64 * 64, 256, 4096);
  const bool is_long = n >= piece || lanes == 1;
  const int64_t slot_bytes = (std::max(piece, is_long ? 0 : piece / n * n) * widest_ + 127) / 64 * 64;
  const auto registers = static_cast<int64_t>(dtypes_.size());
  const int64_t head = (registers * static_cast<int64_t>(sizeof(void*) + sizeof(bool)) + 63) / 64 * 64;
  auto* memory = static_cast<std::byte*>(scratch.get(head + (slot_count_ + inputs_) * slot_bytes));
  auto** where = reinterpret_cast<const void**>(memory);
  Run run{*this, inputs, outputs, n, where, reinterpret_cast<bool*>(where + registers), memory + head, slot_bytes};
  return is_long ? run.run_long(lanes, piece) : run.run_short(lanes, piece);
}

}  // namespace undertow
