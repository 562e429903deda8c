#include "narrow/run.h"

#include <algorithm>

#include "memory/lanes.h"
#include "run/values.h"
#include "run/waves.h"
#include "undertow/elementwise.h"
#include "undertow/size.h"

namespace undertow {
namespace {

using Code = NarrowCode;

/// The labels of the loops that a frame is in.
void add_loops(const NarrowFrame& frame, std::vector<Label>& labels) {
  const std::vector<NarrowLoop>& loops = frame.body->loops;
  if (loops.empty()) return;
  for (int32_t loop = frame.body->asides[z(frame.pc)].loop; loop >= 0; loop = loops[z(loop)].outer)
    labels.push_back({loops[z(loop)].site, static_cast<int64_t>(frame.cells[loops[z(loop)].counter])});
}

// Rare operations are functions of their own, never inlined: the instruction loop needs the registers.

[[gnu::noinline]] void poll(Run& run) { run.poll.look(); }

[[gnu::noinline]] bool has_fault(const Elementwise& op, uint64_t second) {
  return op.scan != nullptr && op.scan(&second, 1) >= 0;
}

[[gnu::noinline]] uint64_t apply(const Elementwise& op, uint64_t a, uint64_t b, uint64_t c) {
  alignas(64) std::byte cells[4][128];
  lanes::put_cell(cells[0], a, 8);
  lanes::put_cell(cells[1], b, 8);
  lanes::put_cell(cells[2], c, 8);
  op.flat[0](cells[0], cells[1], cells[2], cells[3], 1);
  return lanes::cell_at(cells[3], size_of(op.output));
}

[[gnu::noinline]] const std::byte* find_shared(const Run& run, int32_t slot) {
  const Column column = run.shared(slot);
  if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
  return column.data;
}

[[gnu::noinline]] void collect(Tables& tables, Sum& sum, uint64_t value, int64_t bytes) {
  if (sum.whole == nullptr) {
    sum.whole = tables.pool.take(8);
    sum.bytes = bytes;
    lanes::put_cell(sum.whole->data(), 0, 8);
  }
  add_floats(bytes == 4 ? DType::F32 : DType::F64, sum.whole->data(), &value, 1);
}

}  // namespace

Narrow::Narrow(Run& run)
    : run_(run),
      plan_(run.plan),
      program_(*run.plan.narrow),
      tables_(run.tables),
      options_(run.options),
      stats_(run.stats) {}

/// Frames of a stopped run are not freed one by one: there may be millions.
Narrow::~Narrow() {
  for (Segment& segment : segments_) tables_.pool.drop(segment.block);
}

void Narrow::drop_entry(NarrowFrame& frame, int32_t cell) {
  auto* entry = reinterpret_cast<Entry*>(frame.cells[cell]);
  if (entry == nullptr) return;
  tables_.drop_sums(*entry);
  entry->sums.clear();
  entry->values.clear();
  entries_.give(entry);
  frame.cells[cell] = 0;
}

void Narrow::open_segment(int64_t bytes) {
  const int64_t room = std::max<int64_t>(bytes, segments_.empty() ? 1 << 16 : 1 << 20);
  segments_.push_back({tables_.pool.take(room), free_, end_});
  free_ = segments_.back().block->data();
  end_ = free_ + room;
}

inline NarrowFrame* Narrow::push(const NarrowBody& body) {
  if (end_ - free_ < body.bytes) [[unlikely]]
    open_segment(body.bytes);
  auto* frame = reinterpret_cast<NarrowFrame*>(free_);
  free_ += body.bytes;
  frame->below = top_;
  frame->body = &body;
  frame->is_over = false;
  for (int32_t cell : body.entry_cells) frame->cells[cell] = 0;
  top_ = frame;
  if (++tables_.frames > tables_.peak_frames) [[unlikely]] {
    tables_.peak_frames = tables_.frames;
    if (tables_.frames > options_.frames) throw OverLimit{OverLimit::Kind::Frames};
  }
  return frame;
}

inline void Narrow::pop(NarrowFrame* frame) {
  frame->is_over = true;
  --tables_.frames;
  for (int32_t cell : frame->body->entry_cells) drop_entry(*frame, cell);
  while (top_ != nullptr && top_->is_over) {
    free_ = reinterpret_cast<std::byte*>(top_);
    top_ = top_->below;
    if (const Segment& last = segments_.back(); free_ == last.block->data() && segments_.size() > 1) [[unlikely]] {
      free_ = last.free;
      end_ = last.end;
      tables_.pool.drop(last.block);
      segments_.pop_back();
    }
  }
}

/// Make the entry of a call, with its hoisted values.
Entry* Narrow::make_entry(NarrowFrame& frame, const NarrowCall& call) {
  drop_entry(frame, call.entry);  // of an earlier iteration
  Entry* entry = entries_.take();
  entry->region = nullptr;  // all values are cells
  frame.cells[call.entry] = reinterpret_cast<uint64_t>(entry);
  entry->sums.resize(call.hoists.size());
  for (Cell x : call.hoists) {
    const uint64_t* cell = x >= 0 ? &frame.cells[x] : &program_.constants[z(~x)];
    entry->values.push_back({nullptr, reinterpret_cast<std::byte*>(const_cast<uint64_t*>(cell)), 0});
  }
  return entry;
}

/// Push the frame of a new activation; its arguments are not yet written.
NarrowFrame* Narrow::call(const Invocation& invocation, const Part& part, int64_t lane) {
  const int32_t body = part.item->body;
  NarrowFrame* frame = push(*program_.bodies[z(body)]);
  frame->caller = nullptr;
  frame->call = nullptr;
  frame->site = part.item->site;
  frame->visits = invocation.visits;
  frame->entry = plan_.regions[z(body)].hoisted == 0 ? nullptr : part.entry_of(lane);
  frame->depth = invocation.depth;
  ++stats_.activations;
  return frame;
}

void Narrow::end(NarrowFrame* frame) { pop(frame); }

/// Set the node and tag of an exception.
Position Narrow::position() const {
  const NarrowInstr& at = now_->body->code[z(now_->pc)];
  const int32_t loop = now_->body->asides[z(now_->pc)].loop;
  if (at.code == Code::Call || at.code == Code::Resume) return {-1, program_.calls[z(at.extra)].site};
  if (at.node < 0 && loop >= 0) return {-1, now_->body->loops[z(loop)].site};
  return {at.node, -1};
}

Place Narrow::where(std::vector<Label>& labels) const {
  if (now_ != nullptr) labels.reserve(z(now_->depth) + 64);  // growing step by step would double the time
  for (const NarrowFrame* frame = now_; frame != nullptr; frame = frame->caller) {
    add_loops(*frame, labels);
    labels.push_back({frame->site, -1});
  }
  return place_;
}

/// The frame `deepest_` returns: record its label, and continue with its caller.
void Narrow::climb() {
  std::vector<Label>& labels = stats_.deepest;
  // Reserve at once: growing step by step would leave large free blocks behind.
  if (labels.empty() && labels.capacity() < z(stats_.max_depth)) labels.reserve(2 * z(stats_.max_depth));
  labels.push_back({deepest_->site, -1});
  deepest_ = deepest_->caller;
  if (deepest_ != nullptr)
    add_loops(*deepest_, labels);
  else
    run_.go_on_deepest(place_);
}

void Narrow::fault(const NarrowFrame& frame, const NarrowInstr& at) {
  const Elementwise* each = plan_.kernels[z(at.extra)]->elementwise();
  uint64_t cells[3] = {value(frame, at.a), value(frame, at.b),
                       value(frame, frame.body->asides[z(&at - frame.body->code.data())].c)};
  View views[3];
  for (int k = 0; k < each->arity; ++k) views[k] = {&cells[k], 0, nullptr, 0, each->inputs[k]};
  throw stop_of(Stop::Kind::Fault, at.node, {views, z(each->arity)});
}

/// The operands of an operator that takes an element of an array.
void Narrow::look(const NarrowFrame& frame, const NarrowPick& pick, View* views) const {
  for (const NarrowPick::Input& input : pick.inputs) {
    const Slot& slot = *input.slot;
    const bool is_array = slot.is_dynamic || slot.rank() > 0;
    const uint64_t* cell = input.cell < 0 ? &program_.constants[z(~input.cell)] : &frame.cells[input.cell];
    *views = {const_cast<uint64_t*>(cell), 0, slot.shape.data(), slot.rank(), slot.dtype};
    if (is_array && input.cell < 0) {
      const Constant& constant = plan_.constants[z(~input.cell)];
      views->data = constant.data;
      views->shape = constant.slot.shape.data();
    } else if (is_array) {
      views->data = reinterpret_cast<void*>(cell[0]);
      views->shape = reinterpret_cast<const int64_t*>(cell[1]);
    }
    ++views;
  }
}

/// A check does not hold: its operands are what the message shows.
void Narrow::fail(const NarrowFrame& frame, const NarrowInstr& at) {
  const NarrowPick& operands = program_.picks[z(at.extra)];
  View views[kMostAxes + 1];
  look(frame, operands, views);
  throw stop_of(Stop::Kind::Fault, at.node, {views, operands.inputs.size()});
}

uint64_t Narrow::pick(const NarrowFrame& frame, const NarrowInstr& at) {
  const NarrowPick& pick = program_.picks[z(at.extra)];
  View views[kMostAxes + 1];
  look(frame, pick, views);
  alignas(64) uint64_t found[16] = {};
  const View out{found, 8, nullptr, 0, views[0].dtype};
  if (!pick.kernel->run(1, views, &out, tables_.scratch())) return found[0];
  throw stop_of(Stop::Kind::Fault, at.node, {views, pick.inputs.size()});
}

/// Load an array: its data, and the shape from its box or its slot.
void Narrow::read_array(const Slot& given, const Column& column, uint64_t* to) {
  if (column.data == nullptr) throw Stop{Stop::Kind::Internal};
  const Box* box = given.is_dynamic ? column.lane<Box>(0) : nullptr;
  to[0] = reinterpret_cast<uint64_t>(box != nullptr ? box->data : column.data);
  to[1] = reinterpret_cast<uint64_t>(box != nullptr ? box->shape : given.shape.data());
}

/// The caller's slot of a hoisted value.
const Slot& Narrow::given(const Entry& entry, int32_t index) const {
  if (entry.region == nullptr || z(index) >= entry.values.size()) throw Stop{Stop::Kind::Internal};
  return tables_.slot(*entry.region, entry.item->hoists[z(index)]);
}

/// Collect a scalar for one element of an array: as one more row, of one element.
void Narrow::collect_at(Entry& entry, const NarrowInstr& at, uint64_t value, uint64_t number) {
  constexpr int64_t kFirst = 16;
  if (given(entry, at.extra).rank() != 1) throw Stop{Stop::Kind::Internal};
  std::vector<Sum::Rows>& all = entry.sums[z(at.extra)].rows;
  if (all.empty() || all.back().rows->refs > 1 || all.back().bytes != all.back().count * at.b) {
    all.push_back({0, 0, tables_.pool.take(8 * kFirst), tables_.pool.take(at.b * kFirst)});
  } else if (const int64_t count = all.back().count; count >= kFirst && (count & (count - 1)) == 0) {  // full
    for (Block** block : {&all.back().numbers, &all.back().rows}) {
      const int64_t bytes = count * (block == &all.back().rows ? at.b : 8);
      Block* larger = tables_.pool.take(2 * bytes);
      lanes::copy(larger->data(), (*block)->data(), bytes);
      tables_.pool.drop(*block);
      *block = larger;
    }
  }
  Sum::Rows& rows = all.back();
  const int64_t place = at.constant == 4 ? as<int32_t>(number) : as<int64_t>(number);
  reinterpret_cast<int64_t*>(rows.numbers->data())[rows.count] = place;
  lanes::put_cell(rows.rows->data() + rows.bytes, value, at.b);
  ++rows.count;
  rows.bytes += at.b;
}

void Narrow::run(NarrowFrame* frame, int32_t phase) {
  const NarrowInstr* code = frame->body->code.data();
  const NarrowInstr* at = code + frame->body->entries[z(phase)];
  uint64_t* cells = frame->cells;
  const uint64_t* const constants = program_.constants.data();
  const NarrowCall* const calls = program_.calls.data();
  int64_t* const fired = stats_.fired.data();
  const Column* const main = run_.main_columns;
  const auto number = [](const std::byte* from, int64_t bytes) {  // of 1, 4 or 8 bytes
    return bytes == 8 ? lanes::cell_at(from, 8) : bytes == 4 ? lanes::cell_at(from, 4) : lanes::cell_at(from, 1);
  };
  const auto cell = [&](Cell x) -> const uint64_t& { return x >= 0 ? cells[x] : constants[~x]; };
  try {
    for (;;) {
      switch (at->code) {
        case Code::Move:
          cells[at->to] = cell(at->a);
          if (at->node >= 0) ++fired[at->node];
          break;
        case Code::Flat: {
          const Elementwise& op = *plan_.kernels[z(at->extra)]->elementwise();
          if (has_fault(op, cell(at->b))) fault(*frame, *at);
          cells[at->to] = apply(op, cell(at->a), cell(at->b), cell(frame->body->asides[z(at - code)].c));
          ++fired[at->node];
          break;
        }
        case Code::Check:
          if ((cell(at->a) & 0xff) == 0) fail(*frame, *at);
          ++fired[at->node];
          break;
        case Code::Jump: at = code + at->extra; continue;
        case Code::Unless:
          if ((cell(at->a) & 0xff) == 0) {
            at = code + at->extra;
            continue;
          }
          break;
        case Code::Count:
          cells[at->to] = at->extra == 1 ? 0 : cells[at->to] + 1;
          if (at->extra != 1 && (++polls_ & 0xfff) == 0) poll(run_);
          break;
        // Apart from Resume, which begins and ends alike: as one case, gradients took 1 to 3 % longer.
        case Code::Call: {
          const NarrowCall& call = calls[at->extra];
          frame->pc = static_cast<int32_t>(at - code);
          if ((++polls_ & 0xfff) == 0) [[unlikely]]
            poll(run_);
          NarrowFrame* child = push(*call.body);
          child->caller = frame;
          child->call = &call;
          child->site = call.site;
          child->visits = call.visits[z(frame->visits - 1)];
          child->depth = frame->depth + 1;
          child->entry = frame->entry;
          ++stats_.activations;
          if (child->depth > stats_.max_depth) [[unlikely]] {
            if (child->depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
            stats_.max_depth = child->depth;
            stats_.deepest.clear();
            deepest_ = child;
          }
          if (call.entry >= 0) [[unlikely]]
            child->entry = make_entry(*frame, call);
          for (const NarrowMove& move : call.arguments) child->cells[move.to] = cell(move.from);
          if (call.frame >= 0) cells[call.frame] = reinterpret_cast<uint64_t>(child);
          frame = child;
          cells = frame->cells;
          code = call.body->code.data();
          at = code + call.body->entries[0];
          continue;
        }
        case Code::Resume: {
          const NarrowCall& call = calls[at->extra];
          frame->pc = static_cast<int32_t>(at - code);
          if ((++polls_ & 0xfff) == 0) [[unlikely]]
            poll(run_);
          auto* child = reinterpret_cast<NarrowFrame*>(cells[call.frame]);
          for (const NarrowMove& move : call.arguments) child->cells[move.to] = cell(move.from);
          child->call = &call;
          frame = child;
          cells = frame->cells;
          code = call.body->code.data();
          at = code + call.body->entries[z(call.phase)];
          continue;
        }
        case Code::Return: {
          NarrowFrame* const caller = frame->caller;
          if (frame == deepest_) climb();
          if (caller == nullptr) return;
          const NarrowCall& call = *frame->call;
          for (const NarrowMove& move : call.results) caller->cells[move.to] = cell(move.from);
          if (call.phase + 1 == frame->visits) pop(frame);
          frame = caller;
          cells = frame->cells;
          code = frame->body->code.data();
          at = code + frame->pc + 1;
          continue;
        }
        case Code::ReadEntry: cells[at->to] = number(frame->entry->values[z(at->extra)].data, at->a); break;
        case Code::ReadShared:
          cells[at->to] = number(
              main != nullptr && main[at->extra].data != nullptr ? main[at->extra].data : find_shared(run_, at->extra),
              at->a);
          break;
        case Code::ReadArray:
          read_array(given(*frame->entry, at->extra), frame->entry->values[z(at->extra)], &cells[at->to]);
          break;
        case Code::ReadSharedArray:
          read_array(plan_.regions[0].slots[z(at->extra)], run_.shared(at->extra), &cells[at->to]);
          break;
        case Code::Pick:
          cells[at->to] = pick(*frame, *at);
          ++fired[at->node];
          break;
        case Code::CollectAt:
          collect_at(*frame->entry, *at, cell(at->a), cell(frame->body->asides[z(at - code)].c));
          ++fired[at->node];
          break;
        case Code::Collect:
          collect(tables_, frame->entry->sums[z(at->extra)], cell(at->a), at->b);
          ++fired[at->node];
          break;
        case Code::Collected: {
          const Sum& sum = reinterpret_cast<Entry*>(cells[at->a])->sums[z(at->extra)];
          cells[at->to] = sum.whole != nullptr ? lanes::cell_at(sum.whole->data(), at->b) : 0;
          break;
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch"  // the enum names a scalar operator once, but it has eight codes
        // The tables of operators are written out here and in expand/run.cpp: operands and results stand elsewhere.
        // clang-format off
#define UNDERTOW_CASE(number, type, name, result)                                                            \
        case of(Code::name, number, 0): {                                                                   \
          using T = type;                                                                                   \
          [[maybe_unused]] const T x = as<T>(cells[at->a]), y = as<T>(cells[at->b]);                        \
          result;                                                                                           \
        } break;                                                                                            \
        case of(Code::name, number, 1): {                                                                   \
          using T = type;                                                                                   \
          [[maybe_unused]] const T x = as<T>(cells[at->a]), y = as<T>(at->constant);                        \
          result;                                                                                           \
        } break;
#define UNDERTOW_GIVES(type, value) cells[at->to] = cell_of<type>(static_cast<type>(value)); ++fired[at->node]
#define UNDERTOW_NUMBER(name, op, mirrored, dtypes, value)                                                  \
        UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, UNDERTOW_GIVES(T, value))
#define UNDERTOW_DIVISION(name, op, mirrored, dtypes, value)                                                \
        UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, if (y == 0) fault(*frame, *at); UNDERTOW_GIVES(T, value))
#define UNDERTOW_TEST(name, op, mirrored, dtypes, test)                                                     \
        UNDERTOW_OF_##dtypes(UNDERTOW_CASE, name, UNDERTOW_GIVES(bool, test))                               \
        UNDERTOW_OF_##dtypes(UNDERTOW_CASE, Unless##name, const bool is_so = (test);                        \
                             cells[at->to] = is_so; ++fired[at->node];                                      \
                             if (!is_so) { at = code + at->extra; continue; })
#define UNDERTOW_SINGLE(name, op, from, type, to_dtype, to_type, value)                                     \
        case Code::name: {                                                                                  \
          [[maybe_unused]] const type x = as<type>(cells[at->a]), y = as<type>(cells[at->b]);               \
          UNDERTOW_GIVES(to_type, value);                                                                   \
        } break;
        UNDERTOW_ARITHMETIC(UNDERTOW_NUMBER)
        UNDERTOW_DIVISIONS(UNDERTOW_DIVISION)
        UNDERTOW_TESTS(UNDERTOW_TEST)
        UNDERTOW_SINGLES(UNDERTOW_SINGLE)
#undef UNDERTOW_SINGLE
#undef UNDERTOW_TEST
#undef UNDERTOW_DIVISION
#undef UNDERTOW_NUMBER
#undef UNDERTOW_GIVES
#undef UNDERTOW_CASE
          // clang-format on
        default: throw Stop{Stop::Kind::Internal};
      }
#pragma GCC diagnostic pop
      ++at;
    }
  } catch (...) {
    frame->pc = static_cast<int32_t>(at - code);
    now_ = frame;
    deepest_ = nullptr;  // not needed if the run fails
    run_.operators.position = position();
    throw;
  }
}

}  // namespace undertow
