// Fused operators on rows: some lanes at a time, or a part of a long row.
//
// Rows of registers computed here are contiguous, so that an instruction on them is one call. Inputs may have gaps
// between lanes (a slice of a wider row) or be the same for all lanes: then there is a call for each lane. Rows too
// short for that are first copied to contiguous memory.
#include <algorithm>
#include <cstring>

#include "kernel/sizes.h"
#include "undertow/fused.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kCache =
    24 * 1024;                  // bytes of all slots together: with the inputs and outputs that stream by, they fit L1
constexpr int64_t kShort = 32;  // rows with fewer elements are copied to contiguous memory

void repeat(const void* from, void* to, int64_t count, int64_t size) {
  by_size(size, [&](auto unit) {
    std::fill_n(static_cast<decltype(unit)*>(to), count, *static_cast<const decltype(unit)*>(from));
  });
}

}  // namespace

struct Fused::Rows {
  /// The memory of a register.
  struct Place {
    Lanes lanes;    // outside, or a slot
    std::byte* at;  // of the current piece
    int64_t step;   // stride from lane to lane
    bool is_row;    // or one element
    bool is_slot;   // does not move from piece to piece
    bool is_laid;   // a slot that an input is copied into, from `lanes`
    bool is_given;  // not computed here
  };
  struct Call {
    Flat flat;
    unsigned ones;
    bool is_flat;
  };

  const Fused& plan;
  const Lanes* outputs;
  std::byte* memory;
  int64_t slot_bytes;
  Place* places;
  Call* calls;

  std::byte* slot(int reg) const {
    return memory + (plan.slots_[z(reg)] + (plan.types_[z(reg)].is_row ? 0 : plan.rows_)) * slot_bytes;
  }
  int64_t row_bytes(int reg) const { return plan.n_ * plan.size(reg); }
  bool is_dense(const Place& place, int reg) const { return place.is_row && place.step == row_bytes(reg); }

  void lay_out(int reg) {
    Place& place = places[reg];
    place.is_laid = place.is_slot = place.is_row = true;
    place.at = slot(reg);
    place.step = row_bytes(reg);
  }

  void prepare(const Lanes* given) {
    const int count = static_cast<int>(plan.types_.size());
    for (int reg = 0; reg < count; ++reg) {
      Place& place = places[reg];
      const bool is_row = plan.types_[z(reg)].is_row;
      place = {given[reg], given[reg].data, given[reg].stride, is_row, false, false, true};
      if (given[reg].data != nullptr) {
        const bool is_fine = is_row ? is_dense(place, reg) : place.step == 0;
        if (plan.n_ < kShort && !is_fine && reg < plan.inputs_) lay_out(reg);  // slots of results are shared
        continue;
      }
      place.is_given = false;
      const int output = plan.output_of_[z(reg)];
      if (output >= 0 && outputs[output].data != nullptr) {
        place.lanes = outputs[output];
        place.step = place.lanes.stride;
      } else {
        place.is_slot = true;
        place.at = slot(reg);
        place.step = row_bytes(reg);
      }
    }
    for (size_t k = 0; k < plan.instructions_.size(); ++k) {
      const int result = plan.inputs_ + static_cast<int>(k);
      if (!places[result].is_given) calls[k] = call(plan.instructions_[k], result);
    }
  }

  Call call(const Instruction& instruction, int result) {
    for (;;) {
      Call found{nullptr, 0, is_dense(places[result], result)};
      for (int k = 0; k < instruction.arity(); ++k) {
        const Place& place = places[instruction.inputs[k]];
        if (!place.is_row) found.ones |= 1u << k;
        found.is_flat = found.is_flat && (place.is_row ? is_dense(place, instruction.inputs[k]) : place.step == 0);
      }
      found.flat = instruction.op->flat[found.ones];
      if (found.flat != nullptr) return found;
      for (int k = 0; k < instruction.arity(); ++k)  // there is none for so many single elements
        if (!places[instruction.inputs[k]].is_row) lay_out(instruction.inputs[k]);
    }
  }

  /// Copy inputs into their slots; those that all lanes share only once, for all pieces.
  void lay_out(int64_t lane, int64_t lanes, bool is_first, int64_t count) {
    for (size_t reg = 0; reg < plan.types_.size(); ++reg) {
      const Place& place = places[reg];
      if (!place.is_laid || (!is_first && place.lanes.stride == 0)) continue;
      const int64_t size = size_of(plan.types_[reg].dtype);
      for (int64_t k = 0; k < lanes; ++k) {
        if (plan.types_[reg].is_row)
          std::memcpy(place.at + k * place.step, place.lanes.lane(lane + k), z(count * size));
        else
          repeat(place.lanes.lane(lane + k), place.at + k * place.step, count, size);
      }
    }
  }

  Stop run(int64_t lanes, int64_t block, int64_t piece, Scratch& scratch) {
    for (int64_t lane = 0; lane < lanes; lane += block) {
      const int64_t some = std::min(block, lanes - lane);
      for (int64_t first = 0; first < plan.n_; first += piece) {
        const int64_t count = std::min(piece, plan.n_ - first);
        for (size_t reg = 0; reg < plan.types_.size(); ++reg) {
          Place& place = places[reg];
          if (!place.is_slot)
            place.at = place.lanes.lane(lane) + (place.is_row ? first * size_of(plan.types_[reg].dtype) : 0);
        }
        lay_out(lane, some, lane == 0 || block == 1, count);
        if (Stop stop = step(lane, some, first, count); stop.fault) return stop;
        scratch.worked(some * count * static_cast<int64_t>(plan.instructions_.size()) * plan.widest_);
      }
    }
    return {};
  }

  Stop step(int64_t lane, int64_t some, int64_t first, int64_t count) {
    for (size_t k = 0; k < plan.instructions_.size(); ++k) {
      const int result = plan.inputs_ + static_cast<int>(k);
      if (places[result].is_given) continue;
      const Instruction& instruction = plan.instructions_[k];
      const Elementwise& op = *instruction.op;
      std::byte* at[3] = {};
      int64_t steps[3] = {};
      for (int operand = 0; operand < op.arity; ++operand) {
        at[operand] = places[instruction.inputs[operand]].at;
        steps[operand] = places[instruction.inputs[operand]].step;
      }
      std::byte* out = places[result].at;
      const Call& call = calls[k];
      const bool is_once = call.is_flat || some == 1;
      const int64_t turns = is_once ? 1 : some, length = is_once ? some * count : count;
      for (int64_t turn = 0; turn < turns; ++turn) {
        if (op.scan != nullptr) {
          const int64_t found = op.scan(at[1], (call.ones & 2) != 0 ? 1 : length);
          if (found >= 0) return {{op.code, lane + turn + (first + found) / plan.n_}, static_cast<int>(k)};
        }
        call.flat(at[0], at[1], at[2], out, length);
        for (int operand = 0; operand < 3; ++operand) at[operand] += steps[operand];
        out += places[result].step;
      }
    }
    for (size_t k = 0; k < plan.outputs_.size(); ++k) deliver(static_cast<int>(k), lane, some, first, count);
    return {};
  }

  /// Copy a result to its output, unless it was computed there.
  void deliver(int output, int64_t lane, int64_t some, int64_t first, int64_t count) const {
    const int reg = plan.outputs_[z(output)].from;
    const Place& place = places[reg];
    if (outputs[output].data == nullptr || (!place.is_given && plan.output_of_[z(reg)] == output)) return;
    const int64_t size = plan.size(reg);
    for (int64_t k = 0; k < some; ++k) {
      std::byte* to = outputs[output].lane(lane + k) + first * size;
      if (place.is_row)
        std::memcpy(to, place.at + k * place.step, z(count * size));
      else
        repeat(place.at + k * place.step, to, count, size);
    }
  }
};

Fused::Stop Fused::run_rows(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const {
  const int64_t most = std::clamp<int64_t>(kCache / (widest_ * std::max(busy_rows_, 1)) / 64 * 64, 256, 4096);
  const int64_t block = std::clamp<int64_t>(most / n_, 1, lanes), piece = block > 1 ? n_ : std::min(most, n_);
  const int64_t slot_bytes = (block * piece * widest_ + 127) / 64 * 64;
  auto* memory = static_cast<std::byte*>(scratch.get((rows_ + ones_) * slot_bytes));
  Rows::Place places[kMostRegisters];
  Rows::Call calls[kMostRegisters];
  Rows rows{*this, outputs, memory, slot_bytes, places, calls};
  rows.prepare(given);
  return rows.run(lanes, block, piece, scratch);
}

}  // namespace undertow
