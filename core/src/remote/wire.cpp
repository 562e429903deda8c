// A wire: frames over stream sockets that do not block, with credit.
//
// A frame is a head of two numbers (kind and length; credit), then as many bytes. Credit is given back in steps of a
// quarter window, or with whatever goes that way. So what has been taken and not been given back is less than a
// quarter, and who has less than that on its way may always send one batch more, however large: nobody waits for ever.
#include "undertow/wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <string>

#include "remote/bytes.h"
#include "threads/spin.h"

namespace undertow {
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kFlags = MSG_NOSIGNAL;
#else
constexpr int kFlags = 0;
#endif

constexpr uint64_t kBatchKind = 0xb5, kCreditKind = 0xc5;
constexpr int kKindShift = 56;
constexpr uint64_t kLongest = uint64_t{1} << 40;  // bytes of a batch
// What is read at once, unless a batch is larger. 64 rows of 4 KiB and their tags fit: else each would take two reads,
// of which the second wakes a process for a few bytes.
constexpr size_t kBuffer = 5 << 16;
constexpr size_t kKept = 1 << 24;  // bytes: larger memory is not kept between batches, nor more of it
constexpr size_t kSpares = 16;
constexpr int64_t kUnsent = 1 << 20;    // bytes that wait for a socket: more would leave the cache before they go
constexpr int kSocketBuffer = 1 << 18;  // asked for; what a machine allows is usually less
constexpr size_t kAtOnce = 16;          // frames in one call of the system

struct Head {
  uint64_t kind_and_length;
  uint64_t credit;

  uint64_t kind() const { return kind_and_length >> kKindShift; }
  uint64_t length() const { return kind_and_length & ((uint64_t{1} << kKindShift) - 1); }
};
static_assert(sizeof(Head) == 16);

/// Memory that grows, whose new bytes nobody has written. Large blocks grow without being copied.
class Raw {
 public:
  Raw() = default;
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  ~Raw() { std::free(data_); }

  std::byte* data() { return data_; }
  size_t size() const { return size_; }
  void grow(size_t size) {
    if (size <= size_) return;
    auto* data = static_cast<std::byte*>(std::realloc(data_, size));
    if (data == nullptr) throw std::bad_alloc();
    data_ = data;
    size_ = size;
  }
  void drop() {
    std::free(std::exchange(data_, nullptr));
    size_ = 0;
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

struct Wire::Peer {
  Peer(int32_t number, int descriptor, int64_t most) : part(number), socket(descriptor), window(most) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // of TCP alone; elsewhere it does nothing
#ifdef SO_NOSIGPIPE
    setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { close(socket); }

  /// Memory, of which the first bytes are a batch; and what is lent, which follows them.
  struct Batch {
    std::string memory;
    int64_t size = 0;  ///< of all
    std::span<const std::byte> lent{};
    Keep keep{};

    size_t own() const { return z(size) - lent.size(); }
  };
  struct Frame {
    Head head;
    Batch body;

    size_t size() const { return sizeof head + z(body.size); }
  };

  int64_t quarter() const { return std::max<int64_t>(window / 4, 1); }
  /// Bytes that no socket has taken.
  int64_t unsent() const { return waiting_bytes + going_bytes - static_cast<int64_t>(written); }
  bool is_due() const { return owed >= quarter(); }
  bool may_go(const Batch& next) const { return outstanding < quarter() || outstanding + next.size <= window; }
  bool has_to_write() const {
    return !is_broken && (!going.empty() || is_due() || (!waiting.empty() && may_go(waiting.front())));
  }

  void push(std::span<const std::byte> lent = {}, Keep keep = {}) {
    const int64_t size = batch.size() + static_cast<int64_t>(lent.size());
    if (size == 0) return;
    ++counts.sent;
    counts.sent_bytes += size;
    waiting_bytes += size;
    std::string memory;
    if (!spares.empty()) {
      memory = std::move(spares.back());
      spares.pop_back();
      spare_bytes -= memory.size();
    }
    waiting.push_back({batch.exchange(std::move(memory)), size, lent, std::move(keep)});
    write();
  }

  void begin(uint64_t kind, Batch body) {
    going_bytes += static_cast<int64_t>(sizeof(Head)) + body.size;
    const Head head{kind << kKindShift | static_cast<uint64_t>(body.size),
                    static_cast<uint64_t>(std::exchange(owed, 0))};
    going.push_back({head, std::move(body)});
  }

  /// Send what may go, as far as the socket takes it now.
  void write() {
    while (!is_broken && !is_blocked) {
      while (going.size() < kAtOnce && !waiting.empty() && may_go(waiting.front())) {
        const int64_t size = waiting.front().size;
        outstanding += size;
        waiting_bytes -= size;
        begin(kBatchKind, std::move(waiting.front()));
        waiting.pop_front();
      }
      if (is_due()) begin(kCreditKind, {});
      if (going.empty()) return;
      std::array<iovec, 3 * kAtOnce + 3> pieces;
      int count = 0;
      size_t skip = written;
      for (Frame& frame : going) {
        for (const auto& [at, size] : {std::pair<const void*, size_t>{&frame.head, sizeof frame.head},
                                       {frame.body.memory.data(), frame.body.own()},
                                       {frame.body.lent.data(), frame.body.lent.size()}}) {
          if (skip >= size) {
            skip -= size;
          } else {
            pieces[z(count++)] = {const_cast<char*>(static_cast<const char*>(at)) + skip, size - skip};
            skip = 0;
          }
        }
        if (z(count) + 3 > pieces.size()) break;
      }
      msghdr message{};
      message.msg_iov = pieces.data();
      message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
      const ssize_t sent = sendmsg(socket, &message, kFlags);
      if (sent >= 0)
        sent_so_far(z(sent));
      else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        is_blocked = true;
      else if (errno != EINTR)
        is_broken = true;
    }
  }

  void sent_so_far(size_t bytes) {
    written += bytes;
    while (!going.empty() && written >= going.front().size()) {
      written -= going.front().size();
      going_bytes -= static_cast<int64_t>(going.front().size());
      std::string& memory = going.front().body.memory;
      if (!memory.empty() && spares.size() < kSpares && spare_bytes + memory.size() <= kKept) {
        spare_bytes += memory.size();
        spares.push_back(std::move(memory));
      }
      going.pop_front();
    }
  }

  /// What is lent goes nowhere any more, so neither does anything else.
  void give_up() {
    const auto lends = [](const Batch& body) { return !body.lent.empty(); };
    if (std::ranges::none_of(waiting, lends) &&
        std::ranges::none_of(going, [&](const Frame& frame) { return lends(frame.body); }))
      return;
    is_broken = true;
    waiting.clear();
    going.clear();
  }

  /// Read once, and hand on what is complete. Whether something was. After the rest of a long batch, the buffer takes
  /// what follows it.
  bool read(const Each& each) {
    buffer.grow(kBuffer);
    if (need > 0 && long_end == long_batch.size())
      long_batch.grow(std::min(need, 2 * long_batch.size()));  // a length is believed as far as bytes come
    const size_t room = need == 0 ? 0 : std::min(need, long_batch.size()) - long_end;
    std::array<iovec, 2> places;
    size_t count = 0;
    if (need > 0) places[count++] = {long_batch.data() + long_end, room};
    if (long_end + room == need) places[count++] = {buffer.data() + end, kBuffer - end};
    msghdr message{};
    message.msg_iov = places.data();
    message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
    const ssize_t got = recvmsg(socket, &message, 0);
    if (got <= 0) {
      is_lost = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
      return false;
    }
    bool came = false;
    const size_t of_long = std::min(z(got), room);
    end += z(got) - of_long;
    long_end += of_long;
    if (need > 0 && long_end == need) {
      came = true;
      long_end = 0;
      const size_t length = std::exchange(need, 0);
      hand_on(each, {long_batch.data(), length});
      if (long_batch.size() > kKept) long_batch.drop();
    }
    if (need == 0) came |= parse(each);
    if (has_to_write()) write();
    return came;
  }

  bool parse(const Each& each) {
    bool came = false;
    while (end - first >= sizeof(Head)) {
      Head head;
      std::memcpy(&head, buffer.data() + first, sizeof head);
      const size_t length = head.length(), there = end - first - sizeof head;
      if (head.kind() == kBatchKind ? length == 0 || length > kLongest
                                    : head.kind() != kCreditKind || length != 0 || head.credit == 0)
        refuse("a head that is none");
      if (head.credit > static_cast<uint64_t>(outstanding)) refuse("credit for what was never sent");
      const bool is_long = sizeof head + length > kBuffer;
      if (there < length && !is_long) break;
      outstanding -= static_cast<int64_t>(head.credit);
      const std::byte* const body = buffer.data() + first + sizeof head;
      if (there < length) {
        long_batch.grow(std::max(there, std::min(length, 4 * kBuffer)));
        std::memcpy(long_batch.data(), body, there);
        long_end = there;
        need = length;
        first = end = 0;
        return came;
      }
      first += sizeof head + length;
      if (length == 0) continue;
      came = true;
      hand_on(each, {body, length});
    }
    if (first == end) {
      first = end = 0;
    } else if (first > 0) {
      std::memmove(buffer.data(), buffer.data() + first, end - first);
      end -= std::exchange(first, 0);
    }
    return came;
  }

  [[noreturn]] void refuse(const char* why) {
    wrong = why;
    throw BadMessage("part " + std::to_string(part) + " has sent what makes no sense: " + why);
  }

  void hand_on(const Each& each, std::span<const std::byte> batch_taken) {
    const auto size = static_cast<int64_t>(batch_taken.size());
    ++counts.taken;
    counts.taken_bytes += size;
    owed += size;
    each(part, batch_taken);
  }

  const int32_t part;
  const int socket;
  const int64_t window;
  Counts counts;

  remote::Writer batch;       // being made
  std::deque<Batch> waiting;  // without credit, or behind others
  std::deque<Frame> going;
  std::vector<std::string> spares;  // memory for batches
  size_t spare_bytes = 0;           // of them
  size_t written = 0;               // of the first that goes
  int64_t waiting_bytes = 0, going_bytes = 0;
  int64_t outstanding = 0;      // bytes of batches that go or have gone, and for which no credit has come back
  int64_t owed = 0;             // bytes that were taken, and for which no credit has been given back
  bool is_blocked = false;      // the socket takes no more for now
  bool is_broken = false;       // and never will
  bool is_lost = false;         // nothing comes any more
  const char* wrong = nullptr;  // with what it has sent: nothing else is read

  Raw buffer;
  size_t first = 0, end = 0;  // what is there of it
  Raw long_batch;             // one that the buffer has no room for
  size_t need = 0, long_end = 0;
};

bool Wire::is_stopped() const {
  pollfd look{stop_, POLLIN, 0};
  return stop_ >= 0 && poll(&look, 1, 0) > 0;
}

Wire::Wire(const std::vector<int>& sockets, int stop, int64_t window) : stop_(stop), window_(window) {
  for (int socket : sockets) peers_.push_back(socket < 0 ? nullptr : std::make_unique<Peer>(parts(), socket, window));
}

Wire::~Wire() = default;

int32_t Wire::parts() const { return static_cast<int32_t>(peers_.size()); }
bool Wire::has(int32_t part) const { return part >= 0 && part < parts() && peers_[z(part)] != nullptr; }
Wire::Counts Wire::counts(int32_t part) const { return has(part) ? peers_[z(part)]->counts : Counts{}; }

remote::Writer& Wire::to(int32_t part) { return peers_[z(part)]->batch; }

void Wire::added(int32_t part) {
  Peer& peer = *peers_[z(part)];
  if (peer.batch.size() >= kBatch) peer.push();
}

void Wire::lend(int32_t part, std::span<const std::byte> bytes, Keep keep) {
  peers_[z(part)]->push(bytes, std::move(keep));
}

void Wire::give_up() {
  for (auto& peer : peers_)
    if (peer) peer->give_up();
}

void Wire::flush() {
  for (auto& peer : peers_)
    if (peer) peer->push();
}

bool Wire::is_full() const {
  return std::ranges::any_of(peers_, [this](const auto& peer) {
    return peer &&
           (peer->outstanding + peer->waiting_bytes + peer->batch.size() >= window_ || peer->unsent() >= kUnsent);
  });
}

bool Wire::is_sent() const {
  return std::ranges::all_of(peers_, [](const auto& peer) {
    return !peer || (peer->batch.size() == 0 && peer->waiting.empty() && peer->going.empty());
  });
}

bool Wire::take(double seconds, const Each& each) {
  using Clock = std::chrono::steady_clock;
  const bool waits = seconds > 0, is_endless = seconds > 1e6;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(waits && !is_endless ? seconds : 0));
  const bool was_full = is_full(), was_sent = is_sent();
  const auto left = [&]() -> int {
    if (is_endless) return -1;
    const double found = std::chrono::duration<double, std::milli>(end - Clock::now()).count();
    return static_cast<int>(std::ceil(std::clamp(found, 0.0, 1e9)));
  };
  // What is written in the first round may be all that is waited for.
  for (int milliseconds = waits && !was_full && was_sent ? left() : 0;;) {
    bool was_interrupted = false;
    if (round(milliseconds, each, was_interrupted)) return true;
    if (!waits || was_interrupted || (was_full && !is_full()) || (!was_sent && is_sent())) return false;
    milliseconds = left();
    if (milliseconds == 0) return false;
  }
}

bool Wire::round(int milliseconds, const Each& each, bool& was_interrupted) {
  std::vector<pollfd> looks{{stop_, POLLIN, 0}};
  for (const auto& peer : peers_) {
    if (!peer) continue;
    if (peer->is_lost) throw Lost{peer->part};
    if (peer->wrong != nullptr) peer->refuse(peer->wrong);
    if (peer->has_to_write() && !peer->is_blocked) peer->write();
    const bool writes = peer->is_blocked && peer->has_to_write();
    looks.push_back({peer->socket, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (poll(looks.data(), static_cast<nfds_t>(looks.size()), milliseconds) < 0) {
    was_interrupted = true;  // EINTR; what else there is goes by, too
    return false;
  }
  if (looks[0].revents != 0) throw Stopped{};
  bool came = false;
  size_t place = 0;
  for (const auto& peer : peers_) {
    if (!peer) continue;
    const short seen = looks[++place].revents;
    if ((seen & (POLLOUT | POLLERR | POLLHUP)) != 0) {
      peer->is_blocked = false;
      if (peer->has_to_write()) peer->write();
    }
    if ((seen & (POLLIN | POLLERR | POLLHUP | POLLNVAL)) != 0)
      came |= peer->read(each);
    else if (peer->is_broken)
      peer->is_lost = true;
  }
  if (!came)
    for (const auto& peer : peers_)
      if (peer && peer->is_lost) throw Lost{peer->part};
  return came;
}

}  // namespace undertow
