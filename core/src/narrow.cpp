#include "narrow.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

namespace undertow {
namespace {

using Code = NarrowInstr::Code;

size_t z(int64_t n) { return static_cast<size_t>(n); }

bool is_scalar(const Slot& slot) { return !slot.is_dynamic && slot.rank() == 0; }

// ------------------------------------------------------------------------------------------------------------------
// Which groups

/// Looks at all that a group can reach.
class Finder {
 public:
  explicit Finder(const Plan& plan) : plan_(plan) {
    good_.assign(plan.regions.size(), 0);
    enters_.resize(plan.regions.size());
    find_calls();
    for (size_t number = 0; number < plan.regions.size(); ++number) {
      const Region& region = plan.regions[number];
      bool good = true;
      for (const Slot& slot : region.slots) good = good && is_scalar(slot);
      for (const Program& program : region.phases)
        for (const Stage& stage : program.stages) {
          int calls = 0;
          for (const auto* items : {&stage.straight, &stage.entered})
            for (const Item& item : *items) good = good && fits(number, item, calls);
          good = good && calls <= 1;
        }
      good_[number] = good ? 1 : 0;
    }
  }

  /// The bodies that run narrow: they, and all that they enter, are scalar and linear.
  std::vector<bool> bodies() const {
    std::vector<bool> body(plan_.regions.size(), true);
    for (size_t number = 0; number < plan_.regions.size(); ++number) {
      const Region& region = plan_.regions[number];
      if (good_[number] == 0) body[z(region.body)] = false;
      if (region.kind == Region::Kind::Main || region.kind == Region::Kind::Map) body[number] = false;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t number = 0; number < plan_.regions.size(); ++number) {
        const auto own = z(plan_.regions[number].body);
        for (int32_t entered : enters_[number])
          if (body[own] && !body[z(entered)]) {
            body[own] = false;
            changed = true;
          }
      }
    }
    return body;
  }

 private:
  bool fits(size_t region, const Item& item, int& calls) {
    const auto at = z(item.number);
    switch (item.kind) {
      case Item::Kind::Op: {
        const OpItem& op = plan_.ops[at];
        if (op.kernel < 0 || op.outputs.size() != 1 || op.outputs[0] == kNoSlot || op.inputs.size() > 3) return false;
        for (Operand x : op.inputs)
          if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        const std::string_view name = plan_.kernel_ops[z(op.kernel)];
        if (name == "identity" || name == "stop_gradient" || name == "fill") return op.inputs.size() == 1;
        return plan_.kernels[z(op.kernel)]->elementwise() != nullptr;
      }
      case Item::Kind::Branch: {
        for (const MergeRow& merge : plan_.branches[at].merges)
          for (Operand x : merge.sides)
            if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        // Calls on both sides are one call of each lane.
        calls += has_calls(Item{Item::Kind::Branch, item.number}) ? 1 : 0;
        return true;
      }
      case Item::Kind::Call:
        ++calls;
        enters_[region].push_back(plan_.calls[at].body);
        for (Operand x : plan_.calls[at].arguments)
          if (x < 0 && !is_scalar(plan_.constants[z(~x)].slot)) return false;
        return true;
      case Item::Kind::Loop:
        calls += has_calls(item) ? 1 : 0;
        enters_[region].push_back(plan_.loops[at].body);
        return true;
      case Item::Kind::Map:
      case Item::Kind::Fused:
        return false;
      case Item::Kind::Read:
        return true;
      case Item::Kind::Collect:
        return plan_.collects[at].kind == 0;
      case Item::Kind::Collected:
        return plan_.collecteds[at].to[1] == kNoSlot && plan_.collecteds[at].to[0] != kNoSlot;
    }
    return false;
  }

  /// In which phases of which regions calls are made. What stands inside has a higher number; where not, say yes.
  void find_calls() {
    calls_.resize(plan_.regions.size());
    for (size_t number = plan_.regions.size(); number-- > 0;)
      for (const Program& program : plan_.regions[number].phases) {
        bool found = false;
        for (const Stage& stage : program.stages)
          for (const Item& item : stage.entered) found = found || has_calls(item);
        calls_[number].push_back(found);
      }
  }

  bool has_calls(const Item& item) const {
    const auto inside = [&](int32_t region, int32_t phase) {
      const std::vector<bool>& known = calls_[z(region)];
      return z(phase) >= known.size() || known[z(phase)];
    };
    if (item.kind == Item::Kind::Branch) {
      const BranchItem& branch = plan_.branches[z(item.number)];
      return inside(branch.regions[0], branch.programs[0]) || inside(branch.regions[1], branch.programs[1]);
    }
    return item.kind != Item::Kind::Loop || inside(plan_.loops[z(item.number)].body, 0);
  }

  const Plan& plan_;
  std::vector<std::vector<bool>> calls_;
  std::vector<char> good_;
  std::vector<std::vector<int32_t>> enters_;
};

// ------------------------------------------------------------------------------------------------------------------
// Code

struct Shortcut {
  std::string_view op;
  DType dtype;
  Code code;
};

constexpr Shortcut kShortcuts[] = {
    {"add", DType::I64, Code::AddI},
    {"subtract", DType::I64, Code::SubI},
    {"multiply", DType::I64, Code::MulI},
    {"floor_divide", DType::I64, Code::DivI},
    {"remainder", DType::I64, Code::ModI},
    {"negative", DType::I64, Code::NegI},
    {"minimum", DType::I64, Code::MinI},
    {"maximum", DType::I64, Code::MaxI},
    {"less", DType::I64, Code::LessI},
    {"less_equal", DType::I64, Code::LessEqI},
    {"greater", DType::I64, Code::GreaterI},
    {"greater_equal", DType::I64, Code::GreaterEqI},
    {"equal", DType::I64, Code::EqualI},
    {"not_equal", DType::I64, Code::NotEqualI},
    {"add", DType::F64, Code::AddF},
    {"subtract", DType::F64, Code::SubF},
    {"multiply", DType::F64, Code::MulF},
    {"divide", DType::F64, Code::DivF},
    {"negative", DType::F64, Code::NegF},
    {"less", DType::F64, Code::LessF},
    {"less_equal", DType::F64, Code::LessEqF},
    {"greater", DType::F64, Code::GreaterF},
    {"greater_equal", DType::F64, Code::GreaterEqF},
    {"logical_and", DType::Bool, Code::And},
    {"logical_or", DType::Bool, Code::Or},
    {"logical_not", DType::Bool, Code::Not},
};

class Compiler {
 public:
  Compiler(const Plan& plan, NarrowProgram& program) : plan_(plan), program_(program) {
    for (const Constant& constant : plan.constants) {
      uint64_t cell = 0;
      if (constant.slot.bytes <= 8 && constant.slot.bytes > 0)
        std::memcpy(&cell, constant.data, z(constant.slot.bytes));
      program.constants.push_back(cell);
    }
    cells_.resize(plan.regions.size());
    for (size_t number = 0; number < plan.regions.size(); ++number)
      cells_[number].assign(plan.regions[number].slots.size(), kNoSlot);
  }

  /// Cells for what comes from outside, so that calls can be written before their callees are.
  void open(int32_t region) {
    program_.bodies[z(region)] = std::make_unique<NarrowBody>();
    NarrowBody& body = *program_.bodies[z(region)];
    const Region& from = plan_.regions[z(region)];
    body.params.resize(from.phases.size());
    body.results.resize(from.phases.size());
    for (size_t phase = 0; phase < from.phases.size(); ++phase)
      for (int32_t slot : from.params[phase])
        body.params[phase].push_back(slot == kNoSlot ? -1 : (cells_[z(region)][z(slot)] = body.cells++));
  }

  void compile(int32_t region) {
    body_ = program_.bodies[z(region)].get();
    const Region& from = plan_.regions[z(region)];
    frames_.clear();
    entries_.clear();
    for (size_t phase = 0; phase < from.phases.size(); ++phase) {
      body_->entries.push_back(static_cast<int32_t>(body_->code.size()));
      loop_ = -1;
      write(region, static_cast<int32_t>(phase));
      for (int32_t slot : from.results[phase])
        body_->results[phase].push_back(slot == kNoSlot ? -1 : cells_[z(region)][z(slot)]);
      emit(Code::Return);
    }
  }

  /// Results are known when all bodies are compiled.
  void link() {
    for (size_t k = 0; k < program_.calls.size(); ++k) {
      NarrowCall& call = program_.calls[k];
      const CallItem& item = *items_[k];
      const NarrowBody& callee = *program_.bodies[z(call.body)];
      for (size_t r = 0; r < item.results.size(); ++r)
        if (item.results[r] != kNoSlot) call.results.push_back({callee.results[z(call.phase)][r], result_cells_[k][r]});
    }
  }

 private:
  struct Task {  // a region in a phase, on the way
    int32_t region, phase;
    size_t stage = 0, item = 0;
    int step = 0;
    size_t patch = 0, second = 0;
    int32_t outer_loop = -1;
  };

  NarrowInstr& emit(Code code) {
    NarrowInstr instr{};
    instr.code = code;
    instr.loop = loop_;
    instr.node = -1;
    body_->code.push_back(instr);
    return body_->code.back();
  }

  Cell cell(int32_t region, Operand x) { return x < 0 ? x : cells_[z(region)][z(x)]; }
  int32_t fresh() { return body_->cells++; }
  int32_t define(int32_t region, int32_t slot) {
    int32_t& found = cells_[z(region)][z(slot)];
    if (found == kNoSlot || found < 0) found = fresh();
    return found;
  }

  void move(Cell from, int32_t to) {
    if (from == to) return;
    NarrowInstr& instr = emit(Code::Move);
    instr.a = from;
    instr.to = to;
  }

  void write(int32_t root, int32_t phase) {
    std::vector<Task> stack{{root, phase}};
    while (!stack.empty()) {
      const size_t at = stack.size() - 1;
      const Program& program = plan_.regions[z(stack[at].region)].phases[z(stack[at].phase)];
      if (stack[at].stage == program.stages.size()) {
        stack.pop_back();
        continue;
      }
      const Stage& stage = program.stages[stack[at].stage];
      if (stack[at].item == 0 && stack[at].step == 0)
        for (const Item& item : stage.straight) straight(stack[at].region, item);
      if (stack[at].item == stage.entered.size()) {
        ++stack[at].stage;
        stack[at].item = 0;
        stack[at].step = 0;
        continue;
      }
      const Item& item = stage.entered[stack[at].item];
      if (stack[at].item == 0 && stack[at].step == 0) stack[at].step = 1;
      if (!enter(stack, at, item)) {
        ++stack[at].item;
        stack[at].step = 1;
      }
    }
  }

  /// One more step of an item; is there another? Regions inside are pushed, and come before it.
  bool enter(std::vector<Task>& stack, size_t at, const Item& item) {
    const int32_t region = stack[at].region;
    switch (item.kind) {
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        if (stack[at].step == 1) {
          for (int side = 0; side < 2; ++side)
            for (const Transfer& t : branch.transfers[side])
              cells_[z(branch.regions[side])][z(t.to)] = t.from < 0 ? t.from : cells_[z(region)][z(t.from)];
          for (const MergeRow& merge : branch.merges) define(region, merge.to);
          NarrowInstr& unless = emit(Code::Unless);
          unless.a = cells_[z(region)][z(branch.pred)];
          stack[at].patch = body_->code.size() - 1;
          stack[at].step = 2;
          stack.push_back({branch.regions[0], branch.programs[0]});
          return true;
        }
        if (stack[at].step == 2) {
          for (const MergeRow& merge : branch.merges)
            move(cell(branch.regions[0], merge.sides[0]), cells_[z(region)][z(merge.to)]);
          emit(Code::Jump);
          stack[at].second = body_->code.size() - 1;
          body_->code[stack[at].patch].extra = static_cast<int32_t>(body_->code.size());
          stack[at].step = 3;
          stack.push_back({branch.regions[1], branch.programs[1]});
          return true;
        }
        for (const MergeRow& merge : branch.merges)
          move(cell(branch.regions[1], merge.sides[1]), cells_[z(region)][z(merge.to)]);
        body_->code[stack[at].second].extra = static_cast<int32_t>(body_->code.size());
        return false;
      }
      case Item::Kind::Call:
        call(region, plan_.calls[z(item.number)]);
        return false;
      case Item::Kind::Loop:
        return loop(stack, at, plan_.loops[z(item.number)]);
      default:
        return false;
    }
  }

  bool loop(std::vector<Task>& stack, size_t at, const LoopItem& item) {
    const int32_t region = stack[at].region;
    if (stack[at].step == 1) {
      stack[at].outer_loop = loop_;
      const int32_t counter = fresh();
      zero(counter);
      for (const Transfer& t : item.variables) {
        cells_[z(item.body)][z(t.to)] = fresh();
        move(cell(region, t.from), cells_[z(item.body)][z(t.to)]);
      }
      for (const Transfer& t : item.outers)
        cells_[z(item.body)][z(t.to)] = t.from < 0 ? t.from : cells_[z(region)][z(t.from)];
      body_->loops.push_back({item.site, counter, loop_});
      loop_ = static_cast<int32_t>(body_->loops.size()) - 1;
      stack[at].patch = body_->code.size();  // where an iteration begins
      stack[at].step = 2;
      stack.push_back({item.body, 0});
      return true;
    }
    // The body has been written: its last branch has decided. What went on computes the next values.
    const BranchItem* decides = nullptr;
    for (const Stage& stage : plan_.regions[z(item.body)].phases[0].stages)
      for (const Item& inner : stage.entered)
        if (inner.kind == Item::Kind::Branch && plan_.branches[z(inner.number)].branch == item.branch)
          decides = &plan_.branches[z(inner.number)];
    NarrowInstr& unless = emit(Code::Unless);
    unless.a = cells_[z(item.body)][z(decides->pred)];
    const size_t leave = body_->code.size() - 1;
    std::vector<int32_t> temporary;
    for (Operand next : item.next) {
      temporary.push_back(fresh());
      move(cell(decides->regions[0], next), temporary.back());
    }
    for (size_t k = 0; k < item.variables.size(); ++k)
      move(temporary[k], cells_[z(item.body)][z(item.variables[k].to)]);
    NarrowInstr& count = emit(Code::Count);
    count.to = body_->loops[z(loop_)].counter;
    NarrowInstr& again = emit(Code::Jump);
    again.extra = static_cast<int32_t>(stack[at].patch);
    body_->code[leave].extra = static_cast<int32_t>(body_->code.size());
    loop_ = stack[at].outer_loop;
    for (const LoopItem::Exit& exit : item.exits) move(cell(item.body, exit.from), define(region, exit.to));
    return false;
  }

  void zero(int32_t to) {
    NarrowInstr& instr = emit(Code::Count);
    instr.to = to;
    instr.extra = 1;  // set to zero
  }

  void call(int32_t region, const CallItem& item) {
    NarrowCall made{};
    made.site = item.site;
    made.body = item.body;
    made.phase = item.phase;
    const std::pair<int32_t, int32_t> key{region, item.call};
    made.frame = made.entry = -1;
    const bool has_phases = plan_.regions[z(item.body)].phases.size() > 1;
    if (has_phases) {
      if (!frames_.contains(key)) frames_[key] = fresh();
      made.frame = frames_[key];
    }
    if (item.makes_entry) made.entry = entries_[key] = fresh();
    const NarrowBody& callee = *program_.bodies[z(item.body)];
    for (size_t k = 0; k < item.arguments.size(); ++k)
      if (callee.params[z(item.phase)][k] >= 0)
        made.arguments.push_back({cell(region, item.arguments[k]), callee.params[z(item.phase)][k]});
    for (Operand x : item.hoists) made.hoists.push_back(cell(region, x));
    made.visits = item.visits;
    std::vector<int32_t> results;
    for (int32_t slot : item.results) results.push_back(slot == kNoSlot ? -1 : define(region, slot));
    NarrowInstr& instr = emit(item.phase == 0 ? Code::Call : Code::Resume);
    instr.extra = static_cast<int32_t>(program_.calls.size());
    program_.calls.push_back(std::move(made));
    items_.push_back(&item);
    result_cells_.push_back(std::move(results));
  }

  void straight(int32_t region, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Op:
        return op(region, plan_.ops[z(item.number)]);
      case Item::Kind::Read: {
        const ReadItem& read = plan_.reads[z(item.number)];
        const int32_t to = define(region, read.to);
        NarrowInstr& instr = emit(read.is_shared ? Code::ReadShared : Code::ReadEntry);
        instr.to = to;
        instr.extra = read.index;
        instr.a = static_cast<int32_t>(plan_.regions[z(region)].slots[z(read.to)].bytes);
        return;
      }
      case Item::Kind::Collect: {
        const CollectItem& collect = plan_.collects[z(item.number)];
        const Cell value = cell(region, collect.values[0]);
        const Slot& slot = collect.values[0] < 0 ? plan_.constants[z(~collect.values[0])].slot
                                                 : plan_.regions[z(region)].slots[z(collect.values[0])];
        NarrowInstr& instr = emit(Code::Collect);
        instr.a = value;
        instr.extra = collect.index;
        instr.b = slot.dtype == DType::F32 ? 4 : 8;
        instr.node = collect.node;
        return;
      }
      default: {
        const CollectedItem& collected = plan_.collecteds[z(item.number)];
        const Slot& slot = plan_.regions[z(region)].slots[z(collected.to[0])];
        const int32_t to = define(region, collected.to[0]);
        NarrowInstr& instr = emit(Code::Collected);
        instr.to = to;
        instr.a = entries_.at({region, collected.call});
        instr.b = slot.dtype == DType::F32 ? 4 : 8;
        instr.extra = collected.index;
        return;
      }
    }
  }

  void op(int32_t region, const OpItem& item) {
    const std::string_view name = plan_.kernel_ops[z(item.kernel)];
    Cell x[3] = {0, 0, 0};
    for (size_t k = 0; k < item.inputs.size(); ++k) x[k] = cell(region, item.inputs[k]);
    const int32_t to = define(region, item.outputs[0]);
    Code code = Code::Flat;
    if (name == "identity" || name == "stop_gradient" || name == "fill") {
      code = Code::Move;
    } else {
      const Elementwise* each = plan_.kernels[z(item.kernel)]->elementwise();
      for (const Shortcut& shortcut : kShortcuts)
        if (shortcut.op == name && shortcut.dtype == each->inputs[0]) code = shortcut.code;
      if (name == "cast" && each->inputs[0] == DType::I64 && each->output == DType::F64) code = Code::IToF;
    }
    NarrowInstr& instr = emit(code);
    instr.a = x[0];
    instr.b = x[1];
    instr.c = x[2];
    instr.to = to;
    instr.extra = item.kernel;
    instr.node = item.node;
  }

  const Plan& plan_;
  NarrowProgram& program_;
  NarrowBody* body_ = nullptr;
  int32_t loop_ = -1;
  std::vector<std::vector<int32_t>> cells_;  // of each region's slots
  std::map<std::pair<int32_t, int32_t>, int32_t> frames_, entries_;
  std::vector<const CallItem*> items_;
  std::vector<std::vector<int32_t>> result_cells_;
};

}  // namespace

std::unique_ptr<const NarrowProgram> compile_narrow(const Plan& plan) {
  auto program = std::make_unique<NarrowProgram>();
  program->bodies.resize(plan.regions.size());
  program->groups.assign(z(plan.groups), false);
  const std::vector<bool> bodies = Finder(plan).bodies();
  Compiler compiler(plan, *program);
  for (size_t k = 0; k < bodies.size(); ++k)
    if (bodies[k] && plan.regions[k].kind == Region::Kind::Function) compiler.open(static_cast<int32_t>(k));
  for (size_t k = 0; k < bodies.size(); ++k)
    if (program->bodies[k]) {
      compiler.compile(static_cast<int32_t>(k));
      program->groups[z(plan.regions[k].group)] = true;
    }
  compiler.link();
  for (size_t k = 0; k < bodies.size(); ++k)  // all functions of a group, or none
    if (!program->bodies[k] && plan.regions[k].kind == Region::Kind::Function)
      program->groups[z(plan.regions[k].group)] = false;
  return program;
}

// ------------------------------------------------------------------------------------------------------------------
// Running

Narrow::~Narrow() {
  for (NarrowFrame* frame = top_; frame != nullptr; frame = frame->below)
    if (frame->entries != nullptr) {
      for (Entry* entry : *frame->entries) {
        for (Sum& sum : entry->sums) tables_.pool.drop(sum.whole);
        delete entry;
      }
      delete frame->entries;
    }
  for (Segment& segment : segments_) tables_.pool.drop(segment.block);
}

NarrowFrame* Narrow::push(const NarrowBody& body) {
  const int64_t size = static_cast<int64_t>(sizeof(NarrowFrame)) + 8 * int64_t{body.cells};
  if (segments_.empty() || segments_.back().used + size + 128 > segments_.back().size) {
    const int64_t room = std::max<int64_t>(size + 256, segments_.empty() ? 1 << 16 : 1 << 20);
    segments_.push_back({tables_.pool.take(room), 0, room});
  }
  Segment& segment = segments_.back();
  auto* frame = reinterpret_cast<NarrowFrame*>(segment.block->data() + segment.used);
  segment.used += (size + 7) / 8 * 8;
  frame->below = top_;
  frame->body = &body;
  frame->is_over = false;
  frame->entries = nullptr;
  top_ = frame;
  ++tables_.frames;
  if (tables_.frames > tables_.peak_frames) {
    tables_.peak_frames = tables_.frames;
    if (tables_.frames > options_.frames) throw OverLimit{OverLimit::Kind::Frames};
  }
  return frame;
}

void Narrow::pop(NarrowFrame* frame) {
  frame->is_over = true;
  --tables_.frames;
  if (frame->entries != nullptr) {
    for (Entry* entry : *frame->entries) {
      for (Sum& sum : entry->sums) tables_.pool.drop(sum.whole);
      delete entry;
    }
    delete frame->entries;
    frame->entries = nullptr;
  }
  while (top_ != nullptr && top_->is_over) {
    NarrowFrame* gone = top_;
    top_ = gone->below;
    Segment& segment = segments_.back();
    segment.used = reinterpret_cast<std::byte*>(gone) - segment.block->data();
    if (segment.used == 0 && segments_.size() > 1) {
      tables_.pool.drop(segment.block);
      segments_.pop_back();
    }
  }
}

NarrowFrame* Narrow::call(int32_t body, int32_t site, int32_t visits, Entry* entry, int64_t depth) {
  NarrowFrame* frame = push(*program_.bodies[z(body)]);
  frame->caller = nullptr;
  frame->call = nullptr;
  frame->site = site;
  frame->visits = visits;
  frame->entry = entry;
  frame->depth = depth;
  ++stats_.activations;
  return frame;
}

void Narrow::end(NarrowFrame* frame) { pop(frame); }

Doing Narrow::doing() const {
  if (now_ == nullptr) return {};
  const NarrowInstr& at = now_->body->code[z(now_->pc)];
  if (at.code == Code::Call || at.code == Code::Resume) return {-1, program_.calls[z(at.extra)].site};
  if (at.node < 0 && at.loop >= 0) return {-1, now_->body->loops[z(at.loop)].site};
  return {at.node, -1};
}

std::vector<Label> Narrow::tag() const {
  std::vector<Label> labels;
  for (const NarrowFrame* frame = now_; frame != nullptr; frame = frame->caller) {
    const NarrowInstr& at = frame->body->code[z(frame->pc)];
    for (int32_t loop = at.loop; loop >= 0; loop = frame->body->loops[z(loop)].outer)
      labels.push_back(
          {frame->body->loops[z(loop)].site, static_cast<int64_t>(frame->cells[frame->body->loops[z(loop)].counter])});
    labels.push_back({frame->site, -1});
  }
  return labels;
}

void Narrow::fault(const NarrowFrame& frame, const NarrowInstr& at) {
  Stop stop{Stop::Kind::Fault};
  stop.node = at.node;
  const Elementwise* each = plan_.kernels[z(at.extra)]->elementwise();
  const Cell x[3] = {at.a, at.b, at.c};
  for (int k = 0; k < each->arity; ++k) {
    Value operand;
    const uint64_t cell = value(frame, x[k]);
    operand.bytes.resize(z(size_of(each->inputs[k])));
    std::memcpy(operand.bytes.data(), &cell, operand.bytes.size());
    stop.values.push_back(std::move(operand));
    stop.types.push_back({each->inputs[k], 0});
  }
  stop.tag = {};
  throw stop;
}

void Narrow::run(NarrowFrame* frame, int32_t phase) {
  frame->phase = phase;
  const NarrowInstr* code = frame->body->code.data();
  const NarrowInstr* at = code + frame->body->entries[z(phase)];
  uint64_t* cells = frame->cells;
  const uint64_t* constants = program_.constants.data();
  int64_t* fired = stats_.fired.data();
  const auto cell = [&](Cell x) -> const uint64_t& { return x >= 0 ? cells[x] : constants[~x]; };
  const auto i = [&](Cell x) { return static_cast<int64_t>(cell(x)); };
  const auto f = [&](Cell x) {
    double d;
    std::memcpy(&d, &cell(x), 8);
    return d;
  };
  const auto set = [&](double d) { std::memcpy(&cells[at->to], &d, 8); };
  alignas(64) std::byte scratch[4][128] = {};
  try {
    for (;;) {
      switch (at->code) {
        case Code::Move:
          cells[at->to] = cell(at->a);
          if (at->node >= 0) ++fired[at->node];
          break;
        case Code::Flat: {
          const Elementwise* each = plan_.kernels[z(at->extra)]->elementwise();
          std::memcpy(scratch[0], &cell(at->a), 8);
          std::memcpy(scratch[1], &cell(at->b), 8);
          std::memcpy(scratch[2], &cell(at->c), 8);
          if (each->scan != nullptr && each->scan(scratch[1], 1) >= 0) fault(*frame, *at);
          each->flat[0](scratch[0], scratch[1], scratch[2], scratch[3], 1);
          uint64_t out = 0;
          std::memcpy(&out, scratch[3], z(size_of(each->output)));
          cells[at->to] = out;
          ++fired[at->node];
          break;
        }
        case Code::Jump:
          at = code + at->extra;
          continue;
        case Code::Unless:
          if ((cell(at->a) & 0xff) == 0) {
            at = code + at->extra;
            continue;
          }
          break;
        case Code::Count:
          cells[at->to] = at->extra == 1 ? 0 : cells[at->to] + 1;
          if (at->extra != 1 && (++polls & 0xfff) == 0) is_late(context);
          break;
        case Code::Call: {
          const NarrowCall& call = program_.calls[z(at->extra)];
          frame->pc = static_cast<int32_t>(at - code);
          now_ = frame;
          if ((++polls & 0xfff) == 0) is_late(context);
          const NarrowBody& body = *program_.bodies[z(call.body)];
          NarrowFrame* child = push(body);
          child->caller = frame;
          child->call = &call;
          child->site = call.site;
          child->visits = call.visits[z(frame->visits - 1)];
          child->depth = frame->depth + 1;
          child->entry = frame->entry;
          ++stats_.activations;
          if (child->depth > stats_.max_depth) {
            if (child->depth > options_.max_depth) throw OverLimit{OverLimit::Kind::Depth};
            stats_.max_depth = child->depth;
            is_deepest_ = true;
          }
          if (call.entry >= 0) {
            Entry* entry = new Entry;
            if (frame->entries == nullptr) frame->entries = new std::vector<Entry*>;
            frame->entries->push_back(entry);
            entry->sums.resize(call.hoists.size());
            for (Cell x : call.hoists)
              entry->values.push_back({nullptr, reinterpret_cast<std::byte*>(const_cast<uint64_t*>(&cell(x))), 0});
            cells[call.entry] = reinterpret_cast<uint64_t>(entry);
            child->entry = entry;
          }
          for (const NarrowMove& move : call.arguments) child->cells[move.to] = cell(move.from);
          if (call.frame >= 0) cells[call.frame] = reinterpret_cast<uint64_t>(child);
          child->phase = 0;
          frame = child;
          cells = frame->cells;
          code = body.code.data();
          at = code + body.entries[0];
          continue;
        }
        case Code::Resume: {
          const NarrowCall& call = program_.calls[z(at->extra)];
          frame->pc = static_cast<int32_t>(at - code);
          if ((++polls & 0xfff) == 0) is_late(context);
          auto* child = reinterpret_cast<NarrowFrame*>(cells[call.frame]);
          for (const NarrowMove& move : call.arguments) child->cells[move.to] = cell(move.from);
          child->call = &call;
          child->phase = call.phase;
          frame = child;
          cells = frame->cells;
          code = frame->body->code.data();
          at = code + frame->body->entries[z(call.phase)];
          continue;
        }
        case Code::Return: {
          NarrowFrame* caller = frame->caller;
          if (is_deepest_) {
            frame->pc = static_cast<int32_t>(at - code);
            now_ = frame;
            stats_.deepest = tag();
            for (const Label& label : outside(context)) stats_.deepest.push_back(label);
            is_deepest_ = false;
          }
          if (caller == nullptr) return;
          for (const NarrowMove& move : frame->call->results) caller->cells[move.to] = cell(move.from);
          if (frame->phase + 1 == frame->visits) pop(frame);
          frame = caller;
          cells = frame->cells;
          code = frame->body->code.data();
          at = code + frame->pc + 1;
          continue;
        }
        case Code::ReadEntry: {
          uint64_t value = 0;
          std::memcpy(&value, frame->entry->values[z(at->extra)].data, z(at->a));
          cells[at->to] = value;
          break;
        }
        case Code::ReadShared: {
          uint64_t value = 0;
          if (main_->columns[at->extra].data == nullptr) throw Stop{Stop::Kind::Internal};
          std::memcpy(&value, main_->columns[at->extra].data, z(at->a));
          cells[at->to] = value;
          break;
        }
        case Code::Collect: {
          Sum& sum = frame->entry->sums[z(at->extra)];
          if (sum.whole == nullptr) {
            sum.whole = tables_.pool.take(8);
            sum.bytes = at->b;
            std::memset(sum.whole->data(), 0, 8);
          }
          if (at->b == 4) {
            float value;
            std::memcpy(&value, &cell(at->a), 4);
            *reinterpret_cast<float*>(sum.whole->data()) += value;
          } else {
            *reinterpret_cast<double*>(sum.whole->data()) += f(at->a);
          }
          ++fired[at->node];
          break;
        }
        case Code::Collected: {
          const Sum& sum = reinterpret_cast<Entry*>(cells[at->a])->sums[z(at->extra)];
          uint64_t value = 0;
          if (sum.whole != nullptr) std::memcpy(&value, sum.whole->data(), z(at->b));
          cells[at->to] = value;
          break;
        }
          // clang-format off
        case Code::AddI: cells[at->to] = cell(at->a) + cell(at->b); ++fired[at->node]; break;
        case Code::SubI: cells[at->to] = cell(at->a) - cell(at->b); ++fired[at->node]; break;
        case Code::MulI: cells[at->to] = cell(at->a) * cell(at->b); ++fired[at->node]; break;
        case Code::NegI: cells[at->to] = 0 - cell(at->a); ++fired[at->node]; break;
        case Code::MinI: cells[at->to] = static_cast<uint64_t>(std::min(i(at->a), i(at->b))); ++fired[at->node]; break;
        case Code::MaxI: cells[at->to] = static_cast<uint64_t>(std::max(i(at->a), i(at->b))); ++fired[at->node]; break;
        case Code::LessI: cells[at->to] = i(at->a) < i(at->b); ++fired[at->node]; break;
        case Code::LessEqI: cells[at->to] = i(at->a) <= i(at->b); ++fired[at->node]; break;
        case Code::GreaterI: cells[at->to] = i(at->a) > i(at->b); ++fired[at->node]; break;
        case Code::GreaterEqI: cells[at->to] = i(at->a) >= i(at->b); ++fired[at->node]; break;
        case Code::EqualI: cells[at->to] = cell(at->a) == cell(at->b); ++fired[at->node]; break;
        case Code::NotEqualI: cells[at->to] = cell(at->a) != cell(at->b); ++fired[at->node]; break;
        case Code::AddF: set(f(at->a) + f(at->b)); ++fired[at->node]; break;
        case Code::SubF: set(f(at->a) - f(at->b)); ++fired[at->node]; break;
        case Code::MulF: set(f(at->a) * f(at->b)); ++fired[at->node]; break;
        case Code::DivF: set(f(at->a) / f(at->b)); ++fired[at->node]; break;
        case Code::NegF: set(-f(at->a)); ++fired[at->node]; break;
        case Code::LessF: cells[at->to] = f(at->a) < f(at->b); ++fired[at->node]; break;
        case Code::LessEqF: cells[at->to] = f(at->a) <= f(at->b); ++fired[at->node]; break;
        case Code::GreaterF: cells[at->to] = f(at->a) > f(at->b); ++fired[at->node]; break;
        case Code::GreaterEqF: cells[at->to] = f(at->a) >= f(at->b); ++fired[at->node]; break;
        case Code::And: cells[at->to] = cell(at->a) & cell(at->b) & 1; ++fired[at->node]; break;
        case Code::Or: cells[at->to] = (cell(at->a) | cell(at->b)) & 1; ++fired[at->node]; break;
        case Code::Not: cells[at->to] = (cell(at->a) & 1) ^ 1; ++fired[at->node]; break;
        case Code::IToF: set(static_cast<double>(i(at->a))); ++fired[at->node]; break;
        // clang-format on
        case Code::DivI:
        case Code::ModI: {
          const int64_t x = i(at->a), y = i(at->b);
          if (y == 0) fault(*frame, *at);
          int64_t quotient, rest;
          if (y == -1) {
            quotient = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
            rest = 0;
          } else {
            quotient = x / y;
            rest = x % y;
            if (rest != 0 && ((rest < 0) != (y < 0))) {
              --quotient;
              rest += y;
            }
          }
          cells[at->to] = static_cast<uint64_t>(at->code == Code::DivI ? quotient : rest);
          ++fired[at->node];
          break;
        }
      }
      ++at;
    }
  } catch (...) {
    if (frame != nullptr) {
      frame->pc = static_cast<int32_t>(at - code);
      now_ = frame;
    }
    throw;
  }
}

}  // namespace undertow
