// Maps: elements of arrays become lanes, and results of lanes become arrays.
#include "lockstep/run.h"
#include "memory/lanes.h"

namespace undertow::lockstep {

void Lockstep::enter_map(Wave& wave, Fiber* self, const MapItem& item) {
  if (item.phase > 0 && has_deferred(DeferredKind::Ahead)) run_deferred(DeferredKind::Ahead);
  operators_.position = {-1, item.site};
  Table& table = *self->table;
  const Region& body = plan_.regions[z(item.body)];
  Table* inner = table.maps[z(item.map)];
  if (item.phase == 0) {
    const Slot& slot = tables_.slot(*table.region, item.counted);
    const Column column = tables_.column(table, item.counted);
    std::vector<int64_t> counts(z(table.lanes));
    int64_t lanes = 0;
    for (int64_t k = 0; k < table.lanes; ++k) lanes += counts[z(k)] = shape_of(slot, column, k)[0];
    if (lanes > INT32_MAX) throw OverLimit{OverLimit::Kind::Frames};
    inner = tables_.make_inside(table, body, lanes, std::max(1, visits_of(table, item.visits)), item.site);
    table.maps[z(item.map)] = inner;
    inner->numbers = tables_.pool.take(8 * lanes);
    inner->index = tables_.pool.take(4 * lanes);
    int64_t* numbers = reinterpret_cast<int64_t*>(inner->numbers->data());
    int32_t* index = reinterpret_cast<int32_t*>(inner->index->data());
    int64_t at = 0;
    for (int64_t k = 0; k < table.lanes; ++k)
      for (int64_t n = 0; n < counts[z(k)]; ++n, ++at) {
        numbers[at] = n;
        index[at] = static_cast<int32_t>(k);
      }
    inherit(*inner, table, index);
  }
  const int32_t* index = reinterpret_cast<const int32_t*>(inner->index->data());
  for (const Transfer& transfer : item.mapped) spread(table, *inner, item, transfer);
  for (const Transfer& outer : item.outers)
    if (inner->lanes > 0)
      tables_.take(*inner, outer.to, tables_.slot(*table.region, outer.from), tables_.column(table, outer.from), index,
                   inner->lanes);
  if (inner->lanes == 0 || body.programs[z(item.phase)].stages.empty()) return;
  ++self->pending;
  tell(*inner, item.phase);
  wave.ready.push_back(fiber(Fiber::Kind::Map, inner, item.phase, self));
}

/// Distribute the elements of an array over the lanes.
void Lockstep::spread(Table& table, Table& inner, const MapItem& item, const Transfer& transfer) {
  const Slot& from = tables_.slot(*table.region, transfer.from);
  const Slot& to = inner.region->slots[z(transfer.to)];
  const Column column = tables_.column(table, transfer.from);
  const int64_t* numbers = reinterpret_cast<const int64_t*>(inner.numbers->data());
  const int32_t* index = reinterpret_cast<const int32_t*>(inner.index->data());
  std::vector<int64_t> counts(z(table.lanes), 0);
  for (int64_t k = 0; k < inner.lanes; ++k) ++counts[z(index[k])];
  for (int64_t k = 0; k < table.lanes; ++k) {
    const int64_t length = shape_of(from, column, k)[0];
    if (length == counts[z(k)]) continue;
    operators_.lane = k;
    throw unequal_lanes(item.phase, counts[z(k)], length);
  }
  if (inner.lanes == 0) return;
  if (!to.is_dynamic && table.lanes == 1 && to.bytes > 0) {
    const Column view = from.is_dynamic ? Column{column.lane<Box>(0)->block, column.lane<Box>(0)->data, to.bytes}
                                        : Column{column.block, column.data, to.bytes};
    if (view.block != nullptr) ++view.block->refs;
    tables_.drop(inner, transfer.to);
    inner.columns[transfer.to] = view;
    return;
  }
  std::byte* out = tables_.own(inner, transfer.to);
  const auto data = [&](int64_t lane) {
    return from.is_dynamic ? column.lane<Box>(lane)->data : column.lane<std::byte>(lane);
  };
  if (!to.is_dynamic)
    return lanes::join(out, inner.lanes, to.bytes, [&](int64_t k) { return data(index[k]) + numbers[k] * to.bytes; });
  for (int64_t k = 0; k < inner.lanes; ++k) {
    const int64_t* shape = shape_of(from, column, index[k]);
    const int64_t bytes = row_bytes(from.dtype, shape, from.rank());
    Block* block = tables_.pool.take(bytes, to.home);
    lanes::copy(block->data(), data(index[k]) + numbers[k] * bytes, bytes);
    reinterpret_cast<Box*>(out)[k] = {block, block->data(), tables_.shape({shape + 1, z(from.rank() - 1)})};
  }
}

void Lockstep::leave_map(Table& table, const MapItem& item) {
  Table* inner = table.maps[z(item.map)];
  const int32_t* index = reinterpret_cast<const int32_t*>(inner->index->data());
  for (const Exit& result : item.results) {
    const Slot& from = tables_.slot(*inner->region, result.from);
    const Slot& to = table.region->slots[z(result.to)];
    const Column column = inner->lanes > 0 ? tables_.column(*inner, result.from) : Column{};
    std::byte* out = tables_.own(table, result.to, table.lanes == 1);
    int64_t first = 0;
    for (int64_t lane = 0; lane < table.lanes; ++lane) {
      int64_t last = first;
      while (last < inner->lanes && index[last] == lane) ++last;
      const auto locate = [&] {
        at_ = &table;
        operators_.lane = lane;
      };
      stack_lanes(
          to, out + lane * to.bytes, to.is_dynamic, from, last - first, inner->site,
          [&](int64_t k) { return column.from(first + k); }, locate);
      first = last;
    }
  }
  if (item.phase + 1 >= inner->visits) {
    table.maps[z(item.map)] = nullptr;
    tables_.end(inner);
  }
}

}  // namespace undertow::lockstep
