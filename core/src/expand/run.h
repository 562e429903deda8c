// One run: copies, the ready stack, and the loop that fires steps.
#pragma once

#include <span>
#include <vector>

#include "array.h"
#include "copy.h"
#include "memory/store.h"
#include "run/poll.h"

namespace undertow::expand {

constexpr int64_t kScalar = 128;  // bytes of a scalar with the padding that kernels may read or write past it

class Run {
 public:
  Run(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  std::vector<Value> run(std::span<const View> inputs);

 private:
  struct Ready {
    void* what;  ///< a copy; or lanes, if there is no step
    const Step* step;
  };
  struct Task {  // a program to run after the one in progress
    Copy* copy;
    const Program* program;
  };
  // run.cpp: the loop, and the edges that a firing follows
  template <bool kIsStrict>
  void loop();
  void set_off(Copy& copy, const Program& program);
  void up(Copy& copy, int32_t result, Operand value);
  void drain();
  void wake(Copy& copy, int32_t step) {
    ++copy.left;
    push(&copy, copy.made_of->steps.data() + step);
  }
  /// The latest ready step is kept in `hand_`: most never go through the stack.
  void push(void* what, const Step* step) {
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
  void grow();
  void tick() {
    if ((++ticks_ & 0xfff) == 0) poll_.look();
  }
  static std::vector<Label> tag(const Copy& copy);
  void climb();

  // open.cpp: making and freeing copies
  Copy* open(const Template& made_of, Copy* parent, const Entering* row, int64_t index, int32_t visits);
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

  // operate.cpp: operators that are more than one instruction
  void operate(Copy& copy, const Step& step);
  void ask_host(Copy& copy, const Step& step);
  void flat(Copy& copy, const Step& step);
  View given(const Entry* entry, int32_t index);
  void collect(Copy& copy, const Collect& row);
  void collected(Copy& copy, const Collected& row);
  void collected_rows(Copy& copy, const Collected& row, Sum& sum, const View& like);
  void check_finite(const Copy& copy, const Step& step);
  [[noreturn]] void fault(const Copy& copy, const Step& step);
  void look(const Copy& copy, Operand x, size_t place, View& view);
  View view(const Copy& copy, Operand x, size_t place);

  uint64_t cell(const Copy& copy, Operand x) const { return x >= 0 ? copy.slots[x] : constants_[~x]; }
  const ValueType& type(const Template& of, Operand x) const {
    return x >= 0 ? of.types[static_cast<size_t>(x)] : plan_.constant_types[static_cast<size_t>(~x)];
  }

  const Plan& plan_;
  const RunOptions& options_;
  Host& host_;
  RunStats& stats_;
  const Edge* edges_;
  const uint64_t* constants_;
  Pool pool_;
  Arena arena_;
  Table table_;
  Scratch scratch_;
  Scratch scalar_memory_;
  std::byte* scalars_;  ///< scalar operands and results of a kernel: aligned, kScalar bytes each
  std::vector<View> inputs_, outputs_;
  std::vector<Shape> shapes_;
  Ready hand_{nullptr, nullptr};
  std::vector<Ready> ready_;  ///< the stack
  Ready *top_ = nullptr, *end_ = nullptr;
  std::vector<Task> tasks_;
  Copy* main_ = nullptr;
  Copy* at_ = nullptr;  ///< whose step is firing
  const Step* step_ = nullptr;
  /// The first copy at the greatest depth or, once that is freed, its nearest live ancestor: each adds its label to
  /// `stats_.deepest` when it is freed.
  Copy* deepest_ = nullptr;
  std::vector<const Entering*> known_entries_;  ///< of each template: who made an entry that has all that is read
  Store<Entry> entries_;
  Store<Lanes> lanes_;
  std::vector<uint64_t> results_;
  size_t missing_ = 0;
  int64_t frames_ = 0;
  uint64_t ticks_ = 0;
  Poll poll_;
};

inline void Run::set_off(Copy& copy, const Program& program) {
  const Edge* edge = edges_ + program.first;
  for (const Edge* end = edge + program.count; edge != end; ++edge) switch (edge->code) {
      case Edge::Code::Ready: wake(copy, edge->a); break;
      case Edge::Code::Count:
        if (--copy.counts()[edge->a] == 0) wake(copy, edge->b);
        break;
      case Edge::Code::Move: copy.slots[edge->b] = cell(copy, edge->a); break;
      case Edge::Code::Share: copy.slots[edge->b] = shared(cell(copy, edge->a)); break;
      case Edge::Code::Up: up(copy, edge->a, edge->b); break;
    }
}

/// `open` and `begin` are most of the cost of a call: they are in the header so that the loop can inline them.
inline Copy* Run::open(const Template& made_of, Copy* parent, const Entering* row, int64_t index, int32_t visits) {
  auto* copy = static_cast<Copy*>(arena_.take(made_of.copy_size));
  copy->made_of = &made_of;
  copy->parent = parent;
  copy->row = row;
  copy->lanes = nullptr;
  copy->index = index;
  copy->left = 0;
  copy->visits = visits;
  copy->entry = nullptr;
  copy->depth = 0;
  if (parent != nullptr) {
    copy->entry = parent->entry;
    copy->depth = parent->depth + (made_of.is_function ? 1 : 0);
    if (row->has_path) copy->path = parent->path.below(row->site, index);
    ++parent->left;
  } else {
    copy->path = {};
  }
  const int32_t references = made_of.layout.arrays + made_of.layout.entries;
  for (int32_t k = 0; k < references; ++k) copy->slots[k] = 0;
  const uint32_t* const from = made_of.counts.data();
  uint32_t* const to = copy->counts();
  const size_t counts = made_of.counts.size();
  for (size_t k = 0; k < counts; k += 4) std::memcpy(to + k, from + k, 16);
  if (made_of.phase == 0) {
    if (++frames_ > stats_.peak_frames) {
      stats_.peak_frames = frames_;
      if (frames_ > options_.frames) throw OverLimit{OverLimit::Kind::Frames};
    }
    if (made_of.is_function) {
      ++stats_.activations;
      if (copy->depth > stats_.max_depth) {
        options_.check_depth(copy->depth, pool_.live());
        stats_.max_depth = copy->depth;
        stats_.deepest.clear();
        deepest_ = copy;
      }
    }
  }
  return copy;
}

/// All arguments have arrived: steps that wait for nothing else become ready.
inline void Run::begin(Copy& copy) {
  const Template& made_of = *copy.made_of;
  if (made_of.phase > 0 && made_of.record.all > 0) load(copy);
  if (!made_of.reads.empty()) read(copy);
  set_off(copy, made_of.start);
  if (!tasks_.empty()) drain();
  if (copy.left == 0) finish(&copy);
}

}  // namespace undertow::expand
