#include "memory/run_cache.h"

#include "undertow/isa.h"
#include "undertow/size.h"

namespace undertow {

RunCache::~RunCache() {
  for (Result& result : results_) forget(result);
  for (const auto& matrix : matrices_) {
    tables_.pool.drop(matrix->source);
    tables_.pool.drop(matrix->panels);
  }
}

void RunCache::forget(Result& result) {
  for (const Column& column : result.inputs) tables_.pool.drop(column.block);
  tables_.pool.drop(result.output.block);
}

const PackedMatrix* PackedMatrices::packed(const View& matrix, int64_t k, int64_t n, int64_t row_stride,
                                           int64_t column_stride, bool& has_packed) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : matrices_)
    if (known->data == matrix.data && known->k == k && known->n == n && known->row_stride == row_stride)
      return &known->packed;
  if (matrices_.size() == kMostCached) return nullptr;
  Buffer panels;
  panels.resize(z(PackedMatrix::bytes_of(functions(), matrix.dtype, k, n)));
  std::byte* const to = panels.data();
  matrices_.push_back(std::make_unique<Matrix>(
      Matrix{matrix.data, k, n, row_stride, std::move(panels), PackedMatrix(functions(), matrix.dtype, k, n, to)}));
  matrices_.back()->packed.pack(matrix.data, row_stride, column_stride);
  has_packed = true;
  return &matrices_.back()->packed;
}

bool RunCache::recall(Table& table, const OpItem& item) {
  for (const Result& result : results_) {
    if (result.item != &item) continue;
    for (size_t k = 0; k < item.inputs.size(); ++k)
      if (tables_.column(table, item.inputs[k]).data != result.inputs[k].data) return false;
    tables_.take(table, item.outputs[0], table.region->slots[z(item.outputs[0])], result.output, nullptr, 1);
    ++stats_.recalled;
    return true;
  }
  return false;
}

void RunCache::remember(Table& table, const OpItem& item) {
  const Column output = table.columns[item.outputs[0]];
  // A small value shares its table's block, and would keep all of it alive; it is cheap to compute again.
  if (output.stride != 0 || output.block == table.block || !has_room(table.region->slots[z(item.outputs[0])].bytes))
    return;
  Result made{&item, {}, output};
  hold(output);
  for (Operand x : item.inputs) {
    made.inputs.push_back(tables_.column(table, x));
    hold(made.inputs.back());
  }
  for (Result& result : results_)
    if (result.item == &item) {  // another entry, with other values
      forget(result);
      result = std::move(made);
      return;
    }
  if (results_.size() < kMostCached)
    results_.push_back(std::move(made));
  else
    forget(made);
}

const PackedMatrix* RunCache::packed(const Table& table, const OpItem& item, int operand, const View& matrix, int64_t k,
                                     int64_t n, int64_t row_stride, int64_t column_stride) {
  if ((item.shared >> operand & 1) == 0) return nullptr;
  for (const auto& known : matrices_)
    if (known->data == matrix.data && known->k == k && known->n == n && known->row_stride == row_stride)
      return &known->packed;
  const Column column = tables_.column(table, item.inputs[z(operand)]);
  if (shared_ != nullptr && column.block == nullptr && column.stride == 0 && column.data == matrix.data &&
      !memory_is_guarded) {
    bool has_packed = false;
    const PackedMatrix* found = shared_->packed(matrix, k, n, row_stride, column_stride, has_packed);
    stats_.packed += has_packed;
    return found;
  }
  const int64_t bytes = PackedMatrix::bytes_of(functions(), matrix.dtype, k, n);
  if (column.stride != 0 || column.data != matrix.data || matrices_.size() == kMostCached || !has_room(bytes))
    return nullptr;
  Block* panels = tables_.pool.take(bytes, tables_.slot(*table.region, item.inputs[z(operand)]).home);
  matrices_.push_back(std::make_unique<Matrix>(Matrix{matrix.data, k, n, row_stride, column.block, panels,
                                                      PackedMatrix(functions(), matrix.dtype, k, n, panels->data())}));
  hold(column);
  ++stats_.packed;
  matrices_.back()->packed.pack(matrix.data, row_stride, column_stride);
  return &matrices_.back()->packed;
}

}  // namespace undertow
