// Which values of a plan all lanes share, in every wave below an entry: weights, and what is made of them alone.
#pragma once

#include "undertow/plan.h"

namespace undertow {

/// Slots that hold one value for all lanes of a table: what is read from outside, and what is made of that alone. (An
/// entry for each lane may hold values of its own: who makes entries counts them.)
class Shared {
 public:
  explicit Shared(const Plan& plan);

  std::vector<std::vector<bool>> slots;  ///< by region

  /// Say of each operator which of its operands are such values.
  void mark_operands(Plan& plan) const;

 private:
  bool is_shared(size_t region, Operand x) const { return x < 0 || slots[region][static_cast<size_t>(x)]; }
  void mark(size_t region, int32_t slot);
  void hand_in(size_t from, size_t to, const std::vector<Transfer>& transfers);
  void look(const Plan& plan, size_t r, const Item& item);

  bool has_grown_ = false;
};

}  // namespace undertow
