// Results computed once a run from values that all its waves share: results of operators, and packed matrices.
//
// Values are identified by address. That is safe because a cached result holds references to its operands' blocks, so
// no other value can take their place; memory of the caller and of constants outlives the run.
#pragma once

#include <mutex>
#include <vector>

#include "memory/table.h"
#include "undertow/matmul.h"
#include "undertow/run.h"

namespace undertow {

constexpr size_t kMostCached = 64;  // results, and matrices: a plan has few weights

/// Packed forms of matrices that several threads read, and that outlive them. Each is packed by the first who asks.
class PackedMatrices {
 public:
  /// Null: there are too many. `has_packed` tells whether this call did it.
  const PackedMatrix* packed(const View& matrix, int64_t k, int64_t n, int64_t row_stride, int64_t column_stride,
                             bool& has_packed);

 private:
  struct Matrix {
    const void* data;
    int64_t k, n, row_stride;
    Buffer panels;
    PackedMatrix packed;
  };

  std::mutex mutex_;  // guards the list; a matrix does not change once it is there
  std::vector<std::unique_ptr<Matrix>> matrices_;
};

class RunCache {
 public:
  RunCache(Tables& tables, RunStats& stats, PackedMatrices* shared) : tables_(tables), stats_(stats), shared_(shared) {}
  RunCache(const RunCache&) = delete;
  RunCache& operator=(const RunCache&) = delete;
  ~RunCache();

  /// Look up an operator's result for these operands and put it into the table; false if it must be computed.
  bool recall(Table& table, const OpItem& item);
  /// Keep the result of an operator for the next waves.
  void remember(Table& table, const OpItem& item);

  /// The packed form of an operand; null if the waves do not share it, or there is no room.
  const PackedMatrix* packed(const Table& table, const OpItem& item, int operand, const View& matrix, int64_t k,
                             int64_t n, int64_t row_stride, int64_t column_stride);

 private:
  struct Result {
    const OpItem* item;
    std::vector<Column> inputs;
    Column output;
  };
  struct Matrix {
    const void* data;
    int64_t k, n, row_stride;
    Block *source, *panels;  // the matrix, and its packed form
    PackedMatrix packed;
  };

  bool has_room(int64_t bytes) const { return bytes < tables_.pool.room() / 8; }
  void hold(const Column& column) {
    if (column.block != nullptr) ++column.block->refs;
  }
  void forget(Result& result);

  Tables& tables_;
  RunStats& stats_;
  PackedMatrices* const shared_;  ///< for values that are lent; null: there are no others who read them
  std::vector<Result> results_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
};

/// The cache as the kernel of one operator sees it.
class OperatorCache final : public Keeper {
 public:
  OperatorCache(RunCache& cache, const Table& table, const OpItem& item)
      : cache_(&cache), table_(&table), item_(&item) {}

  const PackedMatrix* packed(int operand, const View& matrix, int64_t k, int64_t n, int64_t row_stride,
                             int64_t column_stride) override {
    return cache_->packed(*table_, *item_, operand, matrix, k, n, row_stride, column_stride);
  }

 private:
  RunCache* cache_;
  const Table* table_;
  const OpItem* item_;
};

}  // namespace undertow
