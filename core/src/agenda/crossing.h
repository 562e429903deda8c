// Tokens that cross between the parts of a placed graph: what frames send, what they wait for, and what has come before
// its frame did. A message is a group of tokens of one edge: their tags as paths, their values as a column.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "agenda/frame.h"
#include "undertow/wire.h"

namespace undertow::agenda {

/// A token that a frame waits for or, without a frame, one that has come too early. It fills a cache line.
struct alignas(64) Token {
  Path path;
  int32_t edge;  ///< -1: the place is free
  Frame* frame;
  Box value;  ///< without data: an order token
};

/// Tokens by edge and path. Paths are hashes, so they say where to look.
class TokenTable {
 public:
  explicit TokenTable(Pool& pool) : pool_(pool) {}
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;
  ~TokenTable() { pool_.drop(block_); }
  size_t size() const { return size_; }
  /// The token, or a new one without frame and value; `is_new` says which.
  Token& find(int32_t edge, Path path, bool& is_new);
  /// There will be so many more: grow at once.
  void reserve(size_t count);
  /// Where many are looked up, memory is asked for some of them ahead: most are in no cache.
  void prefetch(int32_t edge, Path path) const { __builtin_prefetch(&tokens_[home(edge, path)], 1); }
  /// The token is no more. Others may move: references to them end.
  void erase(const Token& token);

 private:
  size_t home(int32_t edge, Path path) const {
    return (path.first + static_cast<uint64_t>(edge) * 0x9E3779B97F4A7C15u) & (tokens_.size() - 1);
  }
  void grow(size_t places);

  Pool& pool_;
  Block* block_ = nullptr;   ///< of the pool: fresh memory costs a fault for each page
  std::span<Token> tokens_;  ///< in it; a power of two
  size_t size_ = 0;
};

class Crossing {
 public:
  Crossing(Wire& wire, const Plan& plan, const Outline& outline, Tables& tables);
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  /// Send a value of each frame. The column of an order token is empty.
  void send(const SendItem& item, std::span<Frame* const> frames, const Slot* slot, const Column& column);
  /// Give each frame its token if it is there. Else it waits for one thing more, and will be among those that `receive`
  /// finds.
  void arm(const RecvPlan& recv, std::span<Frame* const> frames);
  /// Take what has come; waits so long at most if there is nothing. Frames that had waited are appended to `found`.
  void receive(double seconds, std::vector<Frame*>& found);
  void flush() { wire_.flush(); }
  bool is_full() const { return wire_.is_full(); }
  bool is_sent() const { return wire_.is_sent(); }
  /// Does any frame wait for a token?
  bool is_awaited() const { return armed_ > 0; }
  /// All tokens have been taken, or the cut is wrong.
  void check_empty() const;

 private:
  void take(int32_t part, std::span<const std::byte> batch, std::vector<Frame*>& found);
  void put(const RecvPlan& recv, Frame* frame, Box value);

  Wire& wire_;
  Tables& tables_;
  std::unordered_map<int32_t, const RecvPlan*> by_edge_;
  TokenTable tokens_;
  std::vector<Path> paths_;  ///< of the group that is being taken
  int64_t armed_ = 0;
};

}  // namespace undertow::agenda
