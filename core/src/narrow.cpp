#include "narrow.h"

#include <bit>
#include <cstring>
#include <map>
#include <string_view>
#include <type_traits>

namespace undertow {
namespace {

using Code = NarrowCode;

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

/// Operators that have codes of their own.
struct Shortcut {
  std::string_view op;
  Code code;
  Code swapped;  ///< with operands in the other order; End: there is none
  bool of_ints, of_floats;
};

constexpr Shortcut kShortcuts[] = {
    {"add", Code::Add, Code::Add, true, true},
    {"subtract", Code::Subtract, Code::End, true, true},
    {"multiply", Code::Multiply, Code::Multiply, true, true},
    {"minimum", Code::Minimum, Code::Minimum, true, false},
    {"maximum", Code::Maximum, Code::Maximum, true, false},
    {"floor_divide", Code::FloorDivide, Code::End, true, false},
    {"remainder", Code::Remainder, Code::End, true, false},
    {"divide", Code::Divide, Code::End, false, true},
    {"negative", Code::Negative, Code::End, true, true},
    {"less", Code::Less, Code::Greater, true, true},
    {"less_equal", Code::LessEqual, Code::GreaterEqual, true, true},
    {"greater", Code::Greater, Code::Less, true, true},
    {"greater_equal", Code::GreaterEqual, Code::LessEqual, true, true},
    {"equal", Code::Equal, Code::Equal, true, true},
    {"not_equal", Code::NotEqual, Code::NotEqual, true, true},
};

struct BoolShortcut {
  std::string_view op;
  Code code;
};

constexpr BoolShortcut kBoolShortcuts[] = {
    {"logical_and", Code::And},
    {"logical_or", Code::Or},
    {"logical_not", Code::Not},
};

struct Cast {
  DType from, to;
  Code code;
};

constexpr Cast kCasts[] = {
    {DType::I32, DType::I64, Code::IntToLong},     {DType::I32, DType::F64, Code::IntToDouble},
    {DType::I64, DType::F64, Code::LongToDouble},  {DType::F32, DType::F64, Code::FloatToDouble},
    {DType::F64, DType::F32, Code::DoubleToFloat},
};

/// The number of a code: of a dtype, with the second operand a cell or a constant.
constexpr Code of(Code family, int dtype, int form) {
  return static_cast<Code>(static_cast<int>(family) + 2 * dtype + form);
}

/// The number of a dtype in codes, or -1.
int number_of(DType dtype) {
  switch (dtype) {
    case DType::I32:
      return 0;
    case DType::I64:
      return 1;
    case DType::F32:
      return 2;
    case DType::F64:
      return 3;
    default:
      return -1;
  }
}

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
      body_->entries.push_back(label());
      loop_ = -1;
      write(region, static_cast<int32_t>(phase));
      for (int32_t slot : from.results[phase])
        body_->results[phase].push_back(slot == kNoSlot ? -1 : cells_[z(region)][z(slot)]);
      emit(Code::Return);
    }
    shorten();
    body_->bytes = static_cast<int64_t>(sizeof(NarrowFrame)) + 8 * int64_t{body_->cells};
  }

  /// Results are known when all bodies are compiled.
  void link() {
    for (size_t k = 0; k < program_.calls.size(); ++k) {
      NarrowCall& call = program_.calls[k];
      const CallItem& item = *items_[k];
      const NarrowBody& callee = *call.body;
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
    body_->asides.push_back({loop_});
    return body_->code.emplace_back(NarrowInstr{code});
  }

  /// The number of the next instruction, which others jump to.
  int32_t label() { return label_ = static_cast<int32_t>(body_->code.size()); }

  /// A jump if a value is false. A comparison that has just been made jumps itself.
  size_t unless(Cell pred) {
    constexpr int kFirst = static_cast<int>(Code::Less), kJumps = static_cast<int>(Code::UnlessLess);
    if (z(label_) < body_->code.size()) {
      NarrowInstr& last = body_->code.back();
      const int code = static_cast<int>(last.code);
      if (code >= kFirst && code < kJumps && last.to == pred) {
        last.code = static_cast<Code>(code - kFirst + kJumps);
        return body_->code.size() - 1;
      }
    }
    emit(Code::Unless).a = pred;
    return body_->code.size() - 1;
  }

  /// Jumps to jumps go where those go, and a jump to a return is one.
  void shorten() {
    std::vector<NarrowInstr>& code = body_->code;
    for (NarrowInstr& instr : code) {
      if (instr.code != Code::Jump && instr.code != Code::Unless && instr.code < Code::UnlessLess) continue;
      for (int hops = 0; hops < 16 && code[z(instr.extra)].code == Code::Jump; ++hops)
        instr.extra = code[z(instr.extra)].extra;
      if (instr.code == Code::Jump && code[z(instr.extra)].code == Code::Return) instr.code = Code::Return;
    }
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
          for (const MergeRow& merge : branch.merges) {
            const int32_t to = define(region, merge.to);
            // What a side has still to make, it makes where the merge wants it.
            for (int side = 0; side < 2; ++side)
              if (merge.sides[side] >= 0) {
                int32_t& made = cells_[z(branch.regions[side])][z(merge.sides[side])];
                if (made == kNoSlot) made = to;
              }
          }
          stack[at].patch = unless(cells_[z(region)][z(branch.pred)]);
          stack[at].step = 2;
          stack.push_back({branch.regions[0], branch.programs[0]});
          return true;
        }
        if (stack[at].step == 2) {
          for (const MergeRow& merge : branch.merges)
            move(cell(branch.regions[0], merge.sides[0]), cells_[z(region)][z(merge.to)]);
          emit(Code::Jump);
          stack[at].second = body_->code.size() - 1;
          body_->code[stack[at].patch].extra = label();
          stack[at].step = 3;
          stack.push_back({branch.regions[1], branch.programs[1]});
          return true;
        }
        for (const MergeRow& merge : branch.merges)
          move(cell(branch.regions[1], merge.sides[1]), cells_[z(region)][z(merge.to)]);
        body_->code[stack[at].second].extra = label();
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
      stack[at].patch = z(label());  // where an iteration begins
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
    const size_t leave = unless(cells_[z(item.body)][z(decides->pred)]);
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
    body_->code[leave].extra = label();
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
    made.region = item.body;
    made.body = program_.bodies[z(item.body)].get();
    made.phase = item.phase;
    const std::pair<int32_t, int32_t> key{region, item.call};
    made.frame = made.entry = -1;
    const bool has_phases = plan_.regions[z(item.body)].phases.size() > 1;
    if (has_phases) {
      if (!frames_.contains(key)) frames_[key] = fresh();
      made.frame = frames_[key];
    }
    if (item.makes_entry) {
      made.entry = entries_[key] = fresh();
      body_->entry_cells.push_back(made.entry);
    }
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
    if (name == "identity" || name == "stop_gradient" || name == "fill") {
      NarrowInstr& instr = emit(Code::Move);
      instr.a = x[0];
      instr.to = to;
      instr.node = item.node;
      return;
    }
    const Elementwise* each = plan_.kernels[z(item.kernel)]->elementwise();
    const Code code = shortcut(name, *each, x);
    NarrowInstr& instr = emit(code);
    instr.a = x[0];
    instr.b = x[1];
    instr.to = to;
    instr.extra = item.kernel;
    instr.node = item.node;
    if (code != Code::Flat && x[1] < 0) instr.constant = program_.constants[z(~x[1])];
    body_->asides.back().c = x[2];
  }

  /// The code of an operator. Only its second operand may be a constant: others are moved to where they may stand.
  Code shortcut(std::string_view name, const Elementwise& each, Cell* x) {
    const int dtype = number_of(each.inputs[0]);
    if (each.inputs[0] == DType::Bool)
      for (const BoolShortcut& found : kBoolShortcuts)
        if (found.op == name) {
          for (int k = 0; k < each.arity; ++k) x[k] = in_cell(x[k]);
          return found.code;
        }
    if (name == "cast")
      for (const Cast& found : kCasts)
        if (found.from == each.inputs[0] && found.to == each.output) {
          x[0] = in_cell(x[0]);
          return found.code;
        }
    if (dtype >= 0)
      for (const Shortcut& found : kShortcuts) {
        if (found.op != name || !(dtype < 2 ? found.of_ints : found.of_floats)) continue;
        Code code = found.code;
        if (each.arity == 2 && x[0] < 0 && x[1] >= 0 && found.swapped != Code::End) {
          std::swap(x[0], x[1]);
          code = found.swapped;
        }
        x[0] = in_cell(x[0]);
        return of(code, dtype, each.arity == 2 && x[1] < 0 ? 1 : 0);
      }
    return Code::Flat;
  }

  Cell in_cell(Cell x) {
    if (x >= 0) return x;
    const int32_t to = fresh();
    move(x, to);
    return to;
  }

  const Plan& plan_;
  NarrowProgram& program_;
  NarrowBody* body_ = nullptr;
  int32_t loop_ = -1;
  int32_t label_ = 0;                        // the last place that something jumps to
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

namespace {

template <class T>
T as(uint64_t cell) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(cell);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(cell));
  else
    return static_cast<T>(cell);
}

template <class T>
uint64_t cell_of(T value) {
  if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, int32_t>)
    return static_cast<uint32_t>(value);
  else
    return static_cast<uint64_t>(value);
}

template <class T>
T floor_divide(T x, T y) {
  if (y == -1) return -x;  // the least number has no opposite: it wraps
  return x / y - (x % y != 0 && ((x % y < 0) != (y < 0)) ? 1 : 0);
}

template <class T>
T remainder(T x, T y) {
  if (y == -1) return 0;
  const T rest = x % y;
  return rest != 0 && ((rest < 0) != (y < 0)) ? rest + y : rest;
}

/// The labels of the loops that a frame is in.
void add_loops(const NarrowFrame& frame, std::vector<Label>& labels) {
  const std::vector<NarrowLoop>& loops = frame.body->loops;
  for (int32_t loop = frame.body->asides[z(frame.pc)].loop; loop >= 0; loop = loops[z(loop)].outer)
    labels.push_back({loops[z(loop)].site, static_cast<int64_t>(frame.cells[loops[z(loop)].counter])});
}

}  // namespace

Narrow::~Narrow() {
  for (NarrowFrame* frame = top_; frame != nullptr; frame = frame->below)
    for (int32_t cell : frame->body->entry_cells) drop_entry(*frame, cell);
  for (Segment& segment : segments_) tables_.pool.drop(segment.block);
}

void Narrow::drop_entry(NarrowFrame& frame, int32_t cell) {
  auto* entry = reinterpret_cast<Entry*>(frame.cells[cell]);
  if (entry == nullptr) return;
  for (Sum& sum : entry->sums) tables_.pool.drop(sum.whole);
  delete entry;
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

/// What a call gives to all that runs below it.
Entry* Narrow::make_entry(NarrowFrame& frame, const NarrowCall& call) {
  drop_entry(frame, call.entry);  // of an iteration before
  auto* entry = new Entry;
  frame.cells[call.entry] = reinterpret_cast<uint64_t>(entry);
  entry->sums.resize(call.hoists.size());
  for (Cell x : call.hoists) {
    const uint64_t* cell = x >= 0 ? &frame.cells[x] : &program_.constants[z(~x)];
    entry->values.push_back({nullptr, reinterpret_cast<std::byte*>(const_cast<uint64_t*>(cell)), 0});
  }
  return entry;
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
  const int32_t loop = now_->body->asides[z(now_->pc)].loop;
  if (at.code == Code::Call || at.code == Code::Resume) return {-1, program_.calls[z(at.extra)].site};
  if (at.node < 0 && loop >= 0) return {-1, now_->body->loops[z(loop)].site};
  return {at.node, -1};
}

std::vector<Label> Narrow::tag() const {
  std::vector<Label> labels;
  for (const NarrowFrame* frame = now_; frame != nullptr; frame = frame->caller) {
    add_loops(*frame, labels);
    labels.push_back({frame->site, -1});
  }
  return labels;
}

/// Where the deepest tag goes on: one frame up.
void Narrow::climb() {
  stats_.deepest.push_back({deepest_->site, -1});
  deepest_ = deepest_->caller;
  if (deepest_ != nullptr)
    add_loops(*deepest_, stats_.deepest);
  else
    for (const Label& label : outside(context)) stats_.deepest.push_back(label);
}

void Narrow::fault(const NarrowFrame& frame, const NarrowInstr& at) {
  Stop stop{Stop::Kind::Fault};
  stop.node = at.node;
  const Elementwise* each = plan_.kernels[z(at.extra)]->elementwise();
  const Cell x[3] = {at.a, at.b, frame.body->asides[z(&at - frame.body->code.data())].c};
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
  const NarrowInstr* code = frame->body->code.data();
  const NarrowInstr* at = code + frame->body->entries[z(phase)];
  uint64_t* cells = frame->cells;
  const uint64_t* const constants = program_.constants.data();
  const NarrowCall* const calls = program_.calls.data();
  int64_t* const fired = stats_.fired.data();
  const auto cell = [&](Cell x) -> const uint64_t& { return x >= 0 ? cells[x] : constants[~x]; };
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
          std::memcpy(scratch[2], &cell(frame->body->asides[z(at - code)].c), 8);
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
          const NarrowCall& call = calls[at->extra];
          frame->pc = static_cast<int32_t>(at - code);
          if ((++polls & 0xfff) == 0) [[unlikely]] {
            now_ = frame;
            is_late(context);
          }
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
          if ((++polls & 0xfff) == 0) [[unlikely]] {
            now_ = frame;
            is_late(context);
          }
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
          if (at->b == 4)
            *reinterpret_cast<float*>(sum.whole->data()) += as<float>(cell(at->a));
          else
            *reinterpret_cast<double*>(sum.whole->data()) += as<double>(cell(at->a));
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
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch"  // an operator on numbers has one name and eight codes
        // clang-format off
#define UNDERTOW_FORMS(name, number, type, result)                                                          \
        case of(Code::name, number, 0): {                                                                   \
          using T = type;                                                                                   \
          const T x = as<T>(cells[at->a]), y = as<T>(cells[at->b]);                                         \
          result;                                                                                           \
        } break;                                                                                            \
        case of(Code::name, number, 1): {                                                                   \
          using T = type;                                                                                   \
          const T x = as<T>(cells[at->a]), y = as<T>(at->constant);                                         \
          result;                                                                                           \
        } break;
#define UNDERTOW_INTS(name, result)         \
  UNDERTOW_FORMS(name, 0, int32_t, result)  \
  UNDERTOW_FORMS(name, 1, int64_t, result)
#define UNDERTOW_FLOATS(name, result)       \
  UNDERTOW_FORMS(name, 2, float, result)    \
  UNDERTOW_FORMS(name, 3, double, result)
#define UNDERTOW_NUMBERS(name, result)      \
  UNDERTOW_INTS(name, result)               \
  UNDERTOW_FLOATS(name, result)
#define UNDERTOW_GIVES(value) cells[at->to] = cell_of<T>(static_cast<T>(value)); ++fired[at->node]
#define UNDERTOW_TESTS(name, test)                                                                          \
  UNDERTOW_NUMBERS(name, cells[at->to] = (test); ++fired[at->node])                                         \
  UNDERTOW_NUMBERS(Unless##name, const bool is_so = (test); cells[at->to] = is_so; ++fired[at->node];       \
                                 if (!is_so) { at = code + at->extra; continue; })
        UNDERTOW_NUMBERS(Add, UNDERTOW_GIVES(x + y))
        UNDERTOW_NUMBERS(Subtract, UNDERTOW_GIVES(x - y))
        UNDERTOW_NUMBERS(Multiply, UNDERTOW_GIVES(x * y))
        UNDERTOW_INTS(Minimum, UNDERTOW_GIVES(y < x ? y : x))
        UNDERTOW_INTS(Maximum, UNDERTOW_GIVES(x < y ? y : x))
        UNDERTOW_INTS(FloorDivide, if (y == 0) fault(*frame, *at); UNDERTOW_GIVES(floor_divide(x, y)))
        UNDERTOW_INTS(Remainder, if (y == 0) fault(*frame, *at); UNDERTOW_GIVES(remainder(x, y)))
        UNDERTOW_FLOATS(Divide, UNDERTOW_GIVES(x / y))
        UNDERTOW_TESTS(Less, x < y)
        UNDERTOW_TESTS(LessEqual, x <= y)
        UNDERTOW_TESTS(Greater, x > y)
        UNDERTOW_TESTS(GreaterEqual, x >= y)
        UNDERTOW_TESTS(Equal, x == y)
        UNDERTOW_TESTS(NotEqual, x != y)
#undef UNDERTOW_TESTS
#undef UNDERTOW_GIVES
#undef UNDERTOW_NUMBERS
#undef UNDERTOW_FLOATS
#undef UNDERTOW_INTS
#undef UNDERTOW_FORMS
#define UNDERTOW_ONE(name, from, to_type)                                                                   \
        case name: cells[at->to] = cell_of<to_type>(static_cast<to_type>(from)); ++fired[at->node]; break;
        UNDERTOW_ONE(of(Code::Negative, 0, 0), -as<int32_t>(cells[at->a]), int32_t)
        UNDERTOW_ONE(of(Code::Negative, 1, 0), -as<int64_t>(cells[at->a]), int64_t)
        UNDERTOW_ONE(of(Code::Negative, 2, 0), -as<float>(cells[at->a]), float)
        UNDERTOW_ONE(of(Code::Negative, 3, 0), -as<double>(cells[at->a]), double)
        UNDERTOW_ONE(Code::IntToLong, as<int32_t>(cells[at->a]), int64_t)
        UNDERTOW_ONE(Code::IntToDouble, as<int32_t>(cells[at->a]), double)
        UNDERTOW_ONE(Code::LongToDouble, as<int64_t>(cells[at->a]), double)
        UNDERTOW_ONE(Code::FloatToDouble, as<float>(cells[at->a]), double)
        UNDERTOW_ONE(Code::DoubleToFloat, as<double>(cells[at->a]), float)
#undef UNDERTOW_ONE
        case Code::And: cells[at->to] = cells[at->a] & cells[at->b] & 1; ++fired[at->node]; break;
        case Code::Or: cells[at->to] = (cells[at->a] | cells[at->b]) & 1; ++fired[at->node]; break;
        case Code::Not: cells[at->to] = (cells[at->a] & 1) ^ 1; ++fired[at->node]; break;
          // clang-format on
        default:
          throw Stop{Stop::Kind::Internal};
      }
#pragma GCC diagnostic pop
      ++at;
    }
  } catch (...) {
    frame->pc = static_cast<int32_t>(at - code);
    now_ = frame;
    deepest_ = nullptr;  // of a run that fails, nobody asks for it
    throw;
  }
}

}  // namespace undertow
