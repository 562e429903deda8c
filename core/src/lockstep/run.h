// The lockstep schedule: waves of lanes go through the stages of their regions together.
//
// A fiber is one table on its way through the program of one phase. All fibers of a wave run until each of them waits
// for calls; then all calls into one group of functions, whatever table and site they come from, become one child wave,
// chunk by chunk if that is wide. The stack of waves is a list on the heap: depth is the user's.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "clock.h"
#include "entries.h"
#include "guard.h"
#include "late.h"
#include "narrow/run.h"
#include "operate.h"
#include "poll.h"
#include "table.h"
#include "undertow/run.h"
#include "undertow/size.h"

namespace undertow {
namespace lockstep {

struct Fiber {
  enum class Kind : uint8_t { Root, Branch, Loop, Map };
  Kind kind;
  Table* table;
  const Program* program;
  int32_t phase;
  size_t stage = 0;
  int64_t pending = 0;      ///< what it entered and has not come back
  Fiber* parent = nullptr;  ///< waits for it
  const LoopItem* loop = nullptr;
  bool is_past = false;  ///< the straight run of its stage has been run for it, with that of others
};

}  // namespace lockstep

/// A call or resume that a fiber waits for.
struct Request {
  lockstep::Fiber* fiber;
  const CallItem* item;
  Table* table;
  int64_t left;  ///< lanes that have not come back
};

namespace lockstep {

struct Group {
  int32_t group;
  int32_t visits;
  int32_t asks;
  std::vector<Request*> requests;
  size_t request = 0;        ///< the next lanes to be called are those of this request
  int64_t lane = 0;          ///< from this one on
  int64_t left = INT64_MAX;  ///< so many, at most
  int64_t done = 0;          ///< lanes that were called
  int64_t calls_before = 0;  ///< the first of them was
};

struct Part {  // lanes of a request
  Request* request;
  int64_t from, count;
};

struct Wave {
  Chunk* chunk = nullptr;
  int32_t phase = 0;
  std::vector<Fiber*> ready;
  std::vector<Request*> calls;
  std::vector<Chunk*> resumed;  ///< all their lanes have asked for the next phase
  int64_t waiting = 0;          ///< resumes that have not come back
  std::vector<Group> groups;
};

/// What waves need besides tables.
struct WaveSpace {
  Store<Chunk> chunks;
  Store<Piece> pieces;
  Store<Fiber> fibers;
  Store<Request> requests;
  std::deque<Wave> waves;
  std::vector<Part> parts;
  std::vector<int32_t> index[2];
  std::vector<Item> collects;

  bool is_small() const {
    return std::max({chunks.size(), pieces.size(), fibers.size(), requests.size(), waves.size()}) <
           Idle<WaveSpace>::kFew;
  }
};

class Lockstep {
 public:
  Lockstep(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats,
           Poll::Clock::time_point began = Poll::Clock::now());
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  std::vector<Value> run(std::span<const View> inputs);

 private:
  /// Do something; what it throws knows where it happened.
  template <class Work>
  void guarded(Work&& work) {
    undertow::guarded(work, [this](Stop& stop) { locate(stop); }, [this] { return where(); }, stats_.stopped);
  }

  static int32_t visits_of(const Table& table, const std::vector<int32_t>& visits) {
    return visits[z(table.visits - 1)];
  }

  /// Is a chunk one that a worker was given, its callers belonging to another thread?
  bool is_outermost(const Chunk* chunk) const { return is_worker_ && chunk->depth == outer_depth_; }

  bool is_late(LateKind kind) const { return late_lanes_[z(kind)] > 0; }

  // run.cpp: beginning and end of a run, and where it is
  std::vector<Label> tag(const Table& table, int64_t lane) const;
  void locate(Stop& stop);
  std::vector<Label> where() const;
  void start(std::span<const View> inputs);
  std::vector<Value> results();
  void climb(const Table* at, int64_t lane);
  void climb();
  void finish_stats();
  void tell(const Table& table, int32_t phase);

  // waves.cpp: waves: calls into one group of functions become chunks of lanes; what runs next
  Wave& begin_wave(Chunk* chunk, int32_t phase);
  void step();
  void make_groups(Wave& wave);
  static size_t siblings_in(std::span<const Part> parts);
  Table* make_root(Chunk* chunk, std::span<const Part> parts, int64_t lanes);
  void start_chunk(Wave& wave);
  int64_t width_now(const Group& group) const;
  int64_t lane_bytes(const Group& group) const;
  void start_resumed(Wave& wave);
  void finish_wave();
  void end_chunk(Chunk* chunk);
  bool ends_entry(const Chunk& chunk) const;
  void resume(Wave& wave, Fiber* self, const CallItem& item);

  // calls.cpp: what calls hand over and bring back, and the entries that they make
  void hand_over(Table& table, int32_t slot, std::span<Piece* const> pieces, size_t argument);
  void give_entries(Table& table, std::span<Piece* const> pieces);
  void make_entries(Table& table, const CallItem& item);
  void inherit(Table& table, const Table& from, const int32_t* index);
  void deliver(const Piece& piece, int32_t phase);
  void read(Table& table, const ReadItem& item);
  void collect(Table& table, const CollectItem& item);
  void collected(Table& table, const CollectedItem& item);

  // threads.cpp: chunks of one group on several threads, each with tables of its own
  bool goes_parallel(const Group& group) const;
  void run_parallel(Wave& wave);
  void run_task(const Lockstep& owner, Chunk* chunk, const Group& task);

  // narrow.cpp: calls of few lanes, one lane after the other
  bool goes_narrow(const Group& group) const;
  void run_narrow(Wave& wave);
  void run_lane(Table& table, int64_t lane, const CallItem& item, NarrowFrame* frame);

  // fibers.cpp: fibers: a table on its way through the stages of its program
  Fiber* fiber(Fiber::Kind kind, Table* table, int32_t phase, Fiber* parent);
  Request* request(Fiber* waiter, const CallItem& item);
  void come_back(Wave& wave, Fiber* waiter);
  void advance(Wave& wave, Fiber* self);
  void over(Wave& wave, Fiber* self);
  void straight(Table& table, const Item& item);
  void straight(Table& table, std::span<const Item> items);
  void enter(Wave& wave, Fiber* self, const Item& item);
  void complete(const Fiber& self);

  // late.cpp: steps that wait for those of other tables
  bool put_off(Fiber* self, const Stage& stage);
  void run_late(LateKind kind);
  void run_together(const Late& late, Waiting& waiting);

  // branches.cpp: branches: lanes are divided, and their results put together again
  void enter_branch(Wave& wave, Fiber* self, const BranchItem& item);
  void divide(Table& table, const BranchItem& item, Sides& sides);
  void leave_branch(Table& table, const BranchItem& item);

  // loops.cpp: loops: lanes go round until they leave
  void enter_loop(Wave& wave, Fiber* self, const LoopItem& item);
  bool go_round(Wave& wave, Fiber* self);

  // maps.cpp: maps: the elements of arrays as lanes, and the results of lanes as arrays
  const int64_t* shape_of(const Slot& slot, const Column& column, int64_t lane);
  void enter_map(Wave& wave, Fiber* self, const MapItem& item);
  void spread(Table& table, Table& inner, const MapItem& item, const Transfer& transfer);
  void leave_map(Table& table, const MapItem& item);
  void stack(Table& table, Table& inner, const LoopItem::Exit& result);
  [[noreturn]] void unequal(Table& table, int32_t site, int64_t lane, const Slot& slot, const Column& column,
                            int64_t first, int64_t last);

  const Plan& plan_;
  const RunOptions& options_;
  Host& host_;
  RunStats& stats_;
  Tables tables_;
  Operate operate_;
  Narrow narrow_;
  StepClock clock_;
  bool is_narrow_ = false;
  bool is_worker_ = false;
  int64_t outer_depth_ = 0;  ///< of a worker: that of the chunks that it was given
  Table* main_ = nullptr;
  const Table* at_ = nullptr;  ///< where the run is, for tags
  /// The first lane at the greatest depth so far, or one that it stands below: where its tag goes on.
  struct Deepest {
    Chunk* chunk = nullptr;
    const Table* table = nullptr;  ///< null: the first of the chunk
    int64_t lane = 0;
  } deepest_;
  std::unique_ptr<WaveSpace> space_ = Idle<WaveSpace>::all().take();
  size_t deep_ = 0;               ///< so many of its waves are on the stack
  std::vector<Waiting> waiting_;  ///< for each of the plan's lates
  int64_t late_lanes_[4] = {};    ///< that wait, by kind
  bool is_full_ = false;          ///< are there too many held rows to wait for more?
  const Table* joint_ = nullptr;  ///< rows of several tables, while they run together
  const Waiting::Part* joint_parts_ = nullptr;
  Poll poll_;
  int64_t base_frames_ = 0, base_bytes_ = 0;  ///< that were there when main called
};

}  // namespace lockstep
}  // namespace undertow
