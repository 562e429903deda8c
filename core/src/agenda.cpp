// The agenda schedule: every frame goes its own way, and frames that come to the same stage run it together.
//
// A frame keeps its values between stages: small ones in itself, others by reference. A stage runs on a table that is
// made for it: the values that it needs, of all frames that have come there, side by side. What it entered is counted
// in each frame; when all of that has come back, the frame waits for its next stage. Early stages go first, so that
// calls are made before those that wait for results, which then are many.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "entries.h"
#include "operate.h"
#include "table.h"
#include "undertow/run.h"

namespace undertow {
namespace {

size_t z(int64_t n) { return static_cast<size_t>(n); }

constexpr int64_t kSmall = 64;  // bytes of a value that stands in the frame itself

bool is_small(const Slot& slot) { return !slot.is_dynamic && slot.bytes <= kSmall; }

// ------------------------------------------------------------------------------------------------------------------
// What each stage reads and leaves behind

struct StagePlan {
  std::vector<int32_t> loads;   ///< slots that it needs and does not make
  std::vector<int32_t> stores;  ///< slots that it makes and others need
  bool is_heavy = false;        ///< it works on arrays
};

struct RegionPlan {
  std::vector<int64_t> places;                 ///< of each slot in a frame, in bytes
  int64_t size = 0;                            ///< of all slots
  std::vector<std::vector<StagePlan>> stages;  ///< by phase
};

class Outline {
 public:
  explicit Outline(const Plan& plan) : plan_(plan) {
    regions.resize(plan.regions.size());
    used_.resize(plan.regions.size());
    for (size_t r = 0; r < plan.regions.size(); ++r) {
      RegionPlan& made = regions[r];
      for (const Slot& slot : plan.regions[r].slots) {
        made.places.push_back(made.size);
        made.size += is_small(slot) ? std::max<int64_t>(8, (slot.bytes + 7) / 8 * 8) : int64_t{sizeof(Box)};
      }
      for (const auto& list : plan.regions[r].results)
        for (int32_t slot : list) use(static_cast<int32_t>(r), slot, -1);
    }
    for (size_t r = 0; r < plan.regions.size(); ++r) {
      int32_t number = 0;
      for (const Program& program : plan.regions[r].phases)
        for (const Stage& stage : program.stages) look(static_cast<int32_t>(r), stage, number++);
    }
    for (size_t r = 0; r < plan.regions.size(); ++r) write(static_cast<int32_t>(r));
  }

  std::vector<RegionPlan> regions;

 private:
  /// A slot is used in a stage (or, -1, elsewhere).
  void use(int32_t region, Operand x, int32_t stage) {
    if (x >= 0) used_[z(region)][x].insert(stage);
  }

  void look(int32_t r, const Stage& stage, int32_t number) {
    for (const Item& item : stage.straight) switch (item.kind) {
        case Item::Kind::Op:
          for (Operand x : plan_.ops[z(item.number)].inputs) use(r, x, number);
          break;
        case Item::Kind::Collect:
          for (Operand x : plan_.collects[z(item.number)].values) use(r, x, number);
          break;
        case Item::Kind::Collected:
          use(r, plan_.collecteds[z(item.number)].like, number);
          break;
        case Item::Kind::Read:
          if (plan_.reads[z(item.number)].is_shared) use(0, plan_.reads[z(item.number)].index, -1);
          break;
        default:
          break;
      }
    for (const Item& item : stage.entered) switch (item.kind) {
        case Item::Kind::Branch: {
          const BranchItem& branch = plan_.branches[z(item.number)];
          use(r, branch.pred, number);
          for (int side = 0; side < 2; ++side) {
            for (const Transfer& t : branch.transfers[side]) use(r, t.from, number);
            for (const MergeRow& merge : branch.merges) use(branch.regions[side], merge.sides[side], -1);
          }
          break;
        }
        case Item::Kind::Call: {
          const CallItem& call = plan_.calls[z(item.number)];
          for (Operand x : call.arguments) use(r, x, number);
          for (Operand x : call.hoists) use(r, x, -1);  // entries point to it
          break;
        }
        case Item::Kind::Loop: {
          const LoopItem& loop = plan_.loops[z(item.number)];
          for (const Transfer& t : loop.variables) use(r, t.from, number);
          for (const Transfer& t : loop.outers) {
            use(r, t.from, number);
            use(loop.body, t.to, -1);
          }
          for (const LoopItem::Exit& exit : loop.exits) use(loop.body, exit.from, -1);
          for (const Stage& inner : plan_.regions[z(loop.body)].phases[0].stages)
            for (const Item& found : inner.entered)
              if (found.kind == Item::Kind::Branch && plan_.branches[z(found.number)].branch == loop.branch)
                for (Operand x : loop.next) use(plan_.branches[z(found.number)].regions[0], x, -1);
          break;
        }
        case Item::Kind::Map: {
          const MapItem& map = plan_.maps[z(item.number)];
          if (map.phase == 0) use(r, map.counted, number);
          for (const Transfer& t : map.mapped) use(r, t.from, number);
          for (const Transfer& t : map.outers) use(r, t.from, number);
          for (const LoopItem::Exit& result : map.results) use(map.body, result.from, -1);
          break;
        }
        default:
          break;
      }
  }

  void write(int32_t r) {
    int32_t number = 0;
    for (const Program& program : plan_.regions[z(r)].phases) {
      regions[z(r)].stages.emplace_back();
      for (const Stage& stage : program.stages) {
        std::set<int32_t> made;
        for (const Item& item : stage.straight) switch (item.kind) {
            case Item::Kind::Op:
              for (int32_t to : plan_.ops[z(item.number)].outputs) made.insert(to);
              break;
            case Item::Kind::Read:
              made.insert(plan_.reads[z(item.number)].to);
              break;
            case Item::Kind::Collected:
              for (int32_t to : plan_.collecteds[z(item.number)].to) made.insert(to);
              break;
            default:
              break;
          }
        made.erase(kNoSlot);
        StagePlan plan;
        for (const Item& item : stage.straight) plan.is_heavy = plan.is_heavy || is_heavy(r, item);
        for (const auto& [slot, stages] : used_[z(r)]) {
          const bool is_made = made.contains(slot);
          if (!is_made && stages.contains(number)) plan.loads.push_back(slot);
          if (is_made && (stages.size() > 1 || !stages.contains(number))) plan.stores.push_back(slot);
        }
        regions[z(r)].stages.back().push_back(std::move(plan));
        ++number;
      }
    }
  }

  bool is_heavy(int32_t r, const Item& item) const {
    if (item.kind == Item::Kind::Collect) return true;
    if (item.kind != Item::Kind::Op) return false;
    for (int32_t to : plan_.ops[z(item.number)].outputs)
      if (to != kNoSlot && !is_small(plan_.regions[z(r)].slots[z(to)])) return true;
    return false;
  }

  const Plan& plan_;
  std::vector<std::map<int32_t, std::set<int32_t>>> used_;
};

// ------------------------------------------------------------------------------------------------------------------
// Frames

struct Frame {
  const Region* region;
  int32_t number;  ///< of the region
  int32_t visits;
  int32_t phase = 0;
  int32_t stage = 0;
  int64_t pending = 0;
  Frame* parent = nullptr;
  const void* item = nullptr;  ///< of the parent: the branch, call, loop or map that it was entered by
  int32_t site = 0;
  int64_t index = -1;  ///< of an iteration, or of a lane
  Entry* entry = nullptr;
  int64_t depth = 0;
  std::vector<Frame*> branches;  ///< the side that was taken
  std::vector<Frame*> calls;
  std::vector<Entry*> entries;  ///< that calls made
  std::vector<std::vector<Frame*>> maps;
  std::vector<int64_t> left;  ///< of each map: lanes that have not come back
  Block* block = nullptr;
  std::byte* data = nullptr;
};

class Agenda {
 public:
  Agenda(const Plan& plan, const RunOptions& options, Host& host, RunStats& stats)
      : plan_(plan),
        outline_(plan),
        options_(options),
        host_(host),
        stats_(stats),
        tables_(plan, options.memory),
        operate_(plan, tables_, host, options, stats) {
    operate_.context = this;
    operate_.tick = [](void* self) { static_cast<Agenda*>(self)->poll(); };
    stats_.fired.assign(z(plan.nodes), 0);
    queues_.resize(plan.regions.size());
    for (size_t r = 0; r < plan.regions.size(); ++r)
      for (const Program& program : plan.regions[r].phases) queues_[r].emplace_back(program.stages.size() + 1);
  }

  std::vector<Value> run(std::span<const View> inputs) {
    began_ = last_poll_ = std::chrono::steady_clock::now();
    try {
      start(inputs);
      while (run_next()) {
      }
      return results();
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
    } catch (...) {  // the host's
      stats_.stopped = where();
      throw;
    }
  }

 private:
  // -- frames --------------------------------------------------------------------------------------------------

  Frame* make(int32_t region, Frame* parent, const void* item, int32_t visits) {
    const Region& from = plan_.regions[z(region)];
    Frame* frame = store_.take();
    frame->region = &from;
    frame->number = region;
    frame->visits = visits;
    frame->phase = frame->stage = frame->site = 0;
    frame->pending = 0;
    frame->index = -1;
    frame->parent = parent;
    frame->item = item;
    frame->entry = parent != nullptr ? parent->entry : nullptr;
    frame->depth = parent != nullptr ? parent->depth : 0;
    frame->branches.assign(z(from.branches), nullptr);
    frame->calls.assign(z(from.calls), nullptr);
    frame->entries.assign(z(from.calls), nullptr);
    frame->maps.resize(z(from.maps));
    frame->left.assign(z(from.maps), 0);
    const int64_t size = outline_.regions[z(region)].size;
    frame->block = tables_.pool.take(size);
    frame->data = frame->block->data();
    std::memset(frame->data, 0, z(size));
    if (from.kind != Region::Kind::Branch) {
      if (++frames_ > peak_frames_) {
        peak_frames_ = frames_;
        if (frames_ > options_.frames) throw OverLimit{OverLimit::Kind::Frames};
      }
    }
    return frame;
  }

  /// End a frame and what hangs on it.
  void end(Frame* root) {
    std::vector<Frame*> todo{root};
    while (!todo.empty()) {
      Frame* frame = todo.back();
      todo.pop_back();
      if (frame == nullptr) continue;
      for (Frame* kid : frame->branches) todo.push_back(kid);
      for (Frame* kid : frame->calls) todo.push_back(kid);
      for (const auto& lanes : frame->maps) todo.insert(todo.end(), lanes.begin(), lanes.end());
      for (Entry* entry : frame->entries)
        if (entry != nullptr) {
          for (Sum& sum : entry->sums) {
            tables_.pool.drop(sum.whole);
            for (Sum::Rows& rows : sum.rows) {
              tables_.pool.drop(rows.numbers);
              tables_.pool.drop(rows.rows);
            }
          }
          entry_store_.give(entry);
        }
      const RegionPlan& outline = outline_.regions[z(frame->number)];
      for (size_t slot = 0; slot < frame->region->slots.size(); ++slot)
        if (!is_small(frame->region->slots[slot]))
          tables_.pool.drop(reinterpret_cast<Box*>(frame->data + outline.places[slot])->block);
      tables_.pool.drop(frame->block);
      if (frame->region->kind != Region::Kind::Branch) --frames_;
      store_.give(frame);
    }
  }

  std::byte* place(Frame& frame, int32_t slot) const {
    return frame.data + outline_.regions[z(frame.number)].places[z(slot)];
  }

  /// A value of one frame, or a constant, as a column of one lane.
  Column column(Frame& frame, Operand x, const Slot*& slot) const {
    if (x < 0) {
      const Constant& constant = plan_.constants[z(~x)];
      slot = &constant.slot;
      return {nullptr, constant.data, 0};
    }
    slot = &frame.region->slots[z(x)];
    std::byte* at = place(frame, x);
    if (is_small(*slot)) return {nullptr, at, 0};
    const Box* box = reinterpret_cast<const Box*>(at);
    if (slot->is_dynamic) return {nullptr, at, 0};
    return {box->block, box->data, 0};
  }

  /// Put a value of a lane into a slot of a frame.
  void set(Frame& frame, int32_t number, const Slot& from_slot, const Column& from, int64_t lane) {
    const Slot& slot = frame.region->slots[z(number)];
    std::byte* to = place(frame, number);
    if (is_small(slot)) {
      std::memcpy(to, from.data + lane * from.stride, z(slot.bytes));
      return;
    }
    Box* box = reinterpret_cast<Box*>(to);
    Box made;
    if (from_slot.is_dynamic) {
      made = *from.lane<Box>(lane);
      if (made.block != nullptr) ++made.block->refs;
    } else if (is_small(from_slot)) {  // a small value where lengths are not known
      Block* block = tables_.pool.take(from_slot.bytes);
      std::memcpy(block->data(), from.data + lane * from.stride, z(from_slot.bytes));
      made = {block, block->data(), tables_.static_shape(from_slot)};
    } else {
      made = {from.block, from.data + lane * from.stride, tables_.static_shape(from_slot)};
      if (made.block != nullptr) ++made.block->refs;
    }
    tables_.pool.drop(box->block);
    *box = made;
  }

  void copy(Frame& to, int32_t number, Frame& from, Operand x) {
    const Slot* slot;
    const Column found = column(from, x, slot);
    set(to, number, *slot, found, 0);
  }

  // -- beginning and end ---------------------------------------------------------------------------------------

  void start(std::span<const View> inputs) {
    main_ = make(0, nullptr, nullptr, 1);
    now_ = main_;
    const Region& main = plan_.regions[0];
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int32_t number = main.params[0][k];
      if (number == kNoSlot) continue;
      const Slot& slot = main.slots[z(number)];
      if (is_small(slot)) {
        std::memcpy(place(*main_, number), inputs[k].data, z(inputs[k].bytes()));
        continue;
      }
      *reinterpret_cast<Box*>(place(*main_, number)) = tables_.lent(inputs[k]);
    }
    queue(main_);
  }

  std::vector<Value> results() {
    std::vector<Value> values;
    for (int32_t number : plan_.regions[0].results[0]) {
      if (number == kNoSlot) {
        values.emplace_back();
        continue;
      }
      const Slot& slot = plan_.regions[0].slots[z(number)];
      std::byte* at = place(*main_, number);
      View view{at, 0, slot.shape.data(), slot.rank(), slot.dtype};
      if (!is_small(slot)) {
        const Box* box = reinterpret_cast<const Box*>(at);
        if (box->data == nullptr) throw Stop{Stop::Kind::Internal};
        view.data = box->data;
        view.shape = box->shape;
      }
      values.push_back(value_of(view));
    }
    finish_stats();
    return values;
  }

  void finish_stats() {
    while (deepest_ != nullptr) climb();
    stats_.peak_frames = peak_frames_;
    stats_.peak_bytes = tables_.pool.peak();
  }

  std::vector<Label> tag(const Frame* frame) const {
    std::vector<Label> labels;
    for (; frame != nullptr; frame = frame->parent)
      if (frame->region->kind != Region::Kind::Branch && frame->region->kind != Region::Kind::Main)
        labels.push_back({frame->site, frame->index});
    return labels;
  }

  /// The deepest tag goes on one frame further up.
  void climb() {
    const Region::Kind kind = deepest_->region->kind;
    if (kind != Region::Kind::Branch) stats_.deepest.push_back({deepest_->site, deepest_->index});
    deepest_ = deepest_->parent;
    if (deepest_->region->kind == Region::Kind::Main) deepest_ = nullptr;
  }

  /// Say where the run was stopped.
  void locate(Stop& stop) {
    if (stop.tag.empty()) stop.tag = where();
    if (stop.node < 0 && stop.site < 0) {
      stop.node = operate_.doing.node;
      stop.site = operate_.doing.site;
    }
    finish_stats();
  }

  std::vector<Label> where() const {
    const int64_t lane = operate_.lane;
    if (!batch_.empty() && lane >= 0 && lane < static_cast<int64_t>(batch_.size())) return tag(batch_[z(lane)]);
    return tag(now_);
  }

  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - began_).count() >= options_.timeout) throw Stop{Stop::Kind::Timeout};
    if (now - last_poll_ > std::chrono::milliseconds(20)) {
      last_poll_ = now;
      host_.poll();
    }
  }

  // -- stages --------------------------------------------------------------------------------------------------

  /// Let a frame wait for its stage; at its end it goes back at once.
  void queue(Frame* frame) {
    while (frame != nullptr) {
      const Program& program = frame->region->phases[z(frame->phase)];
      if (z(frame->stage) < program.stages.size()) {
        queues_[z(frame->number)][z(frame->phase)][z(frame->stage)].push_back(frame);
        ++waiting_;
        return;
      }
      frame = go_back(frame);
    }
  }

  bool run_next() {
    if (waiting_ == 0) return false;
    poll();
    std::vector<Frame*>* best = nullptr;
    size_t stage_of_best = 0;
    int32_t phase_of_best = 0;
    bool is_heavy = true;
    for (size_t r = 0; r < queues_.size(); ++r)
      for (size_t phase = 0; phase < queues_[r].size(); ++phase)
        for (size_t stage = 0; stage + 1 < queues_[r][phase].size(); ++stage) {
          std::vector<Frame*>& found = queues_[r][phase][stage];
          if (found.empty()) continue;
          // Light stages first, so that as many frames as possible come to the heavy ones; then the one where most
          // wait, as the others become more meanwhile.
          const bool heavy = outline_.regions[r].stages[phase][stage].is_heavy;
          if (heavy && !is_heavy) continue;
          if (best == nullptr || heavy != is_heavy || found.size() > best->size()) {
            best = &found;
            stage_of_best = stage;
            phase_of_best = static_cast<int32_t>(phase);
            is_heavy = heavy;
          }
        }
    batch_.clear();
    const size_t count = std::min(best->size(), z(options_.width));
    batch_.assign(best->end() - static_cast<std::ptrdiff_t>(count), best->end());
    best->resize(best->size() - count);
    waiting_ -= static_cast<int64_t>(count);
    run_stage(batch_[0]->number, phase_of_best, static_cast<int32_t>(stage_of_best));
    batch_.clear();
    return true;
  }

  void run_stage(int32_t number, int32_t phase, int32_t stage_number) {
    const Region& region = plan_.regions[z(number)];
    const Stage& stage = region.phases[z(phase)].stages[z(stage_number)];
    const StagePlan& outline = outline_.regions[z(number)].stages[z(phase)][z(stage_number)];
    const int64_t lanes = static_cast<int64_t>(batch_.size());
    if (outline.is_heavy) {  // the others only lead there
      ++stats_.waves;
      stats_.lanes += lanes;
    }
    stats_.peak_width = std::max(stats_.peak_width, lanes);
    if (options_.is_traced) host_.wave(number, lanes, batch_[0]->depth, phase, stage_number);
    const int64_t before = tables_.frames;
    Table* table = tables_.make(region, lanes, 1);
    tables_.frames = before;
    give_entries(*table);
    for (int32_t slot : outline.loads) load(*table, slot);
    for (const Item& item : stage.straight) straight(*table, item);
    for (int32_t slot : outline.stores) {
      const Column from = table->columns[slot];
      if (from.data == nullptr) throw Stop{Stop::Kind::Internal};
      for (int64_t k = 0; k < lanes; ++k) set(*batch_[z(k)], slot, region.slots[z(slot)], from, k);
    }
    operate_.lane = -1;
    const std::vector<Frame*> batch = batch_;  // frames may be queued, and others made, from here on
    for (int64_t k = 0; k < lanes; ++k) {
      now_ = batch[z(k)];
      now_->pending = 1;
      for (const Item& item : stage.entered) enter(*now_, *table, k, item);
      come_back(now_);
    }
    tables_.frames += lanes;  // `end` takes them off
    if (region.kind == Region::Kind::Branch) tables_.frames -= lanes;
    tables_.end(table);
  }

  void give_entries(Table& table) {
    bool is_uniform = true;
    for (const Frame* frame : batch_) is_uniform = is_uniform && frame->entry == batch_[0]->entry;
    if (is_uniform) {
      table.entry = batch_[0]->entry;
      return;
    }
    table.entries = tables_.pool.take(8 * table.lanes);
    for (int64_t k = 0; k < table.lanes; ++k) reinterpret_cast<Entry**>(table.entries->data())[k] = batch_[z(k)]->entry;
  }

  /// The values of a slot, side by side.
  void load(Table& table, int32_t number) {
    const Slot& slot = table.region->slots[z(number)];
    const int64_t at = outline_.regions[z(batch_[0]->number)].places[z(number)];
    const auto box = [&](int64_t k) { return reinterpret_cast<const Box*>(batch_[z(k)]->data + at); };
    if (is_small(slot)) {
      std::byte* to = tables_.own(table, number);
      if (slot.bytes == 8) {
        for (int64_t k = 0; k < table.lanes; ++k) std::memcpy(to + 8 * k, batch_[z(k)]->data + at, 8);
      } else {
        for (int64_t k = 0; k < table.lanes; ++k)
          std::memcpy(to + slot.bytes * k, batch_[z(k)]->data + at, z(slot.bytes));
      }
      return;
    }
    if (slot.is_dynamic) {
      Box* boxes = reinterpret_cast<Box*>(tables_.own(table, number));
      for (int64_t k = 0; k < table.lanes; ++k) {
        boxes[k] = *box(k);
        if (boxes[k].block != nullptr) ++boxes[k].block->refs;
      }
      return;
    }
    const std::byte* first = box(0)->data;
    bool is_same = true, is_row = reinterpret_cast<uintptr_t>(first) % 64 == 0;
    for (int64_t k = 1; k < table.lanes && (is_same || is_row); ++k) {
      is_same = is_same && box(k)->data == first;
      is_row = is_row && box(k)->data == first + k * slot.bytes && box(k)->block == box(0)->block;
    }
    if (is_same || is_row) {
      Block* block = box(0)->block;
      if (block != nullptr) ++block->refs;
      table.columns[number] = {block, box(0)->data, is_same ? 0 : slot.bytes};
      return;
    }
    std::byte* to = tables_.own(table, number);
    for (int64_t k = 0; k < table.lanes; ++k) std::memcpy(to + k * slot.bytes, box(k)->data, z(slot.bytes));
  }

  /// Something that a frame entered has come back.
  void come_back(Frame* frame) {
    if (--frame->pending > 0) return;
    ++frame->stage;
    queue(frame);
  }

  // -- entering ------------------------------------------------------------------------------------------------

  Column value(Table& table, Operand x, const Slot*& slot) const {
    slot = &tables_.slot(*table.region, x);
    return tables_.column(table, x);
  }

  void hand(Frame& to, int32_t number, Table& table, Operand x, int64_t lane) {
    const Slot* slot;
    const Column from = value(table, x, slot);
    set(to, number, *slot, from, lane);
  }

  void enter(Frame& frame, Table& table, int64_t lane, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Branch:
        return enter_branch(frame, table, lane, plan_.branches[z(item.number)]);
      case Item::Kind::Call:
        return enter_call(frame, table, lane, plan_.calls[z(item.number)]);
      case Item::Kind::Loop:
        return enter_loop(frame, table, lane, plan_.loops[z(item.number)]);
      case Item::Kind::Map:
        return enter_map(frame, table, lane, plan_.maps[z(item.number)]);
      default:
        throw Stop{Stop::Kind::Internal};
    }
  }

  void begin(Frame* frame, int32_t phase) {
    frame->phase = phase;
    frame->stage = 0;
    queue(frame);
  }

  void enter_branch(Frame& frame, Table& table, int64_t lane, const BranchItem& item) {
    Frame*& side = frame.branches[z(item.branch)];
    const uint8_t taken = *table.columns[item.pred].lane<uint8_t>(lane) != 0 ? 0 : 1;
    if (side == nullptr) side = make(item.regions[taken], &frame, &item, frame.visits);
    side->item = &item;
    for (const Transfer& t : item.transfers[taken]) hand(*side, t.to, table, t.from, lane);
    ++frame.pending;
    begin(side, item.programs[taken]);
  }

  void enter_call(Frame& frame, Table& table, int64_t lane, const CallItem& item) {
    operate_.doing = {-1, item.site};
    Frame*& callee = frame.calls[z(item.call)];
    const Region& body = plan_.regions[z(item.body)];
    if (item.phase == 0) {
      const int32_t visits = item.visits[z(frame.visits - 1)];
      callee = make(item.body, &frame, &item, visits);
      callee->site = item.site;
      callee->depth = frame.depth + 1;
      ++stats_.activations;
      if (callee->depth > stats_.max_depth) {
        if (callee->depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
        stats_.max_depth = callee->depth;
        stats_.deepest.clear();
        deepest_ = callee;
      }
      if (item.makes_entry) {
        Entry* entry = entry_store_.take();
        *entry = {};
        entry->region = frame.region;
        entry->item = &item;
        entry->sums.resize(item.hoists.size());
        for (Operand x : item.hoists) {
          const Slot* slot;
          Column held = column(frame, x, slot);
          held.block = nullptr;  // the frame lives longer
          entry->values.push_back(held);
        }
        frame.entries[z(item.call)] = entry;
        callee->entry = entry;
      }
    }
    callee->item = &item;
    for (size_t k = 0; k < item.arguments.size(); ++k) {
      const int32_t to = body.params[z(item.phase)][k];
      if (to != kNoSlot) hand(*callee, to, table, item.arguments[k], lane);
    }
    ++frame.pending;
    begin(callee, item.phase);
  }

  void enter_loop(Frame& frame, Table& table, int64_t lane, const LoopItem& item) {
    operate_.doing = {-1, item.site};
    Frame* inner = make(item.body, &frame, &item, 1);
    inner->site = item.site;
    inner->index = 0;
    for (const auto* transfers : {&item.variables, &item.outers})
      for (const Transfer& t : *transfers) hand(*inner, t.to, table, t.from, lane);
    ++frame.pending;
    begin(inner, 0);
  }

  const int64_t* shape_of(const Slot& slot, const Column& from, int64_t lane) const {
    return slot.is_dynamic ? from.lane<Box>(lane)->shape : slot.shape.data();
  }

  void enter_map(Frame& frame, Table& table, int64_t lane, const MapItem& item) {
    operate_.doing = {-1, item.site};
    std::vector<Frame*>& lanes = frame.maps[z(item.map)];
    if (item.phase == 0) {
      const Slot* slot;
      const Column counted = value(table, item.counted, slot);
      const int64_t count = shape_of(*slot, counted, lane)[0];
      const int32_t visits = std::max(1, item.visits[z(frame.visits - 1)]);
      lanes.clear();
      for (int64_t k = 0; k < count; ++k) {
        lanes.push_back(make(item.body, &frame, &item, visits));
        lanes.back()->site = item.site;
        lanes.back()->index = k;
        for (const Transfer& t : item.outers) hand(*lanes.back(), t.to, table, t.from, lane);
      }
    }
    const int64_t count = static_cast<int64_t>(lanes.size());
    for (const Transfer& t : item.mapped) {
      const Slot* slot;
      const Column from = value(table, t.from, slot);
      const int64_t* shape = shape_of(*slot, from, lane);
      if (shape[0] != count) {
        Stop stop{item.phase == 0 ? Stop::Kind::UnequalLanes : Stop::Kind::UnequalVisits};
        stop.a = count;
        stop.b = shape[0];
        throw stop;
      }
      int64_t bytes = size_of(slot->dtype);
      for (int axis = 1; axis < slot->rank(); ++axis) bytes *= shape[axis];
      const Box* box = slot->is_dynamic ? from.lane<Box>(lane) : nullptr;
      std::byte* data = box != nullptr ? box->data : from.data + lane * from.stride;
      Block* block = box != nullptr ? box->block : from.block;
      for (int64_t k = 0; k < count; ++k) {
        std::byte* at = place(*lanes[z(k)], t.to);
        if (is_small(lanes[z(k)]->region->slots[z(t.to)])) {
          std::memcpy(at, data + k * bytes, z(bytes));
          continue;
        }
        if (block != nullptr) ++block->refs;
        Box* to = reinterpret_cast<Box*>(at);
        tables_.pool.drop(to->block);
        *to = {block, data + k * bytes, tables_.shape({shape + 1, z(slot->rank() - 1)})};
      }
    }
    if (count == 0) {
      leave_map(frame, item);
      return;
    }
    ++frame.pending;  // all lanes together
    frame.left[z(item.map)] = count;
    for (int64_t k = 0; k < count; ++k) {
      lanes[z(k)]->item = &item;
      begin(lanes[z(k)], item.phase);
    }
  }

  // -- going back ----------------------------------------------------------------------------------------------

  /// A frame is at the end of a phase. Gives the frame that may go on now, or null.
  Frame* go_back(Frame* frame) {
    Frame* parent = frame->parent;
    if (frame == deepest_) climb();
    switch (frame->region->kind) {
      case Region::Kind::Main:
        return nullptr;
      case Region::Kind::Branch: {
        const auto& item = *static_cast<const BranchItem*>(frame->item);
        const int side = &plan_.regions[z(item.regions[0])] == frame->region ? 0 : 1;
        for (const MergeRow& merge : item.merges) copy(*parent, merge.to, *frame, merge.sides[side]);
        if (frame->visits == 1 && item.is_last && parent->region->kind != Region::Kind::Loop) {
          parent->branches[z(item.branch)] = nullptr;
          end(frame);
        }
        break;
      }
      case Region::Kind::Function: {
        const auto& item = *static_cast<const CallItem*>(frame->item);
        for (size_t k = 0; k < item.results.size(); ++k)
          if (item.results[k] != kNoSlot)
            copy(*parent, item.results[k], *frame, frame->region->results[z(item.phase)][k]);
        if (item.phase + 1 == frame->visits) {
          parent->calls[z(item.call)] = nullptr;
          end(frame);
        }
        break;
      }
      case Region::Kind::Loop: {
        const auto& item = *static_cast<const LoopItem*>(frame->item);
        Frame* going = frame->branches[z(item.branch)];
        const bool goes_on = going != nullptr && going->region == &plan_.regions[z(going_region(item))];
        if (goes_on) {
          Frame* next = make(item.body, parent, &item, 1);
          next->site = item.site;
          next->index = frame->index + 1;
          for (size_t k = 0; k < item.variables.size(); ++k) copy(*next, item.variables[k].to, *going, item.next[k]);
          for (const Transfer& t : item.outers) copy(*next, t.to, *frame, t.to);
          end(frame);
          next->phase = 0;
          next->stage = 0;
          queue(next);
          return nullptr;
        }
        for (const LoopItem::Exit& exit : item.exits) copy(*parent, exit.to, *frame, exit.from);
        end(frame);
        break;
      }
      case Region::Kind::Map: {
        const auto& item = *static_cast<const MapItem*>(frame->item);
        if (--parent->left[z(item.map)] > 0) return nullptr;
        leave_map(*parent, item);
        break;
      }
    }
    if (--parent->pending > 0) return nullptr;
    ++parent->stage;
    return parent;
  }

  int32_t going_region(const LoopItem& item) const {
    for (const Stage& stage : plan_.regions[z(item.body)].phases[0].stages)
      for (const Item& inner : stage.entered)
        if (inner.kind == Item::Kind::Branch && plan_.branches[z(inner.number)].branch == item.branch)
          return plan_.branches[z(inner.number)].regions[0];
    throw Stop{Stop::Kind::Internal};
  }

  void leave_map(Frame& frame, const MapItem& item) {
    std::vector<Frame*>& lanes = frame.maps[z(item.map)];
    now_ = &frame;
    for (const LoopItem::Exit& result : item.results) stack(frame, lanes, result, plan_.regions[z(item.body)]);
    const bool is_over = lanes.empty() || item.phase + 1 >= lanes[0]->visits;
    if (is_over) {
      for (Frame* lane : lanes) end(lane);
      lanes.clear();
    }
  }

  void stack(Frame& frame, const std::vector<Frame*>& lanes, const LoopItem::Exit& result, const Region& body) {
    const Slot& to = frame.region->slots[z(result.to)];
    const Slot& from = tables_.slot(body, result.from);
    std::vector<int64_t> shape{static_cast<int64_t>(lanes.size())};
    std::vector<Column> values;
    for (Frame* lane : lanes) {
      const Slot* slot;
      Column found = column(*lane, result.from, slot);
      const int64_t* own = from.is_dynamic ? reinterpret_cast<const Box*>(found.data)->shape : from.shape.data();
      if (from.is_dynamic) found.data = reinterpret_cast<const Box*>(found.data)->data;
      if (values.empty()) shape.insert(shape.end(), own, own + from.rank());
      values.push_back(found);
      if (!std::equal(own, own + from.rank(), shape.begin() + 1)) unequal(frame, lanes, result, from);
    }
    if (lanes.empty())
      for (size_t axis = 1; axis < to.shape.size(); ++axis)
        shape.push_back(to.shape[axis] == kUnknown ? 0 : to.shape[axis]);
    if (!to.is_dynamic && shape != to.shape) throw Stop{Stop::Kind::Internal};
    int64_t bytes = size_of(to.dtype);
    for (size_t axis = 1; axis < shape.size(); ++axis) bytes *= shape[axis];
    std::byte* at = place(frame, result.to);
    if (!is_small(to)) {
      Block* block = tables_.pool.take(bytes * shape[0]);
      Box* box = reinterpret_cast<Box*>(at);
      tables_.pool.drop(box->block);
      *box = {block, block->data(), tables_.shape(shape)};
      at = block->data();
    }
    for (size_t k = 0; k < values.size() && bytes > 0; ++k)
      std::memcpy(at + static_cast<int64_t>(k) * bytes, values[k].data, z(bytes));
  }

  [[noreturn]] void unequal(Frame& frame, const std::vector<Frame*>& lanes, const LoopItem::Exit& result,
                            const Slot& slot) {
    Stop stop{Stop::Kind::UnequalResults};
    stop.site = lanes[0]->site;
    for (Frame* lane : lanes) {
      const Box* box = reinterpret_cast<const Box*>(place(*lane, result.from));
      stop.values.push_back(value_of({box->data, 0, box->shape, slot.rank(), slot.dtype}));
      stop.types.push_back({slot.dtype, slot.rank()});
    }
    stop.tag = tag(&frame);
    throw stop;
  }

  // -- entries -------------------------------------------------------------------------------------------------

  void straight(Table& table, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Op:
        return operate_.run(table, plan_.ops[z(item.number)]);
      case Item::Kind::Read: {
        const ReadItem& read = plan_.reads[z(item.number)];
        if (!read.is_shared) return read_entry(tables_, table, read);
        const Slot* slot;
        const Column from = column(*main_, read.index, slot);
        if (from.data == nullptr || (slot->is_dynamic && from.lane<Box>(0)->data == nullptr))
          throw Stop{Stop::Kind::Internal};
        return tables_.take(table, read.to, *slot, from, nullptr, 1);
      }
      case Item::Kind::Collect: {
        const CollectItem& collect = plan_.collects[z(item.number)];
        stats_.fired[z(collect.node)] += table.lanes;
        return collect_into_entries(tables_, table, collect, scratch_);
      }
      case Item::Kind::Collected: {
        const CollectedItem& collected = plan_.collecteds[z(item.number)];
        std::vector<Entry*> entries;
        for (Frame* frame : batch_) entries.push_back(frame->entries[z(collected.call)]);
        return take_collected(tables_, table, collected, entries);
      }
      default:
        throw Stop{Stop::Kind::Internal};
    }
  }

  const Plan& plan_;
  Outline outline_;
  const RunOptions& options_;
  Host& host_;
  RunStats& stats_;
  Tables tables_;
  Operate operate_;
  Scratch scratch_;
  Store<Frame> store_;
  Store<Entry> entry_store_;
  Frame* main_ = nullptr;
  Frame* now_ = nullptr;  ///< for tags
  /// The first at the greatest depth, or one that it stands in: each adds its label to the tag as it goes back.
  Frame* deepest_ = nullptr;
  std::vector<Frame*> batch_;
  std::vector<std::vector<std::vector<std::vector<Frame*>>>> queues_;  ///< by region, phase and stage
  int64_t waiting_ = 0;
  int64_t frames_ = 0, peak_frames_ = 0;
  std::chrono::steady_clock::time_point began_, last_poll_;
};

}  // namespace

std::vector<Value> run_agenda(const Plan& plan, std::span<const View> inputs, const RunOptions& options, Host& host,
                              RunStats& stats) {
  Agenda run(plan, options, host, stats);
  return run.run(inputs);
}

}  // namespace undertow
