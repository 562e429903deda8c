// What a run computes once of values that all its waves share: results of operators, and packed matrices.
//
// Values are known by where they stand. That is safe because what is kept holds on to their blocks, so that no other
// value can come to stand there; blocks of the caller, and of constants, outlive the run anyway.
#pragma once

#include <vector>

#include "memory/table.h"
#include "undertow/matmul.h"
#include "undertow/run.h"

namespace undertow {

class RunCache {
 public:
  RunCache(Tables& tables, RunStats& stats) : tables_(tables), stats_(stats) {}
  RunCache(const RunCache&) = delete;
  RunCache& operator=(const RunCache&) = delete;
  ~RunCache();

  /// Give an operator the result that it had on these operands; false where it must be computed.
  bool recall(Table& table, const OpItem& item);
  /// The result of an operator, for the next wave.
  void remember(Table& table, const OpItem& item);

  /// An operand of an operator, packed, if all waves share it.
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
    Block *source, *panels;  // of the values, and of the packed ones
    PackedMatrix packed;
  };

  bool has_room(int64_t bytes) const { return bytes < tables_.pool.room() / 8; }
  void hold(const Column& column) {
    if (column.block != nullptr) ++column.block->refs;
  }
  void forget(Result& result);

  static constexpr size_t kMost = 64;  // of each kind: a plan has few weights
  Tables& tables_;
  RunStats& stats_;
  std::vector<Result> results_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
};

/// What is kept, for the kernel of one operator.
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
