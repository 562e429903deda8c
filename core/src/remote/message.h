// Columns, counts and stops in messages.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "memory/table.h"
#include "remote/bytes.h"
#include "undertow/run.h"

namespace undertow::remote {

constexpr uint32_t kVersion = 0x756e6401;  // of messages; both ends run the same release

/// Values that many tasks share: each is sent to a worker once, and messages name it. They stay as they are, since a
/// reference is kept until the run ends.
class Publisher {
 public:
  Publisher(Link& link, Pool& pool) : link_(link), pool_(pool) {}
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher() {
    for (const Known& known : known_) pool_.drop(known.block);
  }

  /// The place of a value among those that the current message refers to; -1: it is not worth that.
  int32_t place_of(Block* block, const std::byte* data, int64_t bytes, bool is_shared);
  /// What the current message refers to. The next one begins.
  std::vector<int64_t> used() { return std::exchange(used_, {}); }

 private:
  struct Known {
    Block* block;
    const std::byte* data;
    int64_t bytes, number;
  };
  Link& link_;
  Pool& pool_;
  std::vector<Known> known_;
  std::vector<int64_t> used_;
};

/// Memory for values that have come in a message: aligned and padded, as kernels want it.
class Memory {
 public:
  std::byte* take(int64_t bytes);
  Box* boxes(int64_t count);

 private:
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<Box[]>> boxes_;
  std::byte* at_ = nullptr;
  int64_t left_ = 0;
};

/// What a reader needs besides the message.
struct Arrived {
  std::span<const std::span<const std::byte>> shared;  ///< published values that it refers to
  Memory& memory;
  Tables& tables;
};

/// Some lanes of a column; one without data is absent. Without a publisher, all goes into the message.
void put_column(Writer& to, const Slot& slot, const Column& column, int64_t lanes, Publisher* publisher);
/// A column of borrowed values.
Column get_column(Reader& from, const Slot& slot, int64_t lanes, const Arrived& arrived);

/// The bytes of a value's shape and of itself, without those that would be published.
int64_t bytes_of(const Slot& slot, const Column& column, int64_t lanes);

void put_labels(Writer& to, const std::vector<Label>& labels);
std::vector<Label> get_labels(Reader& from);

void put_stop(Writer& to, const Stop& stop);
Stop get_stop(Reader& from, const Plan& plan);

/// Without the deepest tag.
void put_counts(Writer& to, const RunStats& stats);
void get_counts(Reader& from, RunStats& stats, const Plan& plan);

}  // namespace undertow::remote
