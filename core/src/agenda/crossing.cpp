#include "agenda/crossing.h"

#include <algorithm>

#include "memory/lanes.h"
#include "remote/bytes.h"
#include "run/values.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow::agenda {
namespace {

enum class Form : uint8_t { Order, Lanes, One };
constexpr size_t kAhead = 8;                // tokens
constexpr size_t kLeast = 64, kFactor = 4;  // places of a table, and how it grows

/// A bool is 0 or 1, whatever the message says.
void tidy(std::byte* data, int64_t bytes, DType dtype) {
  if (dtype != DType::Bool) return;
  const Access access;
  for (int64_t k = 0; k < bytes; ++k) data[k] = std::byte{data[k] != std::byte{0}};
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------------
// The table

Token& TokenTable::find(int32_t edge, Path path, bool& is_new) {
  reserve(1);
  size_t at = home(edge, path);
  while (tokens_[at].edge >= 0 && (tokens_[at].edge != edge || tokens_[at].path != path))
    at = (at + 1) & (tokens_.size() - 1);
  Token& token = tokens_[at];
  is_new = token.edge < 0;
  if (is_new) {
    token = {path, edge, nullptr, {}};
    ++size_;
  }
  return token;
}

/// Close the gap: whatever was pushed past it moves back.
void TokenTable::erase(const Token& token) {
  const size_t mask = tokens_.size() - 1;
  size_t gap = static_cast<size_t>(&token - tokens_.data());
  for (size_t at = (gap + 1) & mask; tokens_[at].edge >= 0; at = (at + 1) & mask) {
    const size_t from_home = (at - home(tokens_[at].edge, tokens_[at].path)) & mask;
    if (from_home < ((at - gap) & mask)) continue;
    tokens_[gap] = tokens_[at];
    gap = at;
  }
  tokens_[gap].edge = -1;
  --size_;
}

void TokenTable::reserve(size_t count) {
  const size_t least = 2 * (size_ + count);
  if (least <= tokens_.size()) return;
  size_t places = std::max(kLeast, tokens_.size());
  while (places < least) places *= kFactor;
  grow(places);
}

void TokenTable::grow(size_t places) {
  const std::span<const Token> before = tokens_;
  Block* const block = pool_.take(static_cast<int64_t>(places * sizeof(Token)));
  tokens_ = {reinterpret_cast<Token*>(block->data()), places};
  for (Token& token : tokens_) token.edge = -1;
  for (const Token& token : before) {
    if (token.edge < 0) continue;
    size_t at = home(token.edge, token.path);
    while (tokens_[at].edge >= 0) at = (at + 1) & (tokens_.size() - 1);
    tokens_[at] = token;
  }
  pool_.drop(std::exchange(block_, block));
}

// ------------------------------------------------------------------------------------------------------------------

Crossing::Crossing(Wire& wire, const Plan& plan, const Outline& outline, Tables& tables)
    : wire_(wire), tables_(tables), tokens_(tables.pool) {
  for (const RecvPlan& recv : outline.recvs) by_edge_[recv.item->edge] = &recv;
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
  for (Frame* const frame : frames) to.put(frame->path);
  if (form != Form::Order) {
    const int64_t values = form == Form::One ? 1 : count;
    if (slot->is_dynamic) {
      for (int64_t k = 0; k < values; ++k) {
        const Box& box = *column.lane<Box>(k);
        for (int axis = 0; axis < slot->rank(); ++axis) to.put(box.shape[axis]);
        to.copy(box.data, View{box.data, 0, box.shape, slot->rank(), slot->dtype}.bytes());
      }
    } else {
      lanes::move(to.room(values * slot->bytes), slot->bytes, column.data, column.stride, values, slot->bytes);
    }
  }
  wire_.added(item.part);
}

void Crossing::arm(const RecvPlan& recv, std::span<Frame* const> frames) {
  const int32_t edge = recv.item->edge;
  tokens_.reserve(frames.size());
  for (size_t k = 0; k < std::min(kAhead, frames.size()); ++k) tokens_.prefetch(edge, frames[k]->path);
  for (size_t k = 0; k < frames.size(); ++k) {
    if (k + kAhead < frames.size()) tokens_.prefetch(edge, frames[k + kAhead]->path);
    Frame* const frame = frames[k];
    bool is_new = false;
    Token& token = tokens_.find(edge, frame->path, is_new);
    if (is_new) {
      token.frame = frame;
      ++armed_;
      ++frame->pending;
      continue;
    }
    if (token.frame != nullptr) throw Stop{Stop::Kind::Internal};  // two frames with one tag
    put(recv, frame, token.value);
    tokens_.erase(token);
  }
}

/// A value goes into a frame, with the reference to its block.
void Crossing::put(const RecvPlan& recv, Frame* frame, Box value) {
  if (recv.place >= 0 && !is_small(*recv.slot)) {
    Box* box = reinterpret_cast<Box*>(frame->at(recv.place));
    tables_.pool.drop(box->block);
    *box = value;
    return;
  }
  if (recv.place >= 0) lanes::copy_few(frame->at(recv.place), value.data, static_cast<int32_t>(recv.slot->bytes));
  tables_.pool.drop(value.block);
}

void Crossing::receive(double seconds, std::vector<Frame*>& found) {
  wire_.take(seconds, [&](int32_t part, std::span<const std::byte> batch) { take(part, batch, found); });
}

void Crossing::take(int32_t part, std::span<const std::byte> batch, std::vector<Frame*>& found) {
  remote::Reader from(batch);
  while (from.left() > 0) {
    const auto edge = from.get<int32_t>();
    const auto known = by_edge_.find(edge);
    if (known == by_edge_.end() || known->second->item->part != part)
      throw BadMessage("it has a token of an edge that does not lead here");
    const RecvPlan& recv = *known->second;
    const int64_t count = from.count(sizeof(Path));
    const Form form = static_cast<Form>(from.between<uint8_t>(0, static_cast<uint8_t>(Form::One)));
    if ((form == Form::Order) != (recv.slot == nullptr)) throw BadMessage("a token has another type than its edge");
    paths_.resize(z(count));
    for (Path& path : paths_) path = from.get<Path>();
    const int64_t values = count == 0 || form == Form::Order ? 0 : form == Form::One ? 1 : count;
    tokens_.reserve(z(count));
    for (size_t k = 0; k < std::min(kAhead, paths_.size()); ++k) tokens_.prefetch(edge, paths_[k]);
    // Values of a known size share one block, side by side, so that frames that run together find a column.
    Box value{};
    const bool is_static = values > 0 && !recv.slot->is_dynamic;
    if (is_static) {
      const int64_t bytes = values * recv.slot->bytes;
      const std::byte* data = from.part(bytes);
      value.block = tables_.pool.take(bytes, recv.slot->home);
      value.data = value.block->data();
      value.shape = tables_.static_shape(*recv.slot);
      lanes::copy(value.data, data, bytes);
      tidy(value.data, bytes, recv.slot->dtype);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (z(k) + kAhead < paths_.size()) tokens_.prefetch(edge, paths_[z(k) + kAhead]);
      if (values > 0 && recv.slot->is_dynamic && (k == 0 || form == Form::Lanes)) {
        std::vector<int64_t> shape(z(recv.slot->rank()));
        for (int64_t& length : shape) length = from.between<int64_t>(0, int64_t{1} << 48);
        if (!is_shaped(*recv.slot, shape.data(), recv.slot->rank())) throw BadMessage("a token has another shape");
        const int64_t bytes = array_bytes(recv.slot->dtype, shape.data(), recv.slot->rank());
        if (bytes < 0) throw BadMessage("a token is too large");
        const std::byte* data = from.part(bytes);
        value.block = tables_.pool.take(bytes, recv.slot->home);
        value.data = value.block->data();
        value.shape = tables_.shape(shape);
        lanes::copy(value.data, data, bytes);
        tidy(value.data, bytes, recv.slot->dtype);
      }
      // The last of those that share a block takes the reference that there is.
      const bool is_shared = value.block != nullptr && k + 1 < count && (is_static || form == Form::One);
      if (is_shared) ++value.block->refs;
      bool is_new = false;
      Token& token = tokens_.find(edge, paths_[z(k)], is_new);
      if (is_new) {
        token.value = value;
      } else {
        Frame* const frame = token.frame;
        if (frame == nullptr) throw BadMessage("a token has come twice");
        tokens_.erase(token);
        --armed_;
        put(recv, frame, value);
        found.push_back(frame);
      }
      if (is_static && form == Form::Lanes) value.data += recv.slot->bytes;
    }
  }
}

void Crossing::check_empty() const {
  if (tokens_.size() > 0) throw Stop{Stop::Kind::Internal};
}

}  // namespace undertow::agenda
