// A thread of a run: it takes steps that are ready, fires them, and makes ready what waits for them.
//
// `kIsShared` is false for the only thread of a run whose scheduler is `lifo`: it takes no lock, and counts without
// atomic operations.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "array.h"
#include "copy.h"
#include "failure.h"
#include "heap.h"
#include "memory/store.h"
#include "queue.h"
#include "run/poll.h"
#include "sums.h"
#include "table.h"

namespace undertow::expand {

constexpr int64_t kScalar = 128;  // bytes of a scalar with the padding that kernels may read or write past it

/// What the threads of a run share. Order of locks: none is taken under another, but the heap's.
template <bool kIsShared>
struct Common {
  Common(const Plan& plan, const RunOptions& options, Host& host)
      : plan(plan),
        options(options),
        host(host),
        heap(options.memory),
        table(heap),
        queue(options.scheduler, options.schedule_seed) {}
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;

  const Plan& plan;
  const RunOptions& options;
  Host& host;  ///< the owner's thread alone calls it
  Heap<kIsShared> heap;
  Table<kIsShared> table;
  Stash stash;
  Queue queue;
  Failure failure;
  Copy* main = nullptr;           ///< written before the threads begin
  std::vector<uint64_t> results;  ///< each written by the step that returns it, read when `missing` is 0
  size_t missing = 0;             ///< results that have not been returned; atomic, if threads share
  int64_t frames = 0;             ///< at once; atomic, if threads share

  MutexOf<kIsShared> mutex;  // guards all that follows; what is atomic is read without it
  Store<Entry> entries;
  Store<Lanes> lanes;
  Store<Series> series;
  std::atomic<int64_t> peak_frames = 0;
  std::atomic<int64_t> max_depth = 0;
  std::vector<Label> deepest_tag;
  /// The first copy at the greatest depth or, once that is freed, its nearest live ancestor: each adds its label to
  /// `deepest_tag` when it is freed.
  std::atomic<const Copy*> deepest = nullptr;
  std::exception_ptr stopped;  ///< by a limit, or by the host: that is no failure of the program
  std::vector<Label> stopped_tag;
};

template <bool kIsShared>
class Executor {
 public:
  using Memory = MemoryOf<kIsShared>;

  Executor(Common<kIsShared>& common, bool is_owner);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Make main, with these inputs. By the owner, before any other thread begins.
  void begin(std::span<const View> inputs);
  /// Take part in the run until it is over.
  void run();
  /// The labels of the deepest call, once the run is over.
  void climb_out();
  void count(RunStats& stats) const;

 private:
  struct Task {  // after the program in progress: a program of a copy, or to put together what lanes have returned
    Copy* copy;
    const Program* program;
    Lanes* lanes;
    size_t number;
  };
  static constexpr int64_t kAfterLanes = INT64_MAX;  // index of a place

  // executor.cpp: the loop, and the edges that a firing follows
  template <bool kIsStrict>
  void loop();
  bool take(Ready& next);
  bool is_wanted(const Ready& ready);
  void fail(std::exception_ptr error, std::vector<Label> tag_of_host);
  void stop(std::exception_ptr error);
  void set_off(Copy& copy, const Program& program);
  void up(Copy& copy, int32_t result, Operand value);
  void drain();
  void wake(Copy& copy, int32_t step) {
    add_one<kIsShared>(copy.left);
    push(&copy, copy.made_of->steps.data() + step);
  }
  /// The latest ready step is kept in `hand_`: most never go through the stack.
  void push(void* what, const Step* step) {
    if constexpr (kIsShared)
      if (!is_lifo_) {
        push_ranked(what, step);
        return;
      }
    if (hand_.what != nullptr) stack();
    hand_.what = what;
    hand_.step = step;
  }
  void stack() {
    if (top_ == end_) [[unlikely]]
      grow();
    top_->what = hand_.what;
    top_->step = hand_.step;
    ++top_;
  }
  void push_ranked(void* what, const Step* step);
  void grow();
  void give_away();
  void tick() {
    if ((++ticks_ & 0xfff) == 0) look();
  }
  void look();
  static std::vector<Label> tag(const Copy& copy);
  void climb();

  // open.cpp: making and freeing copies
  Copy* open(const Template& made_of, Copy* parent, const Entering* row, int64_t index, int32_t visits);
  void count_frame(Copy& copy);
  void count_depth(Copy& copy);
  void begin(Copy& copy);
  void load(Copy& copy);
  void save(Copy& copy);
  void read(Copy& copy);
  void check_entry(const Template& made_of, const Entry* entry);
  void finish(Copy* copy);
  void give(const Copy& from, Copy& to, std::span<const Pair> pairs);
  void call(Copy& copy, const Entering& row);
  void again(Copy& copy, const std::vector<Pair>& pairs);
  void map(Copy& copy, const Entering& row);
  void make_lane(Lanes& lanes);
  void gather(Copy& lane, const Result& result, int32_t number, Operand value);
  void put_together(Lanes& lanes, size_t number);
  Entry* make_entry(Copy& copy, const Entering& row);
  void drop_entry(Entry* entry);
  template <class T>
  T* take_from(Store<T>& store) {
    const std::lock_guard lock(common_.mutex);
    return store.take();
  }
  template <class T>
  void give_to(Store<T>& store, T* object) {
    const std::lock_guard lock(common_.mutex);
    store.give(object);
  }

  // sums.cpp: sums over all activations below an entry
  View given(const Entry* entry, int32_t index);
  void collect(Copy& copy, const Step& step);
  void collected(Copy& copy, const Collected& row);
  void collected_rows(Copy& copy, const Collected& row, const Sums* sums, const View& like);
  void make_series(Copy& copy, const Entering& row);
  void hand_up(Copy& copy);
  Sums* merged(Sums* first, Sums* second);
  void add(Sums& to, Sums& more);
  void drop_sums(Sums* sums);

  // operate.cpp: operators that are more than one instruction
  void operate(Copy& copy, const Step& step);
  void ask_host(Copy& copy, const Step& step);
  void flat(Copy& copy, const Step& step);
  void check_finite(const Copy& copy, const Step& step);
  [[noreturn]] void fault(const Copy& copy, const Step& step);
  void look(const Copy& copy, Operand x, size_t place, View& view);
  View view(const Copy& copy, Operand x, size_t place);

  uint64_t cell(const Copy& copy, Operand x) const { return x >= 0 ? copy.slots[x] : constants_[~x]; }
  const ValueType& type(const Template& of, Operand x) const {
    return x >= 0 ? of.types[static_cast<size_t>(x)] : plan_.constant_types[static_cast<size_t>(~x)];
  }

  Common<kIsShared>& common_;
  const Plan& plan_;
  const RunOptions& options_;
  const Edge* const edges_;
  const uint64_t* const constants_;
  const bool is_owner_;
  bool is_lifo_;  ///< is what is made ready kept in a stack?
  std::conditional_t<kIsShared, Magazine, Heap<false>&> memory_;
  Arena<kIsShared> arena_;
  Scratch scratch_;
  Scratch scalar_memory_;
  std::byte* const scalars_;  ///< scalar operands and results of a kernel: aligned, kScalar bytes each
  std::vector<View> inputs_, outputs_;
  std::vector<Shape> shapes_;
  Ready hand_{nullptr, nullptr};
  std::vector<Ready> ready_;  ///< the stack
  Ready *bottom_ = nullptr, *top_ = nullptr, *end_ = nullptr;
  std::vector<Task> tasks_;
  Copy* at_ = nullptr;  ///< whose step is firing
  const Step* step_ = nullptr;
  Place place_;                                 ///< what is done now, if no step fires
  std::vector<const Entering*> known_entries_;  ///< of each template: who made an entry that has all that is read
  std::vector<int64_t> fired_;                  ///< by node
  int64_t activations_ = 0;
  uint64_t ticks_ = 0;
  Poll poll_;  ///< the owner's
};

template <bool kIsShared>
inline void Executor<kIsShared>::set_off(Copy& copy, const Program& program) {
  const Edge* edge = edges_ + program.first;
  for (const Edge* end = edge + program.count; edge != end; ++edge) switch (edge->code) {
      case Edge::Code::Ready: wake(copy, edge->a); break;
      case Edge::Code::Count:
        if (take_one<kIsShared>(copy.counts()[edge->a]) == 0) wake(copy, edge->b);
        break;
      case Edge::Code::Move: copy.slots[edge->b] = cell(copy, edge->a); break;
      case Edge::Code::Share: copy.slots[edge->b] = shared<kIsShared>(cell(copy, edge->a)); break;
      case Edge::Code::Up: up(copy, edge->a, edge->b); break;
    }
}

/// `open` and `begin` are most of the cost of a call: they are in the header so that the loop can inline them. A copy
/// begins with one step left, so that it is not freed by another thread before `begin` is through.
template <bool kIsShared>
inline Copy* Executor<kIsShared>::open(const Template& made_of, Copy* parent, const Entering* row, int64_t index,
                                       int32_t visits) {
  auto* copy = static_cast<Copy*>(arena_.take(made_of.copy_size));
  copy->made_of = &made_of;
  copy->parent = parent;
  copy->row = row;
  copy->lanes = nullptr;
  copy->index = index;
  copy->left = 1;
  copy->visits = visits;
  copy->entry = nullptr;
  copy->depth = 0;
  copy->ahead = 0;
  if (parent != nullptr) {
    copy->entry = parent->entry;
    copy->depth = parent->depth + (made_of.is_function ? 1 : 0);
    if constexpr (kIsShared) copy->ahead = parent->ahead + row->ahead;
    if (row->has_path) copy->path = parent->path.below(row->site, index);
    add_one<kIsShared>(parent->left);
  } else {
    copy->path = {};
  }
  const int32_t references = made_of.layout.arrays + made_of.layout.entries;
  for (int32_t k = 0; k < references; ++k) copy->slots[k] = 0;
  const uint32_t* const from = made_of.counts.data();
  uint32_t* const to = copy->counts();
  const size_t counts = made_of.counts.size();
  for (size_t k = 0; k < counts; k += 4) std::memcpy(to + k, from + k, 16);
  for (int32_t k = 0; k < made_of.parts; ++k) copy->parts()[k] = 0;
  if (made_of.phase == 0) count_frame(*copy);
  return copy;
}

template <bool kIsShared>
inline void Executor<kIsShared>::count_frame(Copy& copy) {
  int64_t frames;
  if constexpr (kIsShared)
    frames = __atomic_add_fetch(&common_.frames, 1, __ATOMIC_RELAXED);
  else
    frames = ++common_.frames;
  if (frames > common_.peak_frames.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(common_.mutex);
    if (frames > common_.peak_frames.load(std::memory_order_relaxed))
      common_.peak_frames.store(frames, std::memory_order_relaxed);
    if (frames > options_.frames) throw OverLimit{OverLimit::Kind::Frames};
  }
  if (!copy.made_of->is_function) return;
  ++activations_;
  if (copy.depth > common_.max_depth.load(std::memory_order_relaxed)) count_depth(copy);
}

/// All arguments have arrived: steps that wait for nothing else become ready.
template <bool kIsShared>
inline void Executor<kIsShared>::begin(Copy& copy) {
  const Template& made_of = *copy.made_of;
  if (made_of.phase > 0 && made_of.record.all > 0) load(copy);
  if (!made_of.reads.empty()) read(copy);
  set_off(copy, made_of.start);
  if (!tasks_.empty()) drain();
  if (take_one<kIsShared>(copy.left) == 0) finish(&copy);
}

}  // namespace undertow::expand
