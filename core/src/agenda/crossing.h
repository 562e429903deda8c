// Tokens that cross between the parts of a placed graph: what frames send, what they wait for, and what has come before
// its frame did. A message is a group of tokens of one edge: their tags as paths, their values as a column.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "agenda/frame.h"
#include "agenda/path_table.h"
#include "memory/store.h"
#include "undertow/wire.h"

namespace undertow::remote {
class Reader;  // remote/bytes.h
}

namespace undertow::agenda {

/// The values of a group of tokens. Of order tokens, or where nothing reads them, there are none.
struct Values {
  Box first{};             ///< others are each `stride` bytes further; without a block, they are in the message
  int64_t stride = 0;      ///< 0: one value for all
  Block* boxes = nullptr;  ///< of values of different sizes: a box for each, instead of `first`

  Box* box(size_t k) const { return reinterpret_cast<Box*>(boxes->data()) + k; }
};

/// Frames of one edge that began to wait one after the other, or tokens that came so, before their frames. Parts mostly
/// go through lanes in the same order: so a group of tokens mostly belongs to the next frames of a stretch, or to the
/// last, and where a stretch begins and ends is all that must be looked up.
struct Stretch {
  size_t first, end;           ///< what is left of it
  std::vector<Frame*> frames;  ///< empty: these are tokens
  Block* paths;                ///< of the tokens
  Values values;               ///< of the tokens
  size_t number;               ///< in the list of its edge

  const Path& path(size_t k) const {
    return frames.empty() ? reinterpret_cast<const Path*>(paths->data())[k] : frames[k]->path();
  }
};

class Crossing {
 public:
  Crossing(Wire& wire, const Plan& plan, const Outline& outline, Tables& tables);
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;
  ~Crossing() { wire_.give_up(); }

  // crossing.cpp

  /// Send a value of each frame. The column of an order token is empty.
  void send(const SendItem& item, std::span<Frame* const> frames, const Slot* slot, const Column& column);
  /// Take what has come; waits so long at most if there is nothing. Frames that had waited are appended to `found`.
  void receive(double seconds, std::vector<Frame*>& found);
  void flush() { wire_.flush(); }
  bool is_full() const { return wire_.is_full(); }
  bool is_sent() const { return wire_.is_sent(); }

  // match.cpp

  /// Give each frame its token if it is there. Else it waits for one thing more, and will be among those that `receive`
  /// finds.
  void arm(const RecvPlan& recv, std::span<Frame* const> frames);
  /// Does any frame wait for a token?
  bool is_awaited() const { return armed_ > 0; }
  /// All tokens have been taken, or the cut is wrong.
  void check_empty() const;

 private:
  /// What waits at the end of an edge: frames and tokens in stretches, and loose ones in the table. While there are
  /// stretches of frames there are no tokens, and while there are stretches of tokens, no frames.
  struct Edge {
    const RecvPlan* recv;
    std::vector<Stretch*> stretches;
    size_t loose_frames = 0, loose_tokens = 0;

    bool has_stretches(bool of_frames) const { return !stretches.empty() && stretches[0]->frames.empty() != of_frames; }
    int32_t number() const { return recv->item->edge; }
  };

  /// A frame that waits for a token or, without a frame, a token that has come too early.
  struct Loose {
    Frame* frame;
    Box value;  ///< without data: an order token
  };

  // crossing.cpp: messages
  void put(int32_t part, Block* block, const std::byte* data, int64_t bytes);
  void take(int32_t part, std::span<const std::byte> batch, std::vector<Frame*>& found);
  Values read_values(const RecvPlan& recv, remote::Reader& from, int64_t count, bool is_one);
  Box read_box(const Slot& slot, remote::Reader& from);
  Box copied(const Slot& slot, const std::byte* data, int64_t bytes, const int64_t* shape);

  // match.cpp: which token belongs to which frame
  void match(Edge& edge, Values& values, std::vector<Frame*>& found);
  template <class PathOf, class Each>
  void along(Edge& edge, size_t& first, size_t& end, PathOf&& path_of, Each&& each);
  void add(Edge& edge, Stretch& stretch);
  void shrink(Edge& edge, Stretch& stretch, size_t first, size_t end);
  void link(const Edge& edge, Stretch& stretch);
  void unlink(const Edge& edge, const Stretch& stretch);
  void loosen(Edge& edge);
  void loosen(Edge& edge, Path path, Box value);
  void loosen(Edge& edge, Frame* frame);
  void put(const RecvPlan& recv, Frame* frame, Box value);
  void put(const RecvPlan& recv, std::span<Frame* const> frames, const Values& values, size_t first);
  Box value_of(const Values& values, size_t k) const;

  Wire& wire_;
  Tables& tables_;
  std::unordered_map<int32_t, Edge> edges_;
  PathTable<Loose> loose_;
  PathTable<Stretch*> ends_;  ///< the stretches, by their first and by their last path
  Store<Stretch> stretches_;
  std::vector<Path> paths_;     ///< of the group that is being taken
  std::vector<int64_t> shape_;  ///< of the value
  int64_t armed_ = 0;
};

}  // namespace undertow::agenda
