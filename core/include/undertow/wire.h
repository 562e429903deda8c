// A wire: one part's connections to the other parts of a placed graph, by which batches of bytes go to and fro.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace undertow {

namespace remote {
class Writer;  // remote/bytes.h
}

/// Stream sockets to other parts. It knows nothing of tokens: what is appended to the batch of a part arrives there
/// whole and in order, in some batch. Used by one thread at a time; lives over many runs. Nothing but `take` waits.
///
/// Flow is bounded by credit: a part is sent `window` bytes and a quarter more at most (or one batch that is larger)
/// before it has taken them. Who has no credit for a part keeps its batches, and goes on receiving.
class Wire {
 public:
  struct Stopped {};  ///< thrown by `take` when `stop` is readable

  /// Thrown by `take` when a part has closed its end, or the connection has failed; after all that had come from it.
  struct Lost {
    int32_t part;
  };

  /// All so far, to and from one part. What is sent counts from the moment it may begin to go (`flush`), and what is
  /// taken before it is handed on; so when both ends are at rest, one's `sent` is the other's `taken`.
  struct Counts {
    int64_t sent = 0, sent_bytes = 0, taken = 0, taken_bytes = 0;
  };

  /// Given a part, and a batch that has come from it: the bytes are there until it returns. It may send.
  using Each = std::function<void(int32_t part, std::span<const std::byte> batch)>;

  static constexpr int64_t kWindow = int64_t{16} << 20;
  static constexpr int64_t kBatch = 1 << 16;  ///< bytes: a batch that is as large as this goes by itself
  static constexpr int64_t kLent = 1 << 16;   ///< bytes: so many are better lent than copied

  /// Bytes that are lent stay where they are, unchanged, as long as it exists.
  using Keep = std::shared_ptr<void>;

  /// `sockets`, by part (-1: none), belong to it from now on. `stop` (-1: none) does not. The window must be the same
  /// at both ends.
  explicit Wire(const std::vector<int>& sockets, int stop = -1, int64_t window = kWindow);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  /// The batch that is being made for a part. The reference stays valid.
  remote::Writer& to(int32_t part);
  /// Something whole was appended to it: if the batch is large enough, it begins to go. Below `kBatch` it does nothing,
  /// so whoever appends small things may look at the size first.
  void added(int32_t part);
  /// The batch of a part begins to go, and ends with these bytes, straight from where they are.
  void lend(int32_t part, std::span<const std::byte> bytes, Keep keep);
  /// What was lent is about to end. If some of it has not gone, this wire is of no use any more.
  void give_up();
  /// All batches begin to go.
  void flush();
  /// Is so much on its way to some part that no more should be made for now?
  bool is_full() const;
  /// Is `stop` readable? `take` throws then; who works for long without it asks.
  bool is_stopped() const;
  /// Has all gone to the system? What has not goes while `take` is called, and only then.
  bool is_sent() const;

  /// Hand on what has come: whole batches, for each part in order. Waits so many seconds at most until something has,
  /// or until it is full no more, if it was, or until all has been sent, if it had not; a signal ends that, too. Sends
  /// what waits to be sent. Whether something has come. Throws Stopped, Lost, and BadMessage.
  bool take(double seconds, const Each& each);

  /// How many parts there are, connected or not.
  int32_t parts() const;
  bool has(int32_t part) const;
  Counts counts(int32_t part) const;

 private:
  struct Peer;

  bool round(int milliseconds, const Each& each, bool& was_interrupted);

  std::vector<std::unique_ptr<Peer>> peers_;  // by part; null: none
  int stop_;
  int64_t window_;
};

}  // namespace undertow
