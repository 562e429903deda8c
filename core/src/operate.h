// Run one operator of a plan over all lanes of a table.
#pragma once

#include "table.h"
#include "undertow/run.h"

namespace undertow {

class Operate {
 public:
  Operate(const Plan& plan, Tables& tables, Host& host, const RunOptions& options, RunStats& stats)
      : plan_(plan), tables_(tables), host_(host), options_(options), stats_(stats) {}

  /// Throws Stop, with the lane of the table that it happened to in `lane`.
  void run(Table& table, const OpItem& item);

  int64_t lane = 0;  ///< of the last fault

 private:
  struct Group {  // lanes whose operands have the same shapes
    std::vector<int64_t> key;
    std::vector<int32_t> lanes;
  };

  bool run_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_static(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_boxed(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_group(Table& table, const OpItem& item, const Kernel& kernel, const Group& group, bool is_all,
                 bool is_uniform);
  void run_host(Table& table, const OpItem& item, int64_t lanes, bool is_uniform);
  View lane_view(const Table& table, Operand x, int64_t lane);
  [[noreturn]] void fault(const Table& table, const OpItem& item, int64_t lane);
  void check_finite(const Table& table, const OpItem& item);

  const Plan& plan_;
  Tables& tables_;
  Host& host_;
  const RunOptions& options_;
  RunStats& stats_;
  Scratch scratch_;
};

/// A value of one lane, copied out.
Value value_of(const View& view);

}  // namespace undertow
