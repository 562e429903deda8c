#include "agenda/crossing.h"

#include "memory/lanes.h"
#include "remote/bytes.h"
#include "run/values.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {

enum class Form : uint8_t { Order, Lanes, One };

/// A bool is 0 or 1, whatever the message says.
void tidy(std::byte* data, int64_t bytes, DType dtype) {
  if (dtype != DType::Bool) return;
  const Access access;
  for (int64_t k = 0; k < bytes; ++k) data[k] = std::byte{data[k] != std::byte{0}};
}

}  // namespace

Crossing::Crossing(Wire& wire, const Plan& plan, const Outline& outline, Tables& tables)
    : wire_(wire), tables_(tables), loose_(tables.pool), ends_(tables.pool) {
  for (const RecvPlan& recv : outline.recvs) edges_[recv.item->edge].recv = &recv;
  const auto check = [&](int32_t part) {
    if (!wire_.has(part)) throw Stop{Stop::Kind::Internal};
  };
  for (const SendItem& item : plan.sends) check(item.part);
  for (const RecvItem& item : plan.recvs) check(item.part);
}

void Crossing::send(const SendItem& item, std::span<Frame* const> frames, const Slot* slot, const Column& column) {
  remote::Writer& to = wire_.to(item.part);
  const auto count = static_cast<int64_t>(frames.size());
  to.put(item.edge);
  to.put(count);
  const Form form = slot == nullptr ? Form::Order : column.stride == 0 ? Form::One : Form::Lanes;
  to.put(form);
  constexpr int64_t kPath = sizeof(Path);
  lanes::join(to.room(count * kPath), count, kPath, [&](int64_t k) { return &frames[z(k)]->path(); });
  if (form != Form::Order) {
    const int64_t values = form == Form::One ? 1 : count;
    if (slot->is_dynamic) {
      for (int64_t k = 0; k < values; ++k) {
        const Box& box = *column.lane<Box>(k);
        for (int axis = 0; axis < slot->rank(); ++axis) to.put(box.shape[axis]);
        put(item.part, box.block, box.data, View{box.data, 0, box.shape, slot->rank(), slot->dtype}.bytes());
      }
    } else if (values == 1 || column.stride == slot->bytes) {
      put(item.part, column.block, column.data, values * slot->bytes);
    } else {
      lanes::move(to.room(values * slot->bytes), slot->bytes, column.data, column.stride, values, slot->bytes);
    }
  }
  wire_.added(item.part);
}

/// Large values go from where they are, which nobody changes as long as there is another reference.
void Crossing::put(int32_t part, Block* block, const std::byte* data, int64_t bytes) {
  if (bytes < Wire::kLent || block == nullptr || memory_is_guarded) {
    wire_.to(part).copy(data, bytes);
    return;
  }
  ++block->refs;
  wire_.lend(part, {data, z(bytes)}, {block, [this](Block* lent) { tables_.pool.drop(lent); }});
}

void Crossing::receive(double seconds, std::vector<Frame*>& found) {
  wire_.take(seconds, [&](int32_t part, std::span<const std::byte> batch) { take(part, batch, found); });
}

void Crossing::take(int32_t part, std::span<const std::byte> batch, std::vector<Frame*>& found) {
  remote::Reader from(batch);
  while (from.left() > 0) {
    const auto known = edges_.find(from.get<int32_t>());
    if (known == edges_.end() || known->second.recv->item->part != part)
      throw BadMessage("it has a token of an edge that does not lead here");
    Edge& edge = known->second;
    const int64_t count = from.count(sizeof(Path));
    const Form form = static_cast<Form>(from.between<uint8_t>(0, static_cast<uint8_t>(Form::One)));
    if ((form == Form::Order) != (edge.recv->slot == nullptr))
      throw BadMessage("a token has another type than its edge");
    if (count == 0) continue;
    paths_.resize(z(count));
    lanes::copy(paths_.data(), from.part(count * static_cast<int64_t>(sizeof(Path))),
                count * static_cast<int64_t>(sizeof(Path)));
    Values values;
    if (form != Form::Order) values = read_values(*edge.recv, from, count, form == Form::One);
    match(edge, values, found);
  }
}

/// The values of a group. Those of a known size share one block, side by side, so that frames that run together find a
/// column; small ones stay in the message, since most are copied to a frame at once.
Values Crossing::read_values(const RecvPlan& recv, remote::Reader& from, int64_t count, bool is_one) {
  const Slot& slot = *recv.slot;
  const bool is_read = recv.place >= 0;
  Values values;
  if (slot.is_dynamic) {
    if (is_one) {
      values.first = read_box(slot, from);
      return values;
    }
    values.boxes = tables_.pool.take(count * static_cast<int64_t>(sizeof(Box)));
    for (int64_t k = 0; k < count; ++k) *values.box(z(k)) = read_box(slot, from);
    return values;
  }
  const int64_t bytes = (is_one ? 1 : count) * slot.bytes;
  const std::byte* data = from.part(bytes);
  if (!is_read) return values;
  values.stride = is_one ? 0 : slot.bytes;
  if (is_small(slot) && slot.dtype != DType::Bool)
    values.first = {nullptr, const_cast<std::byte*>(data), tables_.static_shape(slot)};
  else
    values.first = copied(slot, data, bytes, tables_.static_shape(slot));
  return values;
}

/// A value of a size that only the sender knew.
Box Crossing::read_box(const Slot& slot, remote::Reader& from) {
  shape_.resize(z(slot.rank()));
  for (int64_t& length : shape_) length = from.between<int64_t>(0, int64_t{1} << 48);
  if (!is_shaped(slot, shape_.data(), slot.rank())) throw BadMessage("a token has another shape");
  const int64_t bytes = array_bytes(slot.dtype, shape_.data(), slot.rank());
  if (bytes < 0) throw BadMessage("a token is too large");
  return copied(slot, from.part(bytes), bytes, tables_.shape(shape_));
}

Box Crossing::copied(const Slot& slot, const std::byte* data, int64_t bytes, const int64_t* shape) {
  Block* const block = tables_.pool.take(bytes, slot.home);
  lanes::copy(block->data(), data, bytes);
  tidy(block->data(), bytes, slot.dtype);
  return {block, block->data(), shape};
}

}  // namespace undertow::agenda
