#include "remote/message.h"

#include "memory/lanes.h"
#include "run/values.h"
#include "undertow/size.h"

namespace undertow::remote {
namespace {

constexpr int64_t kPublished = 1 << 16;  // bytes: what is smaller costs less if it is sent again
constexpr size_t kKnown = 64;            // values that are remembered

enum class Form : uint8_t { Absent, Lanes, One };

int64_t get_length(Reader& from) { return from.between<int64_t>(0, int64_t{1} << 48); }

void put_value(Writer& to, Block* block, const std::byte* data, int64_t bytes, bool is_shared, Publisher* publisher) {
  const int32_t place = publisher == nullptr ? -1 : publisher->place_of(block, data, bytes, is_shared);
  to.put(place);
  if (place < 0) to.copy(data, bytes);
}

/// A bool is 0 or 1, whatever the message says.
void tidy(std::byte* data, int64_t bytes, DType dtype) {
  for (int64_t k = 0; dtype == DType::Bool && k < bytes; ++k) data[k] = std::byte{data[k] != std::byte{0}};
}

std::byte* get_value(Reader& from, int64_t bytes, DType dtype, const Arrived& arrived) {
  const auto place = from.between<int32_t>(-1, static_cast<int32_t>(arrived.shared.size()) - 1);
  const std::byte* data;
  if (place < 0) {
    data = from.part(bytes);
  } else {
    const std::span<const std::byte> shared = arrived.shared[z(place)];
    if (static_cast<int64_t>(shared.size()) != bytes) throw BadMessage("a shared value has another size");
    data = shared.data();
    // It is only read: an operator writes into memory of its own alone.
    const bool is_aligned = reinterpret_cast<uintptr_t>(data) % z(size_of(dtype)) == 0;
    if (is_aligned && dtype != DType::Bool) return const_cast<std::byte*>(data);
  }
  std::byte* to = arrived.memory.take(bytes);
  lanes::copy(to, data, bytes);
  tidy(to, bytes, dtype);
  return to;
}

}  // namespace

int32_t Publisher::place_of(Block* block, const std::byte* data, int64_t bytes, bool is_shared) {
  if (bytes < kPublished) return -1;
  auto known = std::ranges::find_if(known_, [&](const Known& one) { return one.data == data && one.bytes == bytes; });
  if (known == known_.end()) {
    if (!is_shared) return -1;
    if (known_.size() == kKnown) {
      pool_.drop(known_.front().block);
      known_.erase(known_.begin());
    }
    if (block != nullptr) ++block->refs;
    const Access access;
    known_.push_back({block, data, bytes, link_.publish({data, z(bytes)})});
    known = known_.end() - 1;
  }
  const auto used = std::ranges::find(used_, known->number);
  if (used != used_.end()) return static_cast<int32_t>(used - used_.begin());
  used_.push_back(known->number);
  return static_cast<int32_t>(used_.size()) - 1;
}

std::byte* Memory::take(int64_t bytes) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t size = (bytes + 63) / 64 * 64 + 64;
  if (size > kChunk / 4) {
    buffers_.emplace_back().resize(z(size));
    return buffers_.back().data();
  }
  if (size > left_) {
    buffers_.emplace_back().resize(z(kChunk));
    at_ = buffers_.back().data();
    left_ = kChunk;
  }
  left_ -= size;
  return std::exchange(at_, at_ + size);
}

Box* Memory::boxes(int64_t count) { return boxes_.emplace_back(std::make_unique<Box[]>(z(count))).get(); }

void put_column(Writer& to, const Slot& slot, const Column& column, int64_t lanes, Publisher* publisher) {
  if (column.data == nullptr) return to.put(Form::Absent);
  const bool is_one = column.stride == 0;
  to.put(is_one ? Form::One : Form::Lanes);
  const int64_t count = is_one ? 1 : lanes;
  if (!slot.is_dynamic) {
    if (is_one) return put_value(to, column.block, column.data, slot.bytes, true, publisher);
    lanes::move(to.room(count * slot.bytes), slot.bytes, column.data, column.stride, count, slot.bytes);
    return;
  }
  const std::byte* last = nullptr;
  for (int64_t k = 0; k < count; ++k) {
    const Box& box = *column.lane<Box>(k);
    for (int axis = 0; axis < slot.rank(); ++axis) to.put(box.shape[axis]);
    const int64_t bytes = View{box.data, 0, box.shape, slot.rank(), slot.dtype}.bytes();
    put_value(to, box.block, box.data, bytes, is_one || box.data == last, publisher);
    last = box.data;
  }
}

Column get_column(Reader& from, const Slot& slot, int64_t lanes, const Arrived& arrived) {
  const Form form = static_cast<Form>(from.between<uint8_t>(0, 2));
  if (form == Form::Absent) return {};
  const int64_t count = form == Form::One ? 1 : lanes;
  if (!slot.is_dynamic) {
    if (form == Form::One) return {nullptr, get_value(from, slot.bytes, slot.dtype, arrived), 0};
    int64_t bytes;
    if (__builtin_mul_overflow(slot.bytes, count, &bytes)) throw BadMessage("it is too short");
    const std::byte* data = from.part(bytes);
    std::byte* to = arrived.memory.take(bytes);
    lanes::copy(to, data, bytes);
    tidy(to, bytes, slot.dtype);
    return {nullptr, to, slot.bytes};
  }
  if (count > from.left() / 4) throw BadMessage("it is too short");
  Box* boxes = arrived.memory.boxes(count);
  std::vector<int64_t> shape(slot.shape.size());
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t& length : shape) length = get_length(from);
    if (!is_shaped(slot, shape.data(), slot.rank())) throw BadMessage("an array has another shape than its type");
    int64_t bytes;
    try {
      bytes = array_bytes(slot.dtype, shape.data(), slot.rank());
    } catch (const OverLimit&) {
      throw BadMessage("an array is larger than any machine");
    }
    boxes[k] = {nullptr, get_value(from, bytes, slot.dtype, arrived), arrived.tables.shape(shape)};
  }
  return {nullptr, reinterpret_cast<std::byte*>(boxes), form == Form::One ? 0 : static_cast<int64_t>(sizeof(Box))};
}

int64_t bytes_of(const Slot& slot, const Column& column, int64_t lanes) {
  if (column.data == nullptr || (column.stride == 0 && !slot.is_dynamic)) return 0;
  if (!slot.is_dynamic) return slot.bytes * lanes;
  int64_t bytes = 0;
  for (int64_t k = 0; column.stride != 0 && k < lanes; ++k) {
    const Box& box = *column.lane<Box>(k);
    bytes += View{box.data, 0, box.shape, slot.rank(), slot.dtype}.bytes();
  }
  return bytes;
}

void put_labels(Writer& to, const std::vector<Label>& labels) { to.all(labels); }
std::vector<Label> get_labels(Reader& from) { return from.all<Label>(); }

void put_stop(Writer& to, const Stop& stop) {
  to.put(stop.kind);
  to.put(stop.node);
  to.put(stop.site);
  put_labels(to, stop.tag);
  to.put(static_cast<int64_t>(stop.values.size()));
  for (size_t k = 0; k < stop.values.size(); ++k) {
    const Value& value = stop.values[k];
    to.put(stop.types[k].dtype);
    to.all(value.shape);
    to.put(static_cast<int64_t>(value.bytes.size()));
    to.copy(value.bytes.data(), static_cast<int64_t>(value.bytes.size()));
  }
  to.put(stop.a);
  to.put(stop.b);
}

Stop get_stop(Reader& from, const Plan& plan) {
  Stop stop{static_cast<Stop::Kind>(from.between<uint8_t>(0, static_cast<uint8_t>(Stop::Kind::Internal)))};
  stop.node = from.between<int32_t>(-1, plan.nodes - 1);
  stop.site = from.get<int32_t>();
  stop.tag = get_labels(from);
  const int64_t values = from.count();
  for (int64_t k = 0; k < values; ++k) {
    const DType dtype = static_cast<DType>(from.between<uint8_t>(0, static_cast<uint8_t>(DType::C128)));
    Value value;
    value.shape = from.all<int64_t>();
    const int64_t bytes = from.count();
    for (int64_t length : value.shape) Reader::between<int64_t>(length, 0, bytes);
    if (array_bytes(dtype, value.shape.data(), static_cast<int>(value.shape.size())) != bytes)
      throw BadMessage("an operand has another size than its type");
    value.bytes.resize(z(bytes));
    lanes::copy(value.bytes.data(), from.part(bytes), bytes);
    stop.types.push_back({dtype, static_cast<int>(value.shape.size())});
    stop.values.push_back(std::move(value));
  }
  stop.a = from.get<int64_t>();
  stop.b = from.get<int64_t>();
  return stop;
}

namespace {

constexpr int64_t RunStats::* kCounts[] = {&RunStats::activations,  &RunStats::waves,      &RunStats::lanes,
                                           &RunStats::peak_width,   &RunStats::packed,     &RunStats::recalled,
                                           &RunStats::changed,      &RunStats::joint_runs, &RunStats::joint_tables,
                                           &RunStats::shared_steps, &RunStats::tasks};

}  // namespace

void put_counts(Writer& to, const RunStats& stats) {
  for (auto count : kCounts) to.put(stats.*count);
  to.put(stats.seconds);
  int64_t fired = 0;
  for (int64_t count : stats.fired) fired += count != 0;
  to.put(fired);
  for (size_t node = 0; node < stats.fired.size(); ++node)
    if (stats.fired[node] != 0) {
      to.put(static_cast<int32_t>(node));
      to.put(stats.fired[node]);
    }
}

void get_counts(Reader& from, RunStats& stats, const Plan& plan) {
  for (auto count : kCounts) stats.*count = from.between<int64_t>(0, int64_t{1} << 60);
  stats.seconds = from.get<StepSeconds>();
  stats.fired.assign(z(plan.nodes), 0);
  for (int64_t left = from.count(12); left > 0; --left) {
    const auto node = from.between<int32_t>(0, plan.nodes - 1);
    stats.fired[z(node)] = from.get<int64_t>();
  }
}

}  // namespace undertow::remote
