// Run one operator of a plan over all lanes of a table.
#pragma once

#include <algorithm>
#include <span>

#include "memory/run_cache.h"
#include "memory/table.h"
#include "threads/team.h"
#include "undertow/run.h"

namespace undertow {

/// The position of a run: an operator, or a site that is being entered.
struct Position {
  int32_t node = -1;
  int32_t site = -1;
};

class OperatorRunner {
 public:
  OperatorRunner(const Plan& plan, Tables& tables, Host& host, const RunOptions& options, RunStats& stats,
                 PackedMatrices* packed = nullptr)
      : plan_(plan), tables_(tables), host_(host), options_(options), stats_(stats), cache_(tables, stats, packed) {}

  /// Throws Stop, and sets `lane` to the lane of the table that faulted.
  void run(Table& table, const OpItem& item);

  /// A fused pass.
  void run(Table& table, const FusedItem& item);

  /// A series: operators are added, unless they must run alone, and then all run piece by piece; see series.cpp.
  bool add(Table& table, const OpItem& item);
  bool add(Table& table, const CollectItem& item);
  void add(Table& table, const FusedItem& item);
  void finish(Table& table);

  int64_t lane = 0;  ///< of the last fault
  Position position;

 private:
  struct Group {  // lanes whose operands have the same shapes
    std::vector<int64_t> key;
    std::vector<int32_t> lanes;
  };

  /// An elementwise operator on all lanes.
  struct FlatStep {
    Flat flat = nullptr;
    const std::byte* data[3];
    int64_t sizes[3];  ///< bytes of an element of each operand; 0: one for all lanes
    std::byte* out;
    int64_t size;   ///< of an element of the result
    int64_t bytes;  ///< read and written for each element
    int64_t count;  ///< elements of a lane

    void run(int64_t at, int64_t elements) const {
      const auto from = [&](int k) { return data[k] + at * sizes[k]; };
      flat(from(0), from(1), from(2), out + at * size, elements);
    }
  };

  /// A step of a series: an elementwise operator, a kernel, a fused pass, or a sum over lanes.
  struct Step {
    const OpItem* op;  ///< or
    const FusedItem* fused;
    const CollectItem* collect;
    bool is_done;  ///< nothing to do for pieces: it is a view, or the same for all lanes
    FlatStep flat;
    std::vector<View> inputs, outputs;
    std::vector<Fused::Lanes> given, made;
    std::vector<int64_t> moves;  ///< by view: bytes from one lane to the next
  };

  bool share(Table& table, const OpItem& item, const Kernel& kernel);
  bool find_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform,
                 FlatStep& step);
  void find_views(Table& table, const OpItem& item, bool is_uniform, std::vector<View>& inputs,
                  std::vector<View>& outputs);
  bool run_flat(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_static(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void run_boxed(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  void add_shapes(const Table& table, const OpItem& item, const Kernel& kernel, int64_t at, std::vector<int64_t>& key);
  bool run_in_place(Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes, bool is_uniform);
  bool is_alike(const Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes) const;
  void run_group(Table& table, const OpItem& item, const Kernel& kernel, const int32_t* index, int64_t lanes,
                 bool is_uniform);
  static int64_t bytes_of(const Kernel& kernel, std::span<const View> inputs, std::span<const View> outputs);
  static int64_t fewest_of(const Kernel& kernel, std::span<const View> inputs);
  Fault run_lanes(const Table& table, const OpItem& item, const Kernel& kernel, int64_t lanes,
                  std::span<const View> inputs, std::span<const View> outputs);
  void check(Table& table, const OpItem& item, int64_t lanes);
  void run_host(Table& table, const OpItem& item, int64_t lanes, bool is_uniform);
  int64_t prepare(Table& table, const FusedItem& item, Fused::Lanes* given, Fused::Lanes* outputs);
  int64_t part_at(const Table& table, const OpItem& item, const Kernel& kernel) const;
  bool are_row(const Table& table, const OpItem& item, const Kernel& kernel) const;
  bool is_view(const Table& table, const OpItem& item, const Kernel& kernel) const;
  std::byte* room(Table& table, int32_t slot, bool is_uniform);
  bool is_inner(Operand x) const;
  void begin(const Table& table);
  Step& next_step();
  bool is_known(const Table& table, const OpItem& item) const;
  void count_uses(std::span<const Operand> operands);
  void find_inner(Table& table);
  void prepare(Table& table, Step& step);
  bool run_step(const Table& table, const Step& step, int64_t done, int64_t now, Scratch& scratch);
  Fused::Stop run_pieces(const FusedItem& item, int64_t lanes, const Fused::Lanes* given, const Fused::Lanes* outputs);
  [[noreturn]] void fault(const Table& table, const OpItem& item, int64_t lane);
  void check_finite(const Table& table, const OpItem& item);

  const Plan& plan_;
  Tables& tables_;
  Host& host_;
  const RunOptions& options_;
  RunStats& stats_;
  RunCache cache_;
  /// The fewest rows in a piece of a product, by the bytes of the matrix: with fewer, the matrix is read too often.
  static int64_t fewest_rows(int64_t matrix) { return matrix > (int64_t{1} << 18) ? 256 : 64; }
  static int64_t pieces_of(int64_t lanes, int64_t bytes, int64_t fewest) {
    const int64_t most = std::max<int64_t>(kPiece / bytes, fewest);
    return (lanes + most - 1) / most;
  }
  static int64_t first_of(int64_t piece, int64_t pieces, int64_t lanes) { return lanes * piece / pieces; }
  template <class Work>
  void in_pieces(int64_t lanes, int64_t bytes, int64_t fewest, Work&& work);

  static constexpr int64_t kPiece = int64_t{1} << 19;  // bytes that a thread works on at a time: they fit its cache
  static constexpr int64_t kReused = 32;  // bytes of a matrix that cost as much as one of the other operand
  // Scratch for the current operator: kept, so that small operators need not allocate.
  std::vector<View> inputs_, outputs_;
  std::vector<Shape> shapes_;
  std::vector<Block*> made_, blocks_;
  // The current series.
  std::vector<Step> steps_;  ///< only the first `count_` are used
  size_t count_ = 0;
  int64_t lane_bytes_ = 0;      ///< read and written for each lane
  int64_t fewest_ = 1;          ///< lanes of a piece, at least
  int64_t piece_ = 0;           ///< lanes of a piece, at most; 0: there is no series
  std::vector<int32_t> uses_;   ///< by slot: reads in this series
  std::vector<int32_t> inner_;  ///< slots that only this series uses: their columns hold one piece
  std::unique_ptr<Team> team_;  ///< made when there is work for it
};

/// Work on lanes piece by piece, on several threads if there are any, polling now and then. Pieces depend only on the
/// number of lanes, so that results do not depend on the number of threads.
template <class Work>
void OperatorRunner::in_pieces(int64_t lanes, int64_t bytes, int64_t fewest, Work&& work) {
  const int64_t pieces = pieces_of(lanes, bytes, fewest), most = (lanes + pieces - 1) / std::max<int64_t>(pieces, 1);
  const auto first = [&](int64_t piece) { return first_of(piece, pieces, lanes); };
  const auto one = [&](int64_t piece, Scratch& scratch) {
    work(first(piece), first(piece + 1) - first(piece), scratch);
  };
  int64_t done = 0;
  if (pieces > 1 && options_.threads > 1) {
    one(0, tables_.scratch());  // alone, because it packs the matrices that the others use
    if (team_ == nullptr) team_ = std::make_unique<Team>(options_.threads);
    ++stats_.shared_steps;
    team_->run(
        pieces - 1, tables_.scratch(), [&](int64_t piece, Scratch& scratch) { one(piece + 1, scratch); },
        [&] { tables_.scratch().worked(most * bytes); });
    done = pieces;
  }
  for (; done < pieces; ++done) {
    one(done, tables_.scratch());
    tables_.scratch().worked(most * bytes);
  }
}

}  // namespace undertow
