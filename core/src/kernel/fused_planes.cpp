// Fused operators on short rows and single elements: a block of lanes at a time, transposed into planes.
//
// Plane p of a register holds element p of each lane, contiguous. So elementwise operators, folds of rows, and picking
// an element by its index are all loops over lanes.
#include <algorithm>
#include <cstring>

#include "kernel/sizes.h"
#include "undertow/fused.h"
#include "undertow/size.h"

namespace undertow {
namespace {

constexpr int64_t kCache = 24 * 1024;  // bytes of all slots together

/// Transpose rows of n elements into planes of `lanes` elements.
template <class T>
void to_planes(const Fused::Lanes& from, int64_t lane, int64_t lanes, int64_t n, std::byte* out, int64_t plane) {
  for (int64_t p = 0; p < n; ++p) {
    T* to = reinterpret_cast<T*>(out + p * plane);
    const std::byte* at = from.lane(lane) + p * static_cast<int64_t>(sizeof(T));
    for (int64_t k = 0; k < lanes; ++k) to[k] = *reinterpret_cast<const T*>(at + k * from.stride);
  }
}

template <class T>
void to_rows(const std::byte* from, int64_t plane, int64_t step, const Fused::Lanes& out, int64_t lane, int64_t lanes,
             int64_t n) {
  for (int64_t p = 0; p < n; ++p) {
    const std::byte* at = from + p * plane;
    std::byte* to = out.lane(lane) + p * static_cast<int64_t>(sizeof(T));
    for (int64_t k = 0; k < lanes; ++k)
      *reinterpret_cast<T*>(to + k * out.stride) = *reinterpret_cast<const T*>(at + k * step);
  }
}

}  // namespace

struct Fused::Planes {
  /// The memory of a register.
  struct Place {
    Lanes lanes;     // outside, or nowhere
    std::byte* at;   // of the current block of lanes
    int64_t plane;   // stride from plane to plane; 0: one element
    int64_t step;    // stride from lane to lane; 0: all lanes share one element
    bool is_slot;    // does not move from block to block
    bool is_turned;  // a slot that an input is transposed into
    bool is_given;   // not computed here
  };

  const Fused& plan;
  const Lanes* outputs;
  std::byte* memory;
  int64_t block;  // lanes
  Place* places;
  std::byte* spare;  // for results that are given: their slots are shared

  bool is_row(int reg) const { return plan.types_[z(reg)].is_row; }

  /// Slots of rows first; all aligned.
  std::byte* slot(int reg) const {
    const int64_t one = (block * plan.widest_ + 63) / 64 * 64, number = plan.slots_[z(reg)];
    return memory + (is_row(reg) ? number * one * plan.n_ : plan.rows_ * one * plan.n_ + number * one);
  }

  void use_slot(int reg) {
    Place& place = places[reg];
    place.is_slot = true;
    place.at = slot(reg);
    if (place.is_given && reg >= plan.inputs_) {
      place.at = spare;
      spare += (block * plan.widest_ + 63) / 64 * 64 * plan.n_;
    }
    place.step = plan.size(reg);
    place.plane = is_row(reg) ? block * place.step : 0;
  }

  void prepare(const Lanes* given) {
    const int count = static_cast<int>(plan.types_.size());
    for (int reg = 0; reg < count; ++reg) {
      Place& place = places[reg];
      place = {given[reg], given[reg].data, 0, given[reg].stride, false, false, given[reg].data != nullptr};
      if (place.is_given) {
        if (is_row(reg) || (place.step != 0 && place.step != plan.size(reg))) {
          place.is_turned = true;
          use_slot(reg);
        }
        continue;
      }
      const int output = plan.output_of_[z(reg)];
      if (!is_row(reg) && output >= 0 && outputs[output].data != nullptr && outputs[output].stride == plan.size(reg)) {
        place.lanes = outputs[output];
        place.step = place.lanes.stride;
      } else {
        use_slot(reg);
      }
    }
    for (size_t k = 0; k < plan.instructions_.size(); ++k) {
      const Instruction& instruction = plan.instructions_[k];
      if (instruction.kind != Kind::Each || places[plan.inputs_ + static_cast<int>(k)].is_given) continue;
      if (instruction.op->flat[ones(instruction)] != nullptr) continue;
      for (int operand = 0; operand < instruction.arity(); ++operand) {  // there is none for so many single elements
        if (places[instruction.inputs[operand]].step != 0) continue;
        places[instruction.inputs[operand]].is_turned = true;
        use_slot(instruction.inputs[operand]);
      }
    }
  }

  unsigned ones(const Instruction& instruction) const {
    unsigned found = 0;
    for (int operand = 0; operand < instruction.arity(); ++operand)
      if (places[instruction.inputs[operand]].step == 0) found |= 1u << operand;
    return found;
  }

  Stop run(int64_t lanes) {
    const int count = static_cast<int>(plan.types_.size());
    for (int64_t lane = 0; lane < lanes; lane += block) {
      const int64_t some = std::min(block, lanes - lane);
      for (int reg = 0; reg < count; ++reg) {
        Place& place = places[reg];
        if (!place.is_slot) {
          place.at = place.lanes.lane(lane);
        } else if (place.is_turned && (lane == 0 || place.lanes.stride != 0)) {
          by_size(plan.size(reg), [&](auto unit) {
            to_planes<decltype(unit)>(place.lanes, lane, some, is_row(reg) ? plan.n_ : 1, place.at, place.plane);
          });
        }
      }
      for (size_t k = 0; k < plan.instructions_.size(); ++k) {
        if (places[plan.inputs_ + static_cast<int>(k)].is_given) continue;
        if (Stop stop = step(static_cast<int>(k), lane, some); stop.fault) return stop;
      }
      for (size_t k = 0; k < plan.outputs_.size(); ++k) deliver(static_cast<int>(k), lane, some);
    }
    return {};
  }

  Stop step(int number, int64_t lane, int64_t some) {
    const Instruction& instruction = plan.instructions_[z(number)];
    const Place& out = places[plan.inputs_ + number];
    switch (instruction.kind) {
      case Kind::Each: return each(number, lane, some);
      case Kind::Fold: {
        const Place& row = places[instruction.inputs[0]];
        const std::byte zero[8] = {};
        if (instruction.adds)
          instruction.op->flat[2](row.at, zero, nullptr, out.at, some);
        else
          std::memcpy(out.at, row.at, z(some * row.step));
        for (int64_t p = 1; p < plan.n_; ++p)
          instruction.op->flat[0](row.at + p * row.plane, out.at, nullptr, out.at, some);
        return {};
      }
      case Kind::Pick: {
        Fault fault;
        by_size(plan.size(instruction.inputs[0]), [&](auto unit) {
          fault = numbered(instruction, some, [&](int64_t k, int64_t p) {
            const Place& row = places[instruction.inputs[0]];
            reinterpret_cast<decltype(unit)*>(out.at)[k] =
                reinterpret_cast<const decltype(unit)*>(row.at + p * row.plane)[k];
          });
        });
        return {{fault.code, lane + fault.lane}, number};
      }
      case Kind::Place: {
        const Place &row = places[instruction.inputs[0]], &value = places[instruction.inputs[2]];
        for (int64_t p = 0; p < plan.n_; ++p)
          std::memcpy(out.at + p * out.plane, row.at + p * row.plane, z(some * row.step));
        const Flat add = instruction.op->flat[0];
        const Fault fault = numbered(instruction, some, [&](int64_t k, int64_t p) {
          std::byte* to = out.at + p * out.plane + k * out.step;
          add(to, value.at + k * value.step, nullptr, to, 1);
        });
        return {{fault.code, lane + fault.lane}, number};
      }
    }
    return {};
  }

  /// For each lane, with its index of an element.
  template <class Work>
  Fault numbered(const Instruction& instruction, int64_t some, Work&& work) const {
    const Place& number = places[instruction.inputs[1]];
    const bool is_short = plan.types_[z(instruction.inputs[1])].dtype == DType::I32;
    for (int64_t k = 0; k < some; ++k) {
      const std::byte* at = number.at + k * number.step;
      int64_t p = is_short ? *reinterpret_cast<const int32_t*>(at) : *reinterpret_cast<const int64_t*>(at);
      if (p < 0) p += plan.n_;
      if (p < 0 || p >= plan.n_) return {Fault::Code::IndexOutOfRange, k};
      work(k, p);
    }
    return {};
  }

  Stop each(int number, int64_t lane, int64_t some) {
    const Instruction& instruction = plan.instructions_[z(number)];
    const Elementwise& op = *instruction.op;
    const Place& out = places[plan.inputs_ + number];
    const unsigned single = ones(instruction);
    const std::byte* at[3] = {};
    int64_t planes[3] = {};
    bool is_flat = some == block;  // planes are contiguous
    for (int operand = 0; operand < op.arity; ++operand) {
      const Place& place = places[instruction.inputs[operand]];
      at[operand] = place.at;
      planes[operand] = place.plane;
      if (out.plane != 0 && place.plane == 0 && place.step != 0) is_flat = false;
    }
    const int64_t rows = out.plane == 0 ? 1 : plan.n_;
    const int64_t turns = is_flat ? 1 : rows, length = is_flat ? rows * some : some;
    std::byte* to = out.at;
    for (int64_t turn = 0; turn < turns; ++turn) {
      if (op.scan != nullptr) {
        const int64_t found = op.scan(at[1], (single & 2) != 0 ? 1 : length);
        if (found >= 0) return {{op.code, lane + found % some}, number};
      }
      op.flat[single](at[0], at[1], at[2], to, length);
      for (int operand = 0; operand < 3; ++operand) at[operand] += planes[operand];
      to += out.plane;
    }
    return {};
  }

  /// Copy a result to its output, unless it was computed there.
  void deliver(int output, int64_t lane, int64_t some) const {
    const int reg = plan.outputs_[z(output)].from;
    const Place& place = places[reg];
    const Lanes& to = outputs[output];
    if (to.data == nullptr || (!place.is_slot && !place.is_given && plan.output_of_[z(reg)] == output)) return;
    by_size(plan.size(reg), [&](auto unit) {
      to_rows<decltype(unit)>(place.at, place.plane, place.step, to, lane, some,
                              plan.outputs_[z(output)].is_row ? plan.n_ : 1);
    });
  }
};

Fused::Stop Fused::run_planes(int64_t lanes, const Lanes* given, const Lanes* outputs, Scratch& scratch) const {
  const int64_t bytes = widest_ * (rows_ * n_ + ones_);  // for each lane
  const int64_t block = std::min(std::clamp<int64_t>(kCache / std::max<int64_t>(bytes, 1) / 64 * 64, 64, 2048), lanes);
  const int64_t one = (block * widest_ + 63) / 64 * 64;
  int64_t known = 0;
  for (size_t reg = static_cast<size_t>(inputs_); reg < types_.size(); ++reg) known += given[reg].data != nullptr;
  auto* memory = static_cast<std::byte*>(scratch.get((rows_ * n_ + ones_ + known * n_) * one));
  Planes::Place places[kMostRegisters];
  Planes planes{*this, outputs, memory, block, places, memory + (rows_ * n_ + ones_) * one};
  planes.prepare(given);
  return planes.run(lanes);
}

}  // namespace undertow
