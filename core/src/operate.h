// Run one operator of a plan over all lanes of a table.
#pragma once

#include <span>

#include "kept.h"
#include "table.h"
#include "team.h"
#include "undertow/run.h"

namespace undertow {

/// What a run is at: an operator, or a site that is being entered.
struct Doing {
  int32_t node = -1;
  int32_t site = -1;
};

class Operate {
 public:
  Operate(const Plan& plan, Tables& tables, Host& host, const RunOptions& options, RunStats& stats)
      : plan_(plan), tables_(tables), host_(host), options_(options), stats_(stats), kept_(tables, stats) {}

  /// Throws Stop, with the lane of the table that it happened to in `lane`.
  void run(Table& table, const OpItem& item);

  /// Some that run together.
  void run(Table& table, const FusedItem& item);

  int64_t lane = 0;  ///< of the last fault
  Doing doing;
  void (*tick)(void*) = nullptr;  ///< called after every few milliseconds of work; may throw
  void* context = nullptr;

 private:
  struct Group {  // lanes whose operands have the same shapes
    std::vector<int64_t> key;
    std::vector<int32_t> lanes;
  };

  bool share(Table& table, const OpItem& item, const Kernel& kernel);
  bool run_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_static(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_boxed(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  bool is_alike(const Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes) const;
  void run_group(Table& table, const OpItem& item, const Kernel& kernel, const int32_t* index, int64_t lanes,
                 bool is_uniform);
  Fault run_lanes(const Kernel& kernel, int64_t lanes, std::span<const View> inputs, std::span<const View> outputs);
  void run_host(Table& table, const OpItem& item, int64_t lanes, bool is_uniform);
  Fused::Stop run_pieces(const FusedItem& item, int64_t lanes, const Fused::Lanes* given, const Fused::Lanes* outputs);
  View lane_view(const Table& table, Operand x, int64_t lane);
  [[noreturn]] void fault(const Table& table, const OpItem& item, int64_t lane);
  void check_finite(const Table& table, const OpItem& item);
  /// Some bytes have been worked on.
  void worked(int64_t bytes) {
    work_ += bytes;
    if (work_ < kTick) return;
    work_ = 0;
    if (tick != nullptr) tick(context);
  }

  const Plan& plan_;
  Tables& tables_;
  Host& host_;
  const RunOptions& options_;
  RunStats& stats_;
  Kept kept_;
  template <class Work>
  void in_pieces(int64_t lanes, int64_t bytes, bool is_product, Work&& work);

  static constexpr int64_t kTick = int64_t{1} << 22;   // bytes: a few milliseconds, whatever is done with them
  static constexpr int64_t kPiece = int64_t{1} << 19;  // bytes that one thread works on: they stay in its cache
  static constexpr int64_t kReused = 32;  // bytes of a matrix that cost as much as one of what is multiplied with it
  int64_t work_ = 0;
  // Of the operator at hand: kept, so that small ones need no memory of their own.
  std::vector<View> inputs_, outputs_;
  std::vector<Shape> shapes_;
  std::vector<Block*> made_, blocks_;
  std::unique_ptr<Team> team_;  ///< where there was work for it
};

/// A value of one lane, copied out.
Value value_of(const View& view);

}  // namespace undertow
