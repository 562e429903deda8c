// Making and freeing copies (calls, iterations, lanes) and entries; saving and loading values for later phases.
#include "executor.h"
#include "run/values.h"
#include "undertow/size.h"

namespace undertow::expand {

// ------------------------------------------------------------------------------------------------------------------
// Copies

/// Free a copy whose steps have all fired and whose child copies are all freed; then its parent, if that was the last.
template <bool kIsShared>
void Executor<kIsShared>::finish(Copy* copy) {
  for (;;) {
    const Template& made_of = *copy->made_of;
    Copy* const parent = copy->parent;
    if (parent == nullptr) return;  // main: its shared values are still read, and the run ends soon
    const bool is_last = copy->visits == made_of.phase + 1;
    if (!is_last && made_of.record.all > 0) save(*copy);
    if (made_of.parts > 0) hand_up(*copy);
    const Layout& layout = made_of.layout;
    for (int32_t k = 0; k < layout.arrays; ++k) drop(memory_, as_array(copy->slots[k]));
    for (int32_t k = layout.arrays; k < layout.arrays + layout.entries; ++k)
      drop_entry(reinterpret_cast<Entry*>(copy->slots[k]));
    if (is_last) take_one<kIsShared>(common_.frames);
    if (copy == common_.deepest.load(std::memory_order_relaxed)) {
      const std::lock_guard lock(common_.mutex);
      if (copy == common_.deepest.load(std::memory_order_relaxed)) climb();
    }
    if (common_.failure.is_there()) [[unlikely]]
      common_.failure.forget(copy);
    Lanes* const lanes = copy->lanes;
    const Entering& row = *copy->row;
    if (at_ == copy) at_ = parent;
    arena_.give(copy, made_of.copy_size);
    if (lanes != nullptr) {
      take_one<kIsShared>(parent->left);  // its own count; the map as a whole has another
      const int64_t count = lanes->count;
      if (one_more(lanes->ended) < count) return;
      give_to(common_.lanes, lanes);
    }
    if (row.done.count > 0) {
      set_off(*parent, row.done);
      drain();
    }
    if (take_one<kIsShared>(parent->left) != 0) return;
    copy = parent;
  }
}

/// A call nests deeper than all before it.
template <bool kIsShared>
void Executor<kIsShared>::count_depth(Copy& copy) {
  const std::lock_guard lock(common_.mutex);
  if (copy.depth <= common_.max_depth.load(std::memory_order_relaxed)) return;
  options_.check_depth(copy.depth, common_.heap.live());
  common_.max_depth.store(copy.depth, std::memory_order_relaxed);
  common_.deepest_tag.clear();
  common_.deepest.store(&copy, std::memory_order_relaxed);
}

template <bool kIsShared>
void Executor<kIsShared>::give(const Copy& from, Copy& to, std::span<const Pair> pairs) {
  const int32_t arrays = to.made_of->layout.arrays;
  for (const Pair& pair : pairs) {
    const uint64_t value = cell(from, pair.from);
    to.slots[pair.to] = pair.to < arrays ? shared<kIsShared>(value) : value;
  }
}

template <bool kIsShared>
void Executor<kIsShared>::call(Copy& copy, const Entering& row) {
  const int32_t visits = row.visits[z(copy.visits - 1)];
  Copy* callee = open(plan_.templates[z(row.callee)], &copy, &row, row.kind == Entering::Kind::Loop ? 0 : -1, visits);
  if (row.entry != kNoSlot) {
    if (row.phase == 0) {
      if (copy.slots[row.entry] != 0) throw Stop{Stop::Kind::Internal};  // it would be lost, with who uses it
      copy.slots[row.entry] = as_cell(make_entry(copy, row));
    }
    callee->entry = reinterpret_cast<Entry*>(copy.slots[row.entry]);
  }
  if (row.part >= 0 && row.kind == Entering::Kind::Loop) make_series(copy, row);
  give(copy, *callee, row.arguments);
  begin(*callee);
}

/// The next iteration of a loop: a sibling of this copy, with the same parent.
template <bool kIsShared>
void Executor<kIsShared>::again(Copy& copy, const std::vector<Pair>& pairs) {
  Copy* next = open(*copy.made_of, copy.parent, copy.row, copy.index + 1, copy.visits);
  give(copy, *next, pairs);
  begin(*next);
}

// ------------------------------------------------------------------------------------------------------------------
// Values from above

template <bool kIsShared>
void Executor<kIsShared>::read(Copy& copy) {
  const Template& made_of = *copy.made_of;
  const Entry* const entry = copy.entry;
  if (entry == nullptr || known_entries_[z(made_of.number)] != entry->row) check_entry(made_of, entry);
  for (const Read& read : made_of.reads) {
    const uint64_t value = read.is_shared ? common_.main->slots[read.index] : entry->values[z(read.index)];
    copy.slots[read.to] = read.to < made_of.layout.arrays ? shared<kIsShared>(value) : value;
  }
}

/// Does an entry hold all that copies of a template read, of the types that they read it as?
template <bool kIsShared>
void Executor<kIsShared>::check_entry(const Template& made_of, const Entry* entry) {
  for (const Read& read : made_of.reads) {
    if (read.is_shared) continue;
    if (entry == nullptr || z(read.index) >= entry->values.size() ||
        !is_fitting(made_of.types[z(read.to)], type(*entry->caller, entry->row->hoists[z(read.index)])))
      throw Stop{Stop::Kind::Internal};
  }
  if (entry != nullptr) known_entries_[z(made_of.number)] = entry->row;
}

// ------------------------------------------------------------------------------------------------------------------
// Later phases

/// Save what later phases read. The copy is about to be freed, so references move instead of being counted.
template <bool kIsShared>
void Executor<kIsShared>::save(Copy& copy) {
  const Template& made_of = *copy.made_of;
  uint64_t* record = made_of.phase > 0 ? common_.table.get(copy.path, made_of.body) : nullptr;
  if (record == nullptr) {
    record = static_cast<uint64_t*>(arena_.take(made_of.record_size));
    std::memset(record, 0, 8 * z(made_of.record.all));
    common_.table.put(copy.path, made_of.body, record);
  }
  const int32_t references = made_of.layout.arrays + made_of.layout.entries;
  for (const Pair& pair : made_of.saves) {
    record[pair.to] = copy.slots[pair.from];
    if (pair.from < references) copy.slots[pair.from] = 0;  // moved
  }
}

/// Load what earlier phases saved. The last phase also frees the record.
template <bool kIsShared>
void Executor<kIsShared>::load(Copy& copy) {
  const Template& made_of = *copy.made_of;
  uint64_t* record = common_.table.get(copy.path, made_of.body);
  if (record == nullptr) throw Stop{Stop::Kind::Internal};
  const bool is_last = copy.visits == made_of.phase + 1;
  const Layout& layout = made_of.record;
  for (const Pair& pair : made_of.loads) {
    uint64_t& value = record[pair.from];
    copy.slots[pair.to] = value;
    if (pair.from >= layout.arrays + layout.entries || value == 0) continue;
    if (is_last)
      value = 0;
    else if (pair.from < layout.arrays)
      shared<kIsShared>(value);
    else
      add_one<kIsShared>(reinterpret_cast<Entry*>(value)->refs);
  }
  if (!is_last) return;
  for (int32_t k = 0; k < layout.arrays; ++k) drop(memory_, as_array(record[k]));
  for (int32_t k = layout.arrays; k < layout.arrays + layout.entries; ++k)
    drop_entry(reinterpret_cast<Entry*>(record[k]));
  common_.table.remove(copy.path, made_of.body);
  arena_.give(record, made_of.record_size);
}

// ------------------------------------------------------------------------------------------------------------------
// Maps

template <bool kIsShared>
void Executor<kIsShared>::map(Copy& copy, const Entering& row) {
  const auto length = [&](Operand x) { return shape_of(array_in(cell(copy, x)))[0]; };
  const int64_t count = row.counted != kNoSlot ? length(row.counted) : static_cast<int64_t>(copy.slots[row.lanes]);
  for (const Pair& pair : row.mapped)
    if (length(pair.from) != count) throw unequal_lanes(row.phase, count, length(pair.from));
  if (count < 0) throw Stop{Stop::Kind::Internal};
  if (count > INT32_MAX) throw OverLimit{OverLimit::Kind::Frames};
  if (row.phase == 0 && row.lanes != kNoSlot) copy.slots[row.lanes] = static_cast<uint64_t>(count);
  if (row.lanes_too != kNoSlot) copy.slots[row.lanes_too] = static_cast<uint64_t>(count);
  Lanes* lanes = take_from(common_.lanes);
  *lanes = {&copy, &row, count, 0, 0, row.visits[z(copy.visits - 1)], {}};
  for (const Result& result : row.results) {
    Lanes::Gathered& made = lanes->results.emplace_back();
    made.lacking = count;
    if (!result.is_there || result.is_order || result.to == kNoSlot) continue;
    const ValueType& slot = copy.made_of->types[z(result.to)];
    if (slot.shape[0] != kUnknown && slot.shape[0] != count) throw Stop{Stop::Kind::Internal, result.node};
    if (!is_array(slot.rank() - 1, slot.dtype)) {
      made.array = make_array(memory_, &count, 1, slot.dtype);
      std::memset(data_of(made.array, 1), 0, z(count * size_of(slot.dtype)));
    } else {
      made.values.assign(z(count), 0);
    }
  }
  if (row.part >= 0) make_series(copy, row);
  add_one<kIsShared>(copy.left);
  if (count > 0) {
    push(lanes, nullptr);
    return;
  }
  for (size_t k = 0; k < row.results.size(); ++k)
    if (row.results[k].is_there) put_together(*lanes, k);
  drain();
  give_to(common_.lanes, lanes);
  if (row.done.count > 0) {
    set_off(copy, row.done);
    drain();
  }
  take_one<kIsShared>(copy.left);  // cannot reach 0: the step that is firing is still counted
}

template <bool kIsShared>
void Executor<kIsShared>::make_lane(Lanes& lanes) {
  const Entering& row = *lanes.row;
  Copy& parent = *lanes.parent;
  const int64_t index = lanes.made++;
  at_ = &parent;
  place_ = {&parent, row.order, index};
  const int32_t visits = lanes.visits;
  if (index + 1 < lanes.count) push(&lanes, nullptr);  // from here on another thread may have it
  Copy* lane = open(plan_.templates[z(row.callee)], &parent, &row, index, visits);
  lane->lanes = &lanes;
  give(parent, *lane, row.arguments);
  for (const Pair& pair : row.mapped) {
    if (pair.to == kNoSlot) continue;
    const ValueType& slot = type(*parent.made_of, pair.from);
    Block* const array = as_array(cell(parent, pair.from));
    const int64_t* const shape = shape_of(array);
    const int64_t bytes = row_bytes(slot.dtype, shape, slot.rank());
    lane->slots[pair.to] =
        make_cell(memory_, data_of(array, slot.rank()) + index * bytes, shape + 1, slot.rank() - 1, slot.dtype);
  }
  place_.copy = nullptr;
  begin(*lane);
}

template <bool kIsShared>
void Executor<kIsShared>::gather(Copy& lane, const Result& result, int32_t number, Operand value) {
  Lanes& lanes = *lane.lanes;
  Lanes::Gathered& made = lanes.results[z(number)];
  if (__atomic_load_n(&made.lacking, __ATOMIC_RELAXED) == 0)
    throw Stop{Stop::Kind::Internal, result.node};  // some lane has given it twice
  if (!result.is_order && result.to != kNoSlot && value != kNoSlot) {
    const uint64_t found = cell(lane, value);
    if (made.array != nullptr) {
      const int64_t size = size_of(type(*lane.made_of, value).dtype);
      std::memcpy(data_of(made.array, 1) + lane.index * size, &found, z(size));
    } else {
      made.values[z(lane.index)] = shared<kIsShared>(found);
    }
  }
  if (take_one<kIsShared>(made.lacking) == 0) tasks_.push_back({nullptr, nullptr, &lanes, z(number)});
}

/// All lanes have returned this result: make one array of it.
template <bool kIsShared>
void Executor<kIsShared>::put_together(Lanes& lanes, size_t number) {
  const Result& result = lanes.row->results[number];
  Lanes::Gathered& made = lanes.results[number];
  Copy& parent = *lanes.parent;
  if (!result.is_order && result.to != kNoSlot) {
    place_ = {&parent, lanes.row->order, kAfterLanes};
    if (made.array == nullptr) {
      const ValueType& slot = parent.made_of->types[z(result.to)];
      const int rank = slot.rank();
      std::vector<int64_t> shape(z(rank));
      shape[0] = lanes.count;
      for (uint64_t value : made.values) array_in(value);
      for (int axis = 1; axis < rank; ++axis)
        shape[z(axis)] =
            lanes.count > 0 ? shape_of(as_array(made.values[0]))[axis - 1] : std::max<int64_t>(slot.shape[z(axis)], 0);
      for (uint64_t value : made.values)
        if (std::memcmp(shape_of(as_array(value)), shape.data() + 1, z(rank - 1) * 8) != 0) {
          std::vector<View> views;
          for (uint64_t each : made.values) views.push_back(view_of(as_array(each), rank - 1, slot.dtype));
          at_ = &parent;
          throw stop_of(Stop::Kind::UnequalResults, result.node, views);
        }
      made.array = make_array(memory_, shape.data(), rank, slot.dtype);
      std::byte* to = data_of(made.array, rank);
      for (uint64_t& value : made.values) {
        const View view = view_of(as_array(value), rank - 1, slot.dtype);
        if (view.bytes() > 0) std::memcpy(to, view.data, z(view.bytes()));
        to += view.bytes();
        drop(memory_, as_array(value));
      }
      made.values.clear();
    }
    parent.slots[result.to] = as_cell(made.array);
    made.array = nullptr;
    place_.copy = nullptr;
  }
  tasks_.push_back({&parent, &result.program, nullptr, 0});
}

// ------------------------------------------------------------------------------------------------------------------
// Entries

template <bool kIsShared>
Entry* Executor<kIsShared>::make_entry(Copy& copy, const Entering& row) {
  Entry* entry = take_from(common_.entries);
  *entry = {1, &row, copy.made_of, {}, nullptr};
  for (Operand x : row.hoists) {
    const uint64_t value = cell(copy, x);
    entry->values.push_back(is_array(type(*copy.made_of, x)) ? shared<kIsShared>(value) : value);
  }
  return entry;
}

template <bool kIsShared>
void Executor<kIsShared>::drop_entry(Entry* entry) {
  if (entry == nullptr || take_one<kIsShared>(entry->refs) > 0) return;
  for (size_t k = 0; k < entry->values.size(); ++k)
    if (is_array(type(*entry->caller, entry->row->hoists[k]))) drop(memory_, as_array(entry->values[k]));
  drop_sums(entry->sums);
  give_to(common_.entries, entry);
}

template class Executor<false>;
template class Executor<true>;

}  // namespace undertow::expand
