// The lockstep schedule: waves of lanes go through the stages of their regions together.
//
// A fiber is one table on its way through the program of one phase. All fibers of a wave run until each of them waits
// for calls; then all calls into one group of functions, whatever table and site they come from, become one child wave,
// chunk by chunk if that is wide. The stack of waves is a list on the heap: depth is the user's.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <system_error>
#include <thread>

#include "clock.h"
#include "entries.h"
#include "late.h"
#include "narrow/run.h"
#include "operate.h"
#include "table.h"
#include "undertow/isa.h"
#include "undertow/run.h"

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }
size_t z(LateKind kind) { return static_cast<size_t>(kind); }

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

}  // namespace

/// A call or resume that a fiber waits for.
struct Request {
  Fiber* fiber;
  const CallItem* item;
  Table* table;
  int64_t left;  ///< lanes that have not come back
};

namespace {

struct Group {
  int32_t group;
  int32_t visits;
  int32_t asks;
  std::vector<Request*> requests;
  size_t request = 0;        ///< the next lanes to be called are those of this request
  int64_t lane = 0;          ///< from this one on
  int64_t left = INT64_MAX;  ///< so many, at most
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

/// The host of workers: they run nothing that needs one.
class QuietHost : public Host {
 public:
  void apply(int32_t node, std::span<const View>, std::span<Value>) override { throw Stop{Stop::Kind::Internal, node}; }
  void poll() override {}
};

/// An earlier task of another thread has failed: what this one would find is not asked for.
struct Cancelled {};

/// What waves need besides tables.
struct WaveSpace {
  Store<Chunk> chunks;
  Store<Piece> pieces;
  Store<Fiber> fibers;
  Store<Request> requests;
  std::deque<Wave> waves;
  std::vector<Part> parts;
  std::vector<int32_t> index[2];

  bool is_small() const {
    return std::max({chunks.size(), pieces.size(), fibers.size(), requests.size(), waves.size()}) <
           Idle<WaveSpace>::kFew;
  }
};

class Lockstep {
 public:
  Lockstep(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats)
      : plan_(plan),
        options_(options),
        host_(host),
        stats_(stats),
        tables_(plan, options.memory),
        operate_(plan, tables_, host, options, stats),
        narrow_(plan, tables_, host, options, stats),
        waiting_(plan.lates.size()) {
    narrow_.context = this;
    narrow_.is_late = [](void* self) { static_cast<Lockstep*>(self)->poll(); };
    operate_.context = this;
    operate_.tick = narrow_.is_late;
    narrow_.climb_on = [](void* self) {
      static_cast<Lockstep*>(self)->climb(static_cast<Lockstep*>(self)->at_,
                                          static_cast<Lockstep*>(self)->operate_.lane);
    };
    tables_.most_frames = options.frames;
    stats_.fired.assign(z(plan.nodes), 0);
  }

  std::vector<Value> run(std::span<const View> inputs) {
    began_ = last_poll_ = std::chrono::steady_clock::now();
    clock_.start(options_.is_timed);
    std::vector<Value> values;
    guarded([&] {
      start(inputs);
      poll();  // where there is no time at all, nothing is done
      while (deep_ > 0) step();
      values = results();
    });
    if (space_->is_small()) Idle<WaveSpace>::all().give(std::move(space_));
    return values;
  }

 private:
  /// Do something; what it throws knows where it happened.
  template <class Work>
  void guarded(Work&& work) {
    try {
      work();
    } catch (const OverLimit& over) {
      Stop stop{over.kind == OverLimit::Kind::Frames   ? Stop::Kind::Frames
                : over.kind == OverLimit::Kind::Depth  ? Stop::Kind::Depth
                : over.kind == OverLimit::Kind::Memory ? Stop::Kind::Memory
                                                       : Stop::Kind::OutOfMemory};
      stop.a = over.bytes;
      locate(stop);
      throw stop;
    } catch (Stop& stop) {
      locate(stop);
      throw;
    } catch (const std::bad_alloc&) {
      Stop stop{Stop::Kind::OutOfMemory};
      locate(stop);
      throw stop;
    } catch (const Interrupted&) {  // nobody asks where, and a tag may be long
      throw;
    } catch (...) {  // the host's
      stats_.stopped = where();
      throw;
    }
  }

  /// The labels of a lane, innermost first.
  std::vector<Label> tag(const Table& table, int64_t lane) const {
    std::vector<Label> labels;
    const Table* at = &table;
    if (at == joint_) {
      const Waiting::Part* part = joint_parts_;
      while (lane >= part->at + part->lanes) ++part;
      at = part->table;
      lane -= part->at;
    }
    while (at != nullptr && at->region->kind != Region::Kind::Main) {
      switch (at->region->kind) {
        case Region::Kind::Function: {
          const Piece* found = nullptr;
          for (const Piece* piece : at->chunk->pieces)
            if (piece->child == at && lane >= piece->at && lane < piece->at + piece->count) found = piece;
          if (found == nullptr) return labels;
          labels.push_back({found->site, -1});
          lane = found->from + (lane - found->at);
          at = found->parent;
          continue;
        }
        case Region::Kind::Loop:
          labels.push_back({at->site, at->iteration});
          break;
        case Region::Kind::Map:
          labels.push_back({at->site, reinterpret_cast<const int64_t*>(at->numbers->data())[lane]});
          break;
        default:
          break;
      }
      lane = at->parent_lane(lane);
      at = at->parent;
    }
    return labels;
  }

  /// Say where the run was stopped.
  void locate(Stop& stop) {
    if (stop.tag.empty()) stop.tag = where();
    if (stop.node < 0 && stop.site < 0) {
      const Doing doing = is_narrow_ ? narrow_.doing() : operate_.doing;
      stop.node = doing.node;
      stop.site = doing.site;
    }
    finish_stats();
  }

  /// The tag of what runs now.
  std::vector<Label> where() const {
    std::vector<Label> labels;
    if (is_narrow_) labels = narrow_.tag();
    if (at_ != nullptr)
      for (const Label& label : tag(*at_, operate_.lane)) labels.push_back(label);
    return labels;
  }

 private:
  // -- beginning and end ---------------------------------------------------------------------------------------

  void start(std::span<const View> inputs) {
    const Region& main = plan_.regions[0];
    main_ = tables_.make(main, 1, 1);
    at_ = main_;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int32_t number = main.params[0][k];
      if (number == kNoSlot) continue;
      const Slot& slot = main.slots[z(number)];
      const View& view = inputs[k];
      const int64_t bytes = view.bytes();
      if (slot.is_dynamic) {
        *reinterpret_cast<Box*>(tables_.own(*main_, number, true)) = tables_.lent(view);
      } else if (slot.offset < 0) {
        const Box box = tables_.lent(view);
        main_->columns[number] = {box.block, box.data, 0};
      } else {
        std::byte* to = tables_.own(*main_, number, true);
        if (bytes > 0) std::memcpy(to, view.data, z(bytes));
      }
    }
    begin_wave(nullptr, 0).ready.push_back(fiber(Fiber::Kind::Root, main_, 0, nullptr));
    tell(*main_, 0);
  }

  std::vector<Value> results() {
    const Region& main = plan_.regions[0];
    std::vector<Value> values;
    values.reserve(main.results[0].size());
    tables_.drop_sums(*main_);  // so that results have one user
    for (int32_t number : main.results[0]) {
      if (number == kNoSlot) {  // an order token
        values.emplace_back();
        continue;
      }
      const Slot& slot = main.slots[z(number)];
      const Column column = main_->columns[number];
      if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
      View view{column.data, 0, slot.shape.data(), slot.rank(), slot.dtype};
      Block* block = column.block;
      if (slot.is_dynamic) {
        Box* box = column.lane<Box>(0);
        view.data = box->data;
        view.shape = box->shape;
        block = box->block;
      }
      if (block == nullptr || block->refs > 1 || block->data() != view.data || block == main_->block) {
        values.push_back(value_of(view));
        continue;
      }
      tables_.pool.release(block);
      values.push_back({{view.shape, view.shape + view.rank}, {block, z(view.bytes())}});
      if (slot.is_dynamic)
        column.lane<Box>(0)->block = nullptr;
      else
        main_->columns[number].block = nullptr;
    }
    finish_stats();
    tables_.end(main_);
    main_ = nullptr;
    return values;
  }

  /// The deepest tag gets the labels from a table up to the next function, which adds its own when its wave ends: so no
  /// level costs more than itself, however many are deeper than all before.
  void climb(const Table* at, int64_t lane) {
    for (; at->region->kind != Region::Kind::Main && at->region->kind != Region::Kind::Function; at = at->parent) {
      if (at->region->kind == Region::Kind::Loop) stats_.deepest.push_back({at->site, at->iteration});
      if (at->region->kind == Region::Kind::Map)
        stats_.deepest.push_back({at->site, reinterpret_cast<const int64_t*>(at->numbers->data())[lane]});
      lane = at->parent_lane(lane);
    }
    deepest_ = at->region->kind == Region::Kind::Main ? Deepest{} : Deepest{at->chunk, at, lane};
  }

  void climb() {
    const Table* at = deepest_.table;
    if (at == nullptr && !deepest_.chunk->roots.empty()) at = deepest_.chunk->roots[0];
    for (const Piece* piece : deepest_.chunk->pieces)
      if (piece->child == at && deepest_.lane >= piece->at && deepest_.lane < piece->at + piece->count) {
        stats_.deepest.push_back({piece->site, -1});
        climb(piece->parent, piece->from + (deepest_.lane - piece->at));
        return;
      }
    deepest_ = {};  // it was stopped before there was a lane
  }

  void finish_stats() {
    while (deepest_.chunk != nullptr) climb();
    stats_.peak_frames = tables_.peak_frames;
    stats_.peak_bytes = tables_.pool.peak();
    clock_.stop(stats_);
  }

  // -- waves ---------------------------------------------------------------------------------------------------

  Wave& begin_wave(Chunk* chunk, int32_t phase) {
    if (deep_ == space_->waves.size()) space_->waves.emplace_back();
    Wave& wave = space_->waves[deep_++];
    wave.chunk = chunk;
    wave.phase = phase;
    return wave;
  }

  void tell(const Table& table, int32_t phase) {
    if (!options_.is_traced) return;
    const auto region = static_cast<int32_t>(table.region - plan_.regions.data());
    host_.wave(region, table.lanes, table.chunk == nullptr ? 0 : table.chunk->depth, phase, 0);
  }

  void step() {
    Wave& wave = space_->waves[deep_ - 1];
    if (is_full_) {
      run_late(LateKind::Held);
      return;
    }
    if (!wave.ready.empty()) {
      Fiber* next = wave.ready.back();
      wave.ready.pop_back();
      advance(wave, next);
      return;
    }
    clock_.to(Step::Call);
    if (!wave.groups.empty()) {
      start_chunk(wave);
    } else if (!wave.calls.empty()) {
      make_groups(wave);
    } else if (!wave.resumed.empty()) {
      start_resumed(wave);
    } else if (is_late(LateKind::Held)) {
      run_late(LateKind::Held);
    } else if (wave.waiting > 0) {
      throw Stop{Stop::Kind::Internal};  // a phase was asked for by some lanes of a chunk and not by others
    } else {
      finish_wave();
    }
  }

  void poll() {
    if (first_failed_ != nullptr && *first_failed_ < task_) throw Cancelled{};
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - began_).count() >= options_.timeout) throw Stop{Stop::Kind::Timeout};
    if (now - last_poll_ > std::chrono::milliseconds(20)) {
      last_poll_ = now;
      host_.poll();
    }
  }

  void make_groups(Wave& wave) {
    for (Request* request : wave.calls) {
      const int32_t visits = visits_of(*request->table, request->item->visits);
      const int32_t asks = visits > 1 ? request->item->asks : 0;
      Group* found = nullptr;
      for (Group& group : wave.groups)
        if (group.group == request->item->group && group.visits == visits && group.asks == asks) found = &group;
      if (found == nullptr) {
        wave.groups.push_back({request->item->group, visits, asks, {}});
        found = &wave.groups.back();
      }
      found->requests.push_back(request);
    }
    wave.calls.clear();
  }

  static int32_t visits_of(const Table& table, const std::vector<int32_t>& visits) {
    return visits[z(table.visits - 1)];
  }

  /// Call as many lanes of a group as a wave may have.
  void start_chunk(Wave& wave) {
    if ((++polls_ & 63) == 0) poll();
    if (goes_narrow(wave.groups.back())) {
      run_narrow(wave);
      return;
    }
    if (goes_parallel(wave.groups.back())) {
      run_parallel(wave);
      return;
    }
    Group& group = wave.groups.back();
    Chunk* chunk = space_->chunks.take();
    chunk->roots.clear();
    chunk->pieces.clear();
    chunk->lanes = chunk->asked = 0;
    chunk->visits = group.visits;
    chunk->depth = (wave.chunk == nullptr ? 0 : wave.chunk->depth) + 1;
    // How many lanes of which request, then one table for each function.
    std::vector<Part>& parts = space_->parts;
    parts.clear();
    if (deep_ == 1) {
      base_frames_ = tables_.frames;
      base_bytes_ = tables_.pool.live();
    }
    const int64_t width = width_now(group);
    while (group.request < group.requests.size() && group.left > 0 && chunk->lanes < width) {
      Request* request = group.requests[group.request];
      const int64_t room = std::min(group.left, width - chunk->lanes);
      const int64_t count = std::min(request->table->lanes - group.lane, room);
      parts.push_back({request, group.lane, count});
      chunk->lanes += count;
      group.lane += count;
      group.left -= count;
      if (group.lane == request->table->lanes) {
        ++group.request;
        group.lane = 0;
      }
    }
    if (group.request == group.requests.size() || group.left == 0) wave.groups.pop_back();
    at_ = parts[0].request->table;
    operate_.lane = parts[0].from;
    operate_.doing = {-1, parts[0].request->item->site};
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.request->item->body < b.request->item->body; });
    if (chunk->depth > stats_.max_depth) {
      if (chunk->depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
      stats_.max_depth = chunk->depth;
      stats_.deepest.clear();
      deepest_ = {chunk, nullptr, 0};
    }
    Wave& child = begin_wave(chunk, 0);  // from here on, `wave` and `group` are not looked at
    for (size_t first = 0; first < parts.size();) {
      size_t last = first;
      int64_t lanes = 0;
      while (last < parts.size() && parts[last].request->item->body == parts[first].request->item->body)
        lanes += parts[last++].count;
      const Region& body = plan_.regions[z(parts[first].request->item->body)];
      Table* table = tables_.make(body, lanes, chunk->visits);
      table->chunk = chunk;
      chunk->roots.push_back(table);
      const size_t pieces = chunk->pieces.size();
      int64_t at = 0;
      for (size_t k = first; k < last; ++k) {
        const Part& part = parts[k];
        Piece* piece = space_->pieces.take();
        *piece = {part.request->table,
                  part.request->item->site,
                  part.request->item->call,
                  part.from,
                  part.count,
                  table,
                  at,
                  chunk,
                  part.request};
        chunk->pieces.push_back(piece);
        if (!is_outermost(chunk)) piece->parent->calls[z(piece->call)].pieces.push_back(piece);
        at += part.count;
      }
      const std::span<Piece*> own(chunk->pieces.data() + pieces, chunk->pieces.size() - pieces);
      for (size_t k = 0; k < body.params[0].size(); ++k)
        if (body.params[0][k] != kNoSlot) hand_over(*table, body.params[0][k], own, k);
      if (body.hoisted > 0) give_entries(*table, own);
      child.ready.push_back(fiber(Fiber::Kind::Root, table, 0, nullptr));
      tell(*table, 0);
      stats_.activations += lanes;
      first = last;
    }
    ++stats_.waves;
    stats_.lanes += chunk->lanes;
    stats_.peak_width = std::max(stats_.peak_width, chunk->lanes);
  }

  /// How many lanes a chunk may have, so that what is below it finds room too. A quarter of what there is goes to wide
  /// waves, each taking a part of what is left of that; the rest is for depth, where lanes go down one by one. What
  /// later phases need stays anyway, however few lanes run at once.
  int64_t width_now(const Group& group) const {
    int64_t width = options_.width;
    if (group.visits > 1) return width;
    const int64_t frames = tables_.frames - base_frames_, bytes = tables_.pool.live() - base_bytes_;
    width = std::min(width, ((options_.frames - base_frames_) / 4 - frames) / 8);
    const int64_t lane = std::max(lane_bytes(group), frames > 0 ? bytes / frames : 0);
    width = std::min(width, ((options_.memory - base_bytes_) / 4 - bytes) / 8 / std::max<int64_t>(lane, 1));
    return std::max<int64_t>(width, 1);
  }

  /// What a lane of a group takes, as far as that is known before there is one.
  int64_t lane_bytes(const Group& group) const {
    int64_t bytes = plan_.lane_bytes[z(group.group)];
    for (const Request* request : group.requests) {
      if (!request->item->makes_entry) continue;
      int64_t own = 0;  // what its entry holds for it alone
      for (Operand x : request->item->hoists)
        if (tables_.column(*request->table, x).stride != 0) own += tables_.slot(*request->table->region, x).bytes;
      bytes = std::max(bytes, plan_.lane_bytes[z(group.group)] + own);
    }
    return bytes;
  }

  // -- several threads -----------------------------------------------------------------------------------------

  /// Is a chunk one that a worker was given, its callers belonging to another thread?
  bool is_outermost(const Chunk* chunk) const { return is_worker_ && chunk->depth == outer_depth_; }

  static constexpr int64_t kFewFrames = int64_t{1} << 20;  // then they are for one thread

  bool goes_parallel(const Group& group) const {
    if (is_worker_ || options_.threads < 2 || options_.is_traced || options_.frames < kFewFrames || group.visits > 1 ||
        group.request > 0 || group.lane > 0)
      return false;
    if (!plan_.is_pure[z(group.group)]) return false;
    int64_t lanes = 0;
    for (const Request* request : group.requests) lanes += request->table->lanes;
    return lanes > options_.width;
  }

  /// Chunks of one group are independent: run them on several threads, each with tables of its own.
  void run_parallel(Wave& wave) {
    const Group group = std::move(wave.groups.back());
    wave.groups.pop_back();
    std::vector<Group> tasks;
    int64_t skipped = 0;
    for (size_t request = 0; request < group.requests.size(); ++request) {
      Table& table = *group.requests[request]->table;
      const CallItem& item = *group.requests[request]->item;
      for (int32_t slot : item.results)
        if (slot != kNoSlot) tables_.own(table, slot);
      if (item.makes_entry) make_entries(table, item);  // workers only look at them
      for (int64_t lane = 0; lane < table.lanes;) {
        if (skipped == 0) {
          tasks.push_back({group.group, group.visits, group.asks, group.requests, request, lane, options_.width});
          skipped = options_.width;
        }
        const int64_t step = std::min(skipped, table.lanes - lane);
        lane += step;
        skipped -= step;
      }
    }
    const size_t count = std::min(tasks.size(), z(options_.threads));
    RunOptions options = options_;
    options.threads = 1;
    options.memory = std::max<int64_t>((options_.memory - tables_.pool.live()) / static_cast<int64_t>(count), 1);
    std::atomic<size_t> next = 0;
    std::atomic<int64_t> first_failed = INT64_MAX;  // tasks behind it stop; those before it say whether they fail too
    std::vector<std::exception_ptr> failed(tasks.size());
    std::exception_ptr interrupted;
    std::vector<RunStats> stats(tasks.size());
    std::atomic<int64_t> running = 0;
    clock_.stop(stats_);  // workers have clocks of their own
    const auto work = [&](bool polls) {
      for (size_t k; (k = next++) < tasks.size() && static_cast<int64_t>(k) < first_failed;) {
        try {
          Lockstep worker(plan_, options, polls ? host_ : quiet_, stats[k]);
          worker.run_task(*this, wave.chunk, tasks[k], static_cast<int64_t>(k), first_failed);
        } catch (const Cancelled&) {
        } catch (const Stop&) {
          failed[k] = std::current_exception();
          for (int64_t known = first_failed; static_cast<int64_t>(k) < known;)
            if (first_failed.compare_exchange_weak(known, static_cast<int64_t>(k))) break;
        } catch (...) {  // the host's, so in this thread
          interrupted = std::current_exception();
          first_failed = -1;
        }
      }
    };
    std::vector<std::thread> threads;
    for (size_t k = 1; k < count; ++k) {
      ++running;
      try {
        threads.emplace_back([&] {
          work(false);
          --running;
        });
      } catch (const std::system_error&) {  // the system has no more of them
        --running;
        break;
      }
    }
    work(true);
    while (running > 0 && first_failed >= 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      try {
        poll();
      } catch (const Stop&) {  // too late: the others see that too
        break;
      } catch (...) {
        interrupted = std::current_exception();
        first_failed = -1;
      }
    }
    for (std::thread& thread : threads) thread.join();
    clock_.start(options_.is_timed);
    if (interrupted) std::rethrow_exception(interrupted);
    for (const std::exception_ptr& fault : failed)
      if (fault) std::rethrow_exception(fault);
    int64_t frames = 0;
    for (const RunStats& part : stats) {
      stats_.activations += part.activations;
      stats_.waves += part.waves;
      stats_.lanes += part.lanes;
      stats_.peak_width = std::max(stats_.peak_width, part.peak_width);
      for (size_t k = 0; k < part.seconds.size(); ++k) stats_.seconds[k] += part.seconds[k];
      frames = std::max(frames, part.peak_frames);
      for (size_t node = 0; node < part.fired.size(); ++node) stats_.fired[node] += part.fired[node];
      if (part.max_depth > stats_.max_depth) {
        stats_.max_depth = part.max_depth;
        stats_.deepest = part.deepest;
        deepest_ = {};
      }
    }
    tables_.peak_frames = std::max(tables_.peak_frames, tables_.frames + frames * static_cast<int64_t>(count));
    for (Request* request : group.requests) {
      Fiber* waiter = request->fiber;
      space_->requests.give(request);
      come_back(wave, waiter);
    }
  }

  /// What a worker does: some lanes of a group that another thread's tables call.
  void run_task(const Lockstep& owner, Chunk* chunk, const Group& task, int64_t number,
                const std::atomic<int64_t>& first_failed) {
    began_ = last_poll_ = owner.began_;
    clock_.start(options_.is_timed);
    main_ = owner.main_;
    is_worker_ = tables_.borrows = true;
    task_ = number;
    first_failed_ = &first_failed;
    outer_depth_ = (chunk == nullptr ? 0 : chunk->depth) + 1;
    stats_.max_depth = owner.stats_.max_depth;
    guarded([&] {
      begin_wave(chunk, 0).groups.push_back(task);
      while (deep_ > 0) step();
      finish_stats();
    });
    if (space_->is_small()) Idle<WaveSpace>::all().give(std::move(space_));
  }

  // -- narrow waves --------------------------------------------------------------------------------------------

  static constexpr int64_t kNarrow = 16;  // lanes; with more, waves are faster

  bool goes_narrow(const Group& group) const {
    if (group.request > 0 || group.lane > 0 || options_.check_finite || options_.is_traced ||
        !plan_.narrow->groups[z(group.group)])
      return false;
    int64_t lanes = 0;
    for (const Request* request : group.requests) lanes += request->table->lanes;
    return lanes <= kNarrow;
  }

  /// Run the calls of a group one lane after the other.
  void run_narrow(Wave& wave) {
    const Group group = std::move(wave.groups.back());
    wave.groups.pop_back();
    narrow_.main_ = main_;
    const int64_t depth = (wave.chunk == nullptr ? 0 : wave.chunk->depth) + 1;
    for (Request* request : group.requests) {
      Table& table = *request->table;
      const CallItem& item = *request->item;
      at_ = &table;
      operate_.doing = {-1, item.site};
      if (depth > stats_.max_depth) {
        operate_.lane = 0;
        if (depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
        stats_.max_depth = depth;
        stats_.deepest.assign(1, {item.site, -1});
        climb(&table, 0);
      }
      CallState& state = table.calls[z(item.call)];
      if (item.makes_entry) make_entries(table, item);
      state.frames.clear();
      const int32_t hoisted = plan_.regions[z(item.body)].hoisted;
      for (int64_t lane = 0; lane < table.lanes; ++lane) {
        Entry* entry = hoisted == 0 ? nullptr : item.makes_entry ? &state.entries[z(lane)] : entry_of(table, lane);
        NarrowFrame* frame = narrow_.call(item.body, item.site, group.visits, entry, depth);
        run_lane(table, lane, item, frame);
        if (group.visits > 1) state.frames.push_back(frame);
      }
      ++stats_.waves;
      stats_.lanes += table.lanes;
      Fiber* waiter = request->fiber;
      space_->requests.give(request);
      come_back(wave, waiter);
    }
  }

  void run_lane(Table& table, int64_t lane, const CallItem& item, NarrowFrame* frame) {
    clock_.to(Step::Narrow);
    const NarrowBody& body = narrow_.body(item.body);
    for (size_t k = 0; k < item.arguments.size(); ++k) {
      const int32_t to = body.params[z(item.phase)][k];
      if (to < 0) continue;
      const Column column = tables_.column(table, item.arguments[k]);
      frame->cells[to] = 0;
      std::memcpy(&frame->cells[to], column.lane<std::byte>(lane),
                  z(tables_.slot(*table.region, item.arguments[k]).bytes));
    }
    at_ = &table;
    operate_.lane = lane;
    is_narrow_ = true;
    narrow_.run(frame, item.phase);
    is_narrow_ = false;
    for (size_t k = 0; k < item.results.size(); ++k) {
      const int32_t to = item.results[k];
      if (to == kNoSlot) continue;
      std::byte* out = tables_.own(table, to, table.lanes == 1);
      const uint64_t value = narrow_.value(*frame, body.results[z(item.phase)][k]);
      const int64_t bytes = table.region->slots[z(to)].bytes;
      std::memcpy(out + (table.lanes == 1 ? 0 : lane * bytes), &value, z(bytes));
    }
    if (item.phase + 1 == frame->visits) narrow_.end(frame);
  }

  /// An argument of some calls, side by side.
  void hand_over(Table& table, int32_t slot, std::span<Piece* const> pieces, size_t argument) {
    const Slot& to = table.region->slots[z(slot)];
    const auto given = [&](const Piece& piece) {
      const Operand x = piece.request->item->arguments[argument];
      Column column = tables_.column(*piece.parent, x);
      column.data += piece.from * column.stride;
      if (is_outermost(piece.chunk)) column.block = nullptr;  // lent: counting is for one thread
      return column;
    };
    const auto slot_of = [&](const Piece& piece) -> const Slot& {
      return tables_.slot(*piece.parent->region, piece.request->item->arguments[argument]);
    };
    const Piece& first = *pieces[0];
    const Column column = given(first);
    int64_t lanes = 0;  // where only some of the table's are given theirs now, the others must not see it
    for (const Piece* piece : pieces) lanes += piece->count;
    bool is_shared = pieces.size() == 1;
    if (!is_shared && column.stride == 0 && !to.is_dynamic) {
      is_shared = true;
      for (const Piece* piece : pieces) {
        const Column other = given(*piece);
        is_shared = is_shared && other.stride == 0 && other.data == column.data;
      }
    }
    if (is_shared && lanes == table.lanes && !table.columns[slot].data) {
      tables_.take(table, slot, slot_of(first), column, nullptr, table.lanes);
      return;
    }
    tables_.own(table, slot);
    for (const Piece* piece : pieces)
      tables_.put(to, table.columns[slot], nullptr, piece->at, slot_of(*piece), given(*piece), 0, piece->count);
  }

  void give_entries(Table& table, std::span<Piece* const> pieces) {
    bool is_uniform = true;
    Entry* one = nullptr;
    for (const Piece* piece : pieces) {
      if (piece->request->item->makes_entry) make_entries(*piece->parent, *piece->request->item);
      Entry* found = piece->request->item->makes_entry ? &piece->parent->calls[z(piece->call)].entries[z(piece->from)]
                                                       : piece->parent->entry;
      if (piece->request->item->makes_entry && piece->count > 1) found = nullptr;
      if (found == nullptr || (one != nullptr && found != one)) is_uniform = false;
      one = found;
    }
    if (is_uniform) {
      table.entry = one;
      return;
    }
    table.entries = tables_.pool.take(table.lanes * 8);
    Entry** to = reinterpret_cast<Entry**>(table.entries->data());
    for (const Piece* piece : pieces)
      for (int64_t k = 0; k < piece->count; ++k)
        to[piece->at + k] = piece->request->item->makes_entry
                                ? &piece->parent->calls[z(piece->call)].entries[z(piece->from + k)]
                                : entry_of(*piece->parent, piece->from + k);
  }

  void make_entries(Table& table, const CallItem& item) {
    std::vector<Entry>& entries = table.calls[z(item.call)].entries;
    if (!entries.empty()) return;
    entries.resize(z(table.lanes));
    for (int64_t lane = 0; lane < table.lanes; ++lane) {
      Entry& entry = entries[z(lane)];
      entry.region = table.region;
      entry.item = &item;
      entry.sums.resize(item.hoists.size());
      for (Operand x : item.hoists) {
        const Column column = tables_.column(table, x);
        entry.values.push_back({column.block, column.data + lane * column.stride, 0});
      }
    }
  }

  /// Lanes of a table inside another: they are below the same entries.
  void inherit(Table& table, const Table& from, const int32_t* index) {
    if (from.entry != nullptr || from.entries == nullptr) {
      table.entry = from.entry;
      return;
    }
    table.entries = tables_.pool.take(table.lanes * 8);
    Entry** to = reinterpret_cast<Entry**>(table.entries->data());
    for (int64_t k = 0; k < table.lanes; ++k)
      to[k] = reinterpret_cast<Entry**>(from.entries->data())[index != nullptr ? index[k] : k];
  }

  void start_resumed(Wave& wave) {
    Chunk* chunk = wave.resumed.back();
    wave.resumed.pop_back();
    chunk->asked = 0;
    Wave& child = begin_wave(chunk, chunk->pieces[0]->request->item->phase);
    for (Table* table : chunk->roots) {
      child.ready.push_back(fiber(Fiber::Kind::Root, table, child.phase, nullptr));
      tell(*table, child.phase);
    }
    ++stats_.waves;
    stats_.lanes += chunk->lanes;
    if ((++polls_ & 63) == 0) poll();
  }

  void finish_wave() {
    Wave* wave = &space_->waves[--deep_];
    if (deep_ == 0) return;
    Wave& above = space_->waves[deep_ - 1];
    Chunk* chunk = wave->chunk;
    if (chunk == deepest_.chunk) climb();
    if ((is_late(LateKind::Kept) || is_late(LateKind::Ahead)) && ends_entry(*chunk)) {
      run_late(LateKind::Kept);
      run_late(LateKind::Ahead);
    }
    for (Piece* piece : chunk->pieces) deliver(*piece, wave->phase);
    if (is_outermost(chunk)) {  // who waits is told when all workers are done
      end_chunk(chunk);
      return;
    }
    const bool is_over = wave->phase + 1 == chunk->visits;
    for (Piece* piece : chunk->pieces) {
      Request* request = piece->request;
      request->left -= piece->count;
      if (wave->phase > 0) above.waiting -= piece->count;
      if (request->left == 0) {
        Fiber* waiter = request->fiber;
        space_->requests.give(request);
        come_back(above, waiter);
      }
      piece->request = nullptr;
    }
    if (is_over) end_chunk(chunk);
  }

  void deliver(const Piece& piece, int32_t phase) {
    const CallItem& item = *piece.request->item;
    const Region& body = *piece.child->region;
    for (size_t k = 0; k < item.results.size(); ++k) {
      const int32_t to = item.results[k];
      if (to == kNoSlot) continue;
      const int32_t from = body.results[z(phase)][k];
      Column column = piece.child->columns[from];
      if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
      Table& parent = *piece.parent;
      const Slot& to_slot = parent.region->slots[z(to)];
      const Slot& from_slot = body.slots[z(from)];
      // Arrays stay where they are; small values are copied, or they would keep all that is small in that table.
      if (piece.count == parent.lanes && (piece.at == 0 || from_slot.offset < 0) && !is_outermost(piece.chunk)) {
        column.data += piece.at * column.stride;
        tables_.take(parent, to, from_slot, column, nullptr, piece.count);
        continue;
      }
      tables_.own(parent, to);
      tables_.put(to_slot, parent.columns[to], nullptr, piece.from, from_slot, column, piece.at, piece.count);
    }
  }

  void end_chunk(Chunk* chunk) {
    for (Piece* piece : chunk->pieces) {
      if (!is_outermost(chunk)) {
        std::vector<Piece*>& pieces = piece->parent->calls[z(piece->call)].pieces;
        pieces.erase(std::find(pieces.begin(), pieces.end(), piece));
      }
      space_->pieces.give(piece);
    }
    for (Table* table : chunk->roots) tables_.end(table);
    space_->chunks.give(chunk);
  }

  // -- fibers --------------------------------------------------------------------------------------------------

  Fiber* fiber(Fiber::Kind kind, Table* table, int32_t phase, Fiber* parent) {
    Fiber* made = space_->fibers.take();
    *made = {kind, table, &table->region->phases[z(phase)], phase};
    made->parent = parent;
    return made;
  }

  Request* request(Fiber* waiter, const CallItem& item) {
    Request* made = space_->requests.take();
    *made = {waiter, &item, waiter->table, waiter->table->lanes};
    return made;
  }

  /// Something that a fiber entered is over.
  void come_back(Wave& wave, Fiber* waiter) {
    if (--waiter->pending == 0) {
      complete(*waiter);
      ++waiter->stage;
      wave.ready.push_back(waiter);
    }
  }

  /// Run a fiber until it waits, or is over.
  void advance(Wave& wave, Fiber* self) {
    Table& table = *self->table;
    for (;;) {
      at_ = &table;
      if (self->stage == self->program->stages.size()) {
        over(wave, self);
        return;
      }
      const Stage& stage = self->program->stages[self->stage];
      if (!self->is_past && put_off(self, stage)) return;
      self->is_past = false;
      if (stage.entered.empty()) {
        ++self->stage;
        continue;
      }
      self->pending = 1;
      for (const Item& item : stage.entered) enter(wave, self, item);
      if (--self->pending > 0) return;
      complete(*self);
      ++self->stage;
    }
  }

  // -- steps that wait -----------------------------------------------------------------------------------------

  static constexpr int64_t kMostBytes = int64_t{1} << 23;  // of rows that wait for one thing

  /// Run the operators of a stage, or keep some of them for later: true where the fiber waits for these.
  bool put_off(Fiber* self, const Stage& stage) {
    Table& table = *self->table;
    const Late* late = stage.late < 0 ? nullptr : &plan_.lates[z(stage.late)];
    const std::vector<Item>& items = options_.check_finite ? stage.straight : stage.fused;
    const size_t late_from = options_.check_finite ? stage.late_from : stage.fused_late_from;
    if (late != nullptr && late->kind == LateKind::Ahead && self->program->phase + 1 >= table.visits) {
      // There is no next phase.
      for (size_t k = 0; k < late_from; ++k) straight(table, items[k]);
      for (size_t k = stage.late_from; k < stage.ahead_from; ++k) straight(table, stage.straight[k]);
      return false;
    }
    if (late != nullptr && table.lanes >= late->wide) late = nullptr;
    if (late != nullptr && late->kind == LateKind::Kept && options_.check_finite) late = nullptr;  // who is it?
    for (size_t k = 0; k < (late != nullptr ? late_from : items.size()); ++k) straight(table, items[k]);
    if (late == nullptr) return false;
    Waiting& waiting = waiting_[z(stage.late)];
    if (late->is_held()) {
      waiting.hold(*late, table, self, deep_ - 1);
    } else if (!waiting.keep(tables_, *late, table)) {
      for (size_t k = late_from; k < items.size(); ++k) straight(table, items[k]);
      return false;
    }
    late_lanes_[z(late->kind)] += table.lanes;
    if (waiting.bytes >= kMostBytes) {
      if (late->is_held())
        is_full_ = true;  // when this fiber has been left
      else
        run_late(late->kind);
    }
    return late->is_held();
  }

  bool is_late(LateKind kind) const { return late_lanes_[z(kind)] > 0; }

  /// Run all that waits in one way.
  void run_late(LateKind kind) {
    const Table* before = at_;
    late_lanes_[z(kind)] = 0;
    if (kind == LateKind::Held) is_full_ = false;
    for (size_t number = 0; number < waiting_.size(); ++number) {
      Waiting& waiting = waiting_[number];
      if (plan_.lates[number].kind != kind || waiting.parts.empty()) continue;
      run_together(plan_.lates[number], waiting);
      for (const Waiting::Part& part : waiting.parts) {
        if (kind != LateKind::Held) break;
        Fiber* fiber = static_cast<Fiber*>(part.fiber);
        fiber->is_past = true;
        space_->waves[part.wave].ready.push_back(fiber);
      }
      waiting.clear(tables_);
    }
    at_ = before;
  }

  void run_together(const Late& late, Waiting& waiting) {
    const std::vector<Item>& items = options_.check_finite ? late.items : late.fused;
    ++stats_.joint_runs;
    stats_.joint_tables += static_cast<int64_t>(waiting.parts.size());
    if (waiting.parts.size() == 1 && late.is_held()) {
      at_ = waiting.parts[0].table;
      for (const Item& item : items) straight(*waiting.parts[0].table, item);
      return;
    }
    Table* joint = waiting.join(tables_, plan_, late);
    const bool are_there = late.kind != LateKind::Kept;  // those whose rows these are
    at_ = are_there ? joint : main_;
    if (are_there) {
      joint_ = joint;
      joint_parts_ = waiting.parts.data();
    }
    for (const Item& item : items) straight(*joint, item);
    if (are_there) waiting.share(tables_, late, *joint);
    joint_ = nullptr;
    tables_.end(joint);
  }

  /// Does a chunk come back to those who made its entries?
  bool ends_entry(const Chunk& chunk) const {
    return is_outermost(&chunk) || std::ranges::any_of(chunk.pieces, [](const Piece* piece) {
             return !piece->parent->calls[z(piece->call)].entries.empty();
           });
  }

  /// A fiber is at its end.
  void over(Wave& wave, Fiber* self) {
    Fiber* waiter = self->parent;
    if (self->kind == Fiber::Kind::Loop) {
      if (go_round(wave, self)) return;
    }
    space_->fibers.give(self);
    if (waiter != nullptr) come_back(wave, waiter);
  }

  void straight(Table& table, const Item& item) {
    clock_.to(item.kind);
    switch (item.kind) {
      case Item::Kind::Op:
        operate_.run(table, plan_.ops[z(item.number)]);
        break;
      case Item::Kind::Fused:
        operate_.run(table, plan_.fuseds[z(item.number)]);
        break;
      case Item::Kind::Read:
        read(table, plan_.reads[z(item.number)]);
        break;
      case Item::Kind::Collect:
        collect(table, plan_.collects[z(item.number)]);
        break;
      case Item::Kind::Collected:
        collected(table, plan_.collecteds[z(item.number)]);
        break;
      default:
        throw Stop{Stop::Kind::Internal};
    }
  }

  void enter(Wave& wave, Fiber* self, const Item& item) {
    clock_.to(item.kind);
    switch (item.kind) {
      case Item::Kind::Branch:
        enter_branch(wave, self, plan_.branches[z(item.number)]);
        break;
      case Item::Kind::Call: {
        const CallItem& call = plan_.calls[z(item.number)];
        ++self->pending;
        if (call.phase == 0)
          wave.calls.push_back(request(self, call));
        else
          resume(wave, self, call);
        break;
      }
      case Item::Kind::Loop:
        enter_loop(wave, self, plan_.loops[z(item.number)]);
        break;
      case Item::Kind::Map:
        enter_map(wave, self, plan_.maps[z(item.number)]);
        break;
      default:
        throw Stop{Stop::Kind::Internal};
    }
  }

  /// What was entered together has come back: bring the results where they belong.
  void complete(const Fiber& self) {
    const Stage& stage = self.program->stages[self.stage];
    for (const Item& item : stage.entered) {
      clock_.to(item.kind);
      if (item.kind == Item::Kind::Branch)
        leave_branch(*self.table, plan_.branches[z(item.number)]);
      else if (item.kind == Item::Kind::Map)
        leave_map(*self.table, plan_.maps[z(item.number)]);
    }
  }

  // -- branches ------------------------------------------------------------------------------------------------

  void enter_branch(Wave& wave, Fiber* self, const BranchItem& item) {
    Table& table = *self->table;
    Sides& sides = table.branches[z(item.branch)];
    if (item.is_first)
      divide(table, item, sides);
    else if (is_late(LateKind::Ahead))
      run_late(LateKind::Ahead);
    for (int side = 0; side < 2; ++side) {
      if (sides.count[side] == 0) continue;
      const Region& region = plan_.regions[z(item.regions[side])];
      const int32_t* index =
          sides.index[side] != nullptr ? reinterpret_cast<const int32_t*>(sides.index[side]->data()) : nullptr;
      if (sides.table[side] == nullptr) {
        Table* inner = tables_.make(region, sides.count[side], table.visits);
        sides.table[side] = inner;
        inner->parent = &table;
        inner->chunk = table.chunk;
        if (sides.index[side] != nullptr) {
          ++sides.index[side]->refs;
          inner->index = sides.index[side];
        }
        inherit(*inner, table, index);
      }
      Table& inner = *sides.table[side];
      for (const Transfer& transfer : item.transfers[side])
        tables_.take_side(inner, transfer.to, tables_.slot(*table.region, transfer.from),
                          tables_.column(table, transfer.from), index, table.columns[item.pred], side == 0,
                          table.lanes);
      if (region.phases[z(item.programs[side])].stages.empty()) continue;
      ++self->pending;
      wave.ready.push_back(fiber(Fiber::Kind::Branch, &inner, item.programs[side], self));
    }
  }

  void divide(Table& table, const BranchItem& item, Sides& sides) {
    const Column pred = table.columns[item.pred];
    const uint8_t* values = reinterpret_cast<const uint8_t*>(pred.data);
    for (int side = 0; side < 2; ++side) sides.count[side] = 0;
    if (pred.stride == 0) {
      sides.count[values[0] != 0 ? 0 : 1] = table.lanes;
      return;
    }
    for (std::vector<int32_t>& index : space_->index) index.resize(z(table.lanes) + 16);  // whole vectors are written
    const int64_t there =
        functions().lanes->divide(values, table.lanes, space_->index[0].data(), space_->index[1].data());
    sides.count[0] = there;
    sides.count[1] = table.lanes - there;
    for (int side = 0; side < 2; ++side)
      if (sides.count[side] > 0 && sides.count[side] < table.lanes)
        sides.index[side] = tables_.copy_index(space_->index[side].data(), sides.count[side]);
  }

  void leave_branch(Table& table, const BranchItem& item) {
    Sides& sides = table.branches[z(item.branch)];
    for (const MergeRow& merge : item.merges) {
      const Slot& slot = table.region->slots[z(merge.to)];
      if (sides.count[0] > 0 && sides.count[1] > 0 &&
          tables_.meet(table, merge.to, table.columns[item.pred], tables_.column(*sides.table[0], merge.sides[0]),
                       tables_.column(*sides.table[1], merge.sides[1])))
        continue;
      for (int side = 0; side < 2; ++side) {
        if (sides.count[side] == 0) continue;
        const Table& inner = *sides.table[side];
        const Slot& from_slot = tables_.slot(*inner.region, merge.sides[side]);
        const Column column = tables_.column(inner, merge.sides[side]);
        if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
        if (sides.count[side] == table.lanes) {
          tables_.take(table, merge.to, from_slot, column, nullptr, table.lanes);
        } else {
          tables_.own(table, merge.to);
          tables_.put(slot, table.columns[merge.to], reinterpret_cast<const int32_t*>(sides.index[side]->data()), 0,
                      from_slot, column, 0, sides.count[side]);
        }
      }
    }
    if (table.visits == 1 && item.is_last &&
        table.region->kind != Region::Kind::Loop) {  // a loop looks at it once more
      for (int side = 0; side < 2; ++side) {
        if (sides.table[side] != nullptr) tables_.end(sides.table[side]);
        tables_.pool.drop(sides.index[side]);
      }
      sides = {};
    }
  }

  // -- later phases --------------------------------------------------------------------------------------------

  void resume(Wave& wave, Fiber* self, const CallItem& item) {
    if (is_late(LateKind::Ahead)) run_late(LateKind::Ahead);
    Table& table = *self->table;
    CallState& state = table.calls[z(item.call)];
    if (!state.frames.empty()) {
      narrow_.main_ = main_;
      const bool is_last = item.phase + 1 == state.frames[0]->visits;
      for (int64_t lane = 0; lane < table.lanes; ++lane) run_lane(table, lane, item, state.frames[z(lane)]);
      if (is_last) state.frames.clear();
      --self->pending;
      return;
    }
    Request* made = request(self, item);
    wave.waiting += table.lanes;
    const std::vector<Piece*>& pieces = table.calls[z(item.call)].pieces;
    const Region& body = plan_.regions[z(item.body)];
    for (Piece* piece : pieces) {
      piece->request = made;
      for (size_t k = 0; k < item.arguments.size(); ++k) {
        const int32_t slot = body.params[z(item.phase)][k];
        if (slot != kNoSlot) hand_over(*piece->child, slot, {&piece, 1}, k);
      }
      piece->chunk->asked += piece->count;
      if (piece->chunk->asked == piece->chunk->lanes) wave.resumed.push_back(piece->chunk);
    }
  }

  // -- loops ---------------------------------------------------------------------------------------------------

  void enter_loop(Wave& wave, Fiber* self, const LoopItem& item) {
    operate_.doing = {-1, item.site};
    Table& table = *self->table;
    Table* inner = tables_.make(plan_.regions[z(item.body)], table.lanes, 1);
    inner->parent = &table;
    inner->chunk = table.chunk;
    inner->site = item.site;
    if (table.lanes > 1) {
      space_->index[0].resize(z(table.lanes));
      for (int64_t k = 0; k < table.lanes; ++k) space_->index[0][z(k)] = static_cast<int32_t>(k);
      inner->index = tables_.copy_index(space_->index[0].data(), table.lanes);
    }
    inherit(*inner, table, nullptr);
    for (const auto* transfers : {&item.variables, &item.outers})
      for (const Transfer& transfer : *transfers)
        tables_.take(*inner, transfer.to, tables_.slot(*table.region, transfer.from),
                     tables_.column(table, transfer.from), nullptr, table.lanes);
    tell(*inner, 0);
    Fiber* made = fiber(Fiber::Kind::Loop, inner, 0, self);
    made->loop = &item;
    ++self->pending;
    wave.ready.push_back(made);
  }

  /// An iteration is over: lanes that are done leave, the others begin the next. Are there any?
  bool go_round(Wave& wave, Fiber* self) {
    clock_.to(Step::Loop);
    operate_.doing = {-1, self->loop->site};
    if ((++polls_ & 63) == 0) poll();
    const LoopItem& item = *self->loop;
    Table* before = self->table;
    Table& parent = *before->parent;
    Sides& sides = before->branches[z(item.branch)];
    if (sides.count[1] > 0) {
      const int32_t* gone =
          sides.index[1] != nullptr ? reinterpret_cast<const int32_t*>(sides.index[1]->data()) : nullptr;
      std::vector<int32_t> places(z(sides.count[1]));
      for (int64_t k = 0; k < sides.count[1]; ++k)
        places[z(k)] = static_cast<int32_t>(before->parent_lane(gone != nullptr ? gone[k] : k));
      for (const LoopItem::Exit& exit : item.exits) {
        const Slot& slot = parent.region->slots[z(exit.to)];
        const Slot& from_slot = tables_.slot(*before->region, exit.from);
        Column column = tables_.column(*before, exit.from);
        if (sides.count[1] == parent.lanes) {
          tables_.take(parent, exit.to, from_slot, column, gone, sides.count[1]);
          continue;
        }
        tables_.own(parent, exit.to);
        for (int64_t k = 0; k < sides.count[1]; ++k)
          tables_.put(slot, parent.columns[exit.to], &places[z(k)], 0, from_slot, column, gone != nullptr ? gone[k] : k,
                      1);
      }
    }
    const bool goes_on = sides.count[0] > 0;
    if (goes_on) {
      Table* going = sides.table[0];
      Table* inner = tables_.make(*before->region, sides.count[0], 1);
      inner->parent = &parent;
      inner->chunk = parent.chunk;
      inner->site = item.site;
      inner->iteration = before->iteration + 1;
      const int32_t* stay =
          sides.index[0] != nullptr ? reinterpret_cast<const int32_t*>(sides.index[0]->data()) : nullptr;
      if (stay == nullptr) {
        if (before->index != nullptr) ++before->index->refs;
        inner->index = before->index;
      } else {
        inner->index = tables_.pool.take(4 * inner->lanes);
        int32_t* to = reinterpret_cast<int32_t*>(inner->index->data());
        for (int64_t k = 0; k < inner->lanes; ++k) to[k] = static_cast<int32_t>(before->parent_lane(stay[k]));
      }
      inherit(*inner, *before, stay);
      for (size_t k = 0; k < item.variables.size(); ++k)
        tables_.take(*inner, item.variables[k].to, tables_.slot(*going->region, item.next[k]),
                     tables_.column(*going, item.next[k]), nullptr, inner->lanes);
      for (const Transfer& outer : item.outers)
        tables_.take(*inner, outer.to, before->region->slots[z(outer.to)], before->columns[outer.to], stay,
                     inner->lanes);
      tell(*inner, 0);
      self->table = inner;
      self->stage = 0;
      wave.ready.push_back(self);
    }
    at_ = &parent;
    tables_.end(before);
    return goes_on;
  }

  // -- maps ----------------------------------------------------------------------------------------------------

  /// The shape of an operand in a lane.
  const int64_t* shape_of(const Slot& slot, const Column& column, int64_t lane) {
    return slot.is_dynamic ? column.lane<Box>(lane)->shape : slot.shape.data();
  }

  void enter_map(Wave& wave, Fiber* self, const MapItem& item) {
    if (item.phase > 0 && is_late(LateKind::Ahead)) run_late(LateKind::Ahead);
    operate_.doing = {-1, item.site};
    Table& table = *self->table;
    const Region& body = plan_.regions[z(item.body)];
    Table* inner = table.maps[z(item.map)];
    if (item.phase == 0) {
      const Slot& slot = tables_.slot(*table.region, item.counted);
      const Column column = tables_.column(table, item.counted);
      std::vector<int64_t> counts(z(table.lanes));
      int64_t lanes = 0;
      for (int64_t k = 0; k < table.lanes; ++k) lanes += counts[z(k)] = shape_of(slot, column, k)[0];
      if (lanes > INT32_MAX) throw OverLimit{OverLimit::Kind::Frames};
      inner = tables_.make(body, lanes, std::max(1, visits_of(table, item.visits)));
      table.maps[z(item.map)] = inner;
      inner->parent = &table;
      inner->chunk = table.chunk;
      inner->site = item.site;
      inner->numbers = tables_.pool.take(8 * lanes);
      inner->index = tables_.pool.take(4 * lanes);
      int64_t* numbers = reinterpret_cast<int64_t*>(inner->numbers->data());
      int32_t* index = reinterpret_cast<int32_t*>(inner->index->data());
      int64_t at = 0;
      for (int64_t k = 0; k < table.lanes; ++k)
        for (int64_t n = 0; n < counts[z(k)]; ++n, ++at) {
          numbers[at] = n;
          index[at] = static_cast<int32_t>(k);
        }
      inherit(*inner, table, index);
    }
    const int32_t* index = reinterpret_cast<const int32_t*>(inner->index->data());
    for (const Transfer& transfer : item.mapped) spread(table, *inner, item, transfer);
    for (const Transfer& outer : item.outers)
      if (inner->lanes > 0)
        tables_.take(*inner, outer.to, tables_.slot(*table.region, outer.from), tables_.column(table, outer.from),
                     index, inner->lanes);
    if (inner->lanes == 0 || body.phases[z(item.phase)].stages.empty()) return;
    ++self->pending;
    tell(*inner, item.phase);
    wave.ready.push_back(fiber(Fiber::Kind::Map, inner, item.phase, self));
  }

  /// The elements of an array as a value of each lane.
  void spread(Table& table, Table& inner, const MapItem& item, const Transfer& transfer) {
    const Slot& from = tables_.slot(*table.region, transfer.from);
    const Slot& to = inner.region->slots[z(transfer.to)];
    const Column column = tables_.column(table, transfer.from);
    const int64_t* numbers = reinterpret_cast<const int64_t*>(inner.numbers->data());
    const int32_t* index = reinterpret_cast<const int32_t*>(inner.index->data());
    std::vector<int64_t> counts(z(table.lanes), 0);
    for (int64_t k = 0; k < inner.lanes; ++k) ++counts[z(index[k])];
    for (int64_t k = 0; k < table.lanes; ++k) {
      const int64_t length = shape_of(from, column, k)[0];
      if (length != counts[z(k)]) {
        operate_.lane = k;
        Stop stop{item.phase == 0 ? Stop::Kind::UnequalLanes : Stop::Kind::UnequalVisits};
        stop.a = counts[z(k)];
        stop.b = length;
        throw stop;
      }
    }
    if (inner.lanes == 0) return;
    if (!to.is_dynamic && table.lanes == 1 && to.bytes > 0) {
      const Column view = from.is_dynamic ? Column{column.lane<Box>(0)->block, column.lane<Box>(0)->data, to.bytes}
                                          : Column{column.block, column.data, to.bytes};
      if (view.block != nullptr) ++view.block->refs;
      tables_.drop(inner, transfer.to);
      inner.columns[transfer.to] = view;
      return;
    }
    std::byte* out = tables_.own(inner, transfer.to);
    for (int64_t k = 0; k < inner.lanes; ++k) {
      const int64_t lane = index[k];
      const int64_t* shape = shape_of(from, column, lane);
      int64_t bytes = size_of(from.dtype);
      for (int axis = 1; axis < from.rank(); ++axis) bytes *= shape[axis];
      const std::byte* data = from.is_dynamic ? column.lane<Box>(lane)->data : column.lane<std::byte>(lane);
      if (!to.is_dynamic) {
        if (bytes > 0) std::memcpy(out + k * to.bytes, data + numbers[k] * bytes, z(bytes));
        continue;
      }
      Block* block = tables_.pool.take(bytes);
      if (bytes > 0) std::memcpy(block->data(), data + numbers[k] * bytes, z(bytes));
      reinterpret_cast<Box*>(out)[k] = {block, block->data(), tables_.shape({shape + 1, z(from.rank() - 1)})};
    }
  }

  void leave_map(Table& table, const MapItem& item) {
    Table* inner = table.maps[z(item.map)];
    for (const LoopItem::Exit& result : item.results) stack(table, *inner, result);
    if (item.phase + 1 >= inner->visits) {
      table.maps[z(item.map)] = nullptr;
      tables_.end(inner);
    }
  }

  /// The results of the lanes of a map, stacked.
  void stack(Table& table, Table& inner, const LoopItem::Exit& result) {
    const Slot& from = tables_.slot(*inner.region, result.from);
    const Slot& to = table.region->slots[z(result.to)];
    const Column column = tables_.column(inner, result.from);
    const int32_t* index = reinterpret_cast<const int32_t*>(inner.index->data());
    std::byte* out = tables_.own(table, result.to, table.lanes == 1);
    int64_t first = 0;
    for (int64_t lane = 0; lane < table.lanes; ++lane) {
      int64_t last = first;
      while (last < inner.lanes && index[last] == lane) ++last;
      std::vector<int64_t> shape{last - first};
      if (first == last) {
        for (size_t axis = 1; axis < to.shape.size(); ++axis)
          shape.push_back(to.shape[axis] == kUnknown ? 0 : to.shape[axis]);
      } else {
        const int64_t* row = shape_of(from, column, first);
        shape.insert(shape.end(), row, row + from.rank());
        for (int64_t k = first + 1; from.is_dynamic && k < last; ++k)
          if (column.lane<Box>(k)->shape != row) unequal(table, inner.site, lane, from, column, first, last);
      }
      int64_t bytes = size_of(to.dtype);
      for (size_t axis = 1; axis < shape.size(); ++axis) bytes *= shape[axis];
      std::byte* data = nullptr;
      if (to.is_dynamic) {
        Block* block = tables_.pool.take(bytes * shape[0]);
        reinterpret_cast<Box*>(out)[lane] = {block, block->data(), tables_.shape(shape)};
        data = block->data();
      } else {
        if (shape[0] != to.shape[0]) throw Stop{Stop::Kind::Internal};
        data = out + lane * to.bytes;
      }
      for (int64_t k = first; k < last && bytes > 0; ++k)
        std::memcpy(data + (k - first) * bytes, from.is_dynamic ? column.lane<Box>(k)->data : column.lane<std::byte>(k),
                    z(bytes));
      first = last;
    }
  }

  [[noreturn]] void unequal(Table& table, int32_t site, int64_t lane, const Slot& slot, const Column& column,
                            int64_t first, int64_t last) {
    at_ = &table;
    operate_.lane = lane;
    Stop stop{Stop::Kind::UnequalResults};
    stop.site = site;
    for (int64_t k = first; k < last; ++k) {
      const Box* box = column.lane<Box>(k);
      stop.values.push_back(value_of({box->data, 0, box->shape, slot.rank(), slot.dtype}));
      stop.types.push_back({slot.dtype, slot.rank()});
    }
    throw stop;
  }

  // -- entries -------------------------------------------------------------------------------------------------

  void read(Table& table, const ReadItem& item) {
    if (!item.is_shared) {
      read_entry(tables_, table, item);
      return;
    }
    const Slot& from = main_->region->slots[z(item.index)];
    Column column = main_->columns[item.index];
    if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
    column.stride = 0;
    if (is_worker_) column.block = nullptr;
    tables_.take(table, item.to, from, column, nullptr, 1);
  }

  void collect(Table& table, const CollectItem& item) {
    stats_.fired[z(item.node)] += table.lanes;
    collect_into_entries(tables_, table, item, tables_.scratch());
  }

  void collected(Table& table, const CollectedItem& item) {
    std::vector<Entry*> entries;
    for (Entry& entry : table.calls[z(item.call)].entries) entries.push_back(&entry);
    take_collected(tables_, table, item, entries);
  }

  const Plan& plan_;
  const RunOptions& options_;
  Host& host_;
  RunStats& stats_;
  Tables tables_;
  Operate operate_;
  Narrow narrow_;
  QuietHost quiet_;
  StepClock clock_;
  bool is_narrow_ = false;
  bool is_worker_ = false;
  int64_t outer_depth_ = 0;  ///< of a worker: that of the chunks that it was given
  int64_t task_ = 0;         ///< of a worker: its number
  const std::atomic<int64_t>* first_failed_ = nullptr;
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
  std::chrono::steady_clock::time_point began_, last_poll_;
  uint64_t polls_ = 0;
  int64_t base_frames_ = 0, base_bytes_ = 0;  ///< that were there when main called
};

}  // namespace

std::vector<Value> run_lockstep(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                                RunStats& stats) {
  Lockstep run(plan, options, host, stats);
  return run.run(inputs);
}

}  // namespace undertow
