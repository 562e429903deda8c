// Compiles narrow bodies. Slots become cells. A value passed into a branch keeps its cell, and a side of a branch
// computes the operand of a Merge in the Merge's own cell where possible.
#include <map>
#include <string_view>

#include "memory/lanes.h"
#include "narrow/program.h"
#include "narrow/run.h"
#include "plan/int_reader.h"
#include "plan/items.h"
#include "undertow/size.h"

namespace undertow {
namespace {

using Code = NarrowCode;

class Compiler {
 public:
  Compiler(const Plan& plan, NarrowProgram& program) : plan_(plan), program_(program) {
    for (const Constant& constant : plan.constants) {
      const int64_t bytes = constant.slot.bytes;
      program.constants.push_back(bytes > 0 && bytes <= 8 ? lanes::cell_at(constant.data, bytes) : 0);
    }
    cells_.resize(plan.regions.size());
    for (size_t number = 0; number < plan.regions.size(); ++number)
      cells_[number].assign(plan.regions[number].slots.size(), kNoSlot);
  }

  /// Assign cells to parameters first, so that calls can be compiled before their callees.
  void open(int32_t region) {
    program_.bodies[z(region)] = std::make_unique<NarrowBody>();
    NarrowBody& body = *program_.bodies[z(region)];
    const Region& from = plan_.regions[z(region)];
    body.params.resize(from.programs.size());
    body.results.resize(from.programs.size());
    for (size_t phase = 0; phase < from.programs.size(); ++phase)
      for (int32_t slot : from.params[phase]) {
        need_numbers(region, {&slot, 1});
        body.params[phase].push_back(slot == kNoSlot ? -1 : (cells_[z(region)][z(slot)] = body.cells++));
      }
  }

  void compile(int32_t region) {
    body_ = program_.bodies[z(region)].get();
    const Region& from = plan_.regions[z(region)];
    frames_.clear();
    entries_.clear();
    for (size_t phase = 0; phase < from.programs.size(); ++phase) {
      body_->entries.push_back(label());
      loop_ = -1;
      write(region, static_cast<int32_t>(phase));
      need_numbers(region, from.results[phase]);
      for (int32_t slot : from.results[phase])
        body_->results[phase].push_back(slot == kNoSlot ? -1 : cells_[z(region)][z(slot)]);
      emit({.code = Code::Return});
    }
    shorten();
    body_->bytes = static_cast<int64_t>(sizeof(NarrowFrame)) + 8 * int64_t{body_->cells};
  }

  /// Patch the results into calls, once all bodies are compiled.
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
  struct Task {  // a region in a phase, partly compiled
    int32_t region, phase;
    size_t stage = 0, item = 0;
    int step = 0;
    size_t patch = 0, second = 0;
    int32_t outer_loop = -1;
  };

  /// Narrow code has no bounds checks: a group that the plan calls narrow must hold only what narrow code can run.
  static void need(bool fits) {
    if (!fits) not_a_plan("a group is marked narrow, but holds something that narrow code cannot run");
  }
  void need_numbers(int32_t region, std::span<const Operand> operands) const {
    for (Operand x : operands)
      need(x == kNoSlot ||
           (!slot(region, x).is_dynamic && slot(region, x).rank() == 0 && !is_complex(slot(region, x).dtype)));
  }

  void emit(const NarrowInstr& instr, Cell third = 0) {
    body_->asides.push_back({loop_, third});
    body_->code.push_back(instr);
  }

  /// The number of the next instruction, as the target of a jump.
  int32_t label() { return label_ = static_cast<int32_t>(body_->code.size()); }

  /// A jump if a value is false. If the last instruction is the comparison, the two become one.
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
    emit({.code = Code::Unless, .a = pred});
    return body_->code.size() - 1;
  }

  /// Jump threading: a jump to a jump goes to its target, and a jump to a return becomes a return.
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
  const Slot& slot(int32_t region, Operand x) const { return plan_.slot(plan_.regions[z(region)], x); }

  void move(Cell from, int32_t to) {
    if (from != to) emit({.code = Code::Move, .a = from, .to = to});
  }

  void write(int32_t root, int32_t phase) {
    std::vector<Task> stack{{root, phase}};
    while (!stack.empty()) {
      const size_t at = stack.size() - 1;
      const Program& program = plan_.regions[z(stack[at].region)].programs[z(stack[at].phase)];
      if (stack[at].stage == program.stages.size()) {
        stack.pop_back();
        continue;
      }
      const Stage& stage = program.stages[stack[at].stage];
      if (stack[at].item == 0 && stack[at].step == 0)
        each_straight(plan_, stage, [&](const Item& item) { straight(stack[at].region, item); });
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

  /// Compile one more step of an item; true if there is another. Inner regions are pushed, and are compiled first.
  bool enter(std::vector<Task>& stack, size_t at, const Item& item) {
    const int32_t region = stack[at].region;
    switch (item.kind) {
      case Item::Kind::Branch: {
        const BranchItem& branch = plan_.branches[z(item.number)];
        if (stack[at].step == 1) {
          for (size_t side = 0; side < 2; ++side)
            for (const Transfer& t : branch.transfers[side])
              cells_[z(branch.regions[side])][z(t.to)] = t.from < 0 ? t.from : cells_[z(region)][z(t.from)];
          for (const Merge& merge : branch.merges) {
            need_numbers(region, {&merge.to, 1});
            const int32_t to = define(region, merge.to);
            // Values that the side has yet to compute go straight to the cell of the merge.
            for (size_t side = 0; side < 2; ++side)
              if (merge.sides[side] >= 0) {
                int32_t& made = cells_[z(branch.regions[side])][z(merge.sides[side])];
                if (made == kNoSlot) made = to;
              }
          }
          stack[at].patch = unless(cells_[z(region)][z(branch.pred)]);
          stack[at].step = 2;
          stack.push_back({branch.regions[0], branch.visit});
          return true;
        }
        const auto side = z(stack[at].step - 2);  // the side that has just been compiled
        for (const Merge& merge : branch.merges)
          move(cell(branch.regions[side], merge.sides[side]), cells_[z(region)][z(merge.to)]);
        if (side == 0) {
          emit({.code = Code::Jump});
          stack[at].second = body_->code.size() - 1;
          body_->code[stack[at].patch].extra = label();
          stack[at].step = 3;
          stack.push_back({branch.regions[1], branch.visit});
          return true;
        }
        body_->code[stack[at].second].extra = label();
        return false;
      }
      case Item::Kind::Call: call(region, plan_.calls[z(item.number)]); return false;
      case Item::Kind::Loop: return loop(stack, at, plan_.loops[z(item.number)]);
      default: need(false); return false;
    }
  }

  bool loop(std::vector<Task>& stack, size_t at, const LoopItem& item) {
    const int32_t region = stack[at].region;
    if (stack[at].step == 1) {
      stack[at].outer_loop = loop_;
      const int32_t counter = fresh();
      emit({.code = Code::Count, .to = counter, .extra = 1});  // set to zero
      for (const Transfer& t : item.variables) {
        need_numbers(region, {&t.from, 1});
        cells_[z(item.body)][z(t.to)] = fresh();
        move(cell(region, t.from), cells_[z(item.body)][z(t.to)]);
      }
      for (const Transfer& t : item.outers)
        cells_[z(item.body)][z(t.to)] = t.from < 0 ? t.from : cells_[z(region)][z(t.from)];
      body_->loops.push_back({item.site, counter, loop_});
      loop_ = static_cast<int32_t>(body_->loops.size()) - 1;
      stack[at].patch = z(label());  // the start of an iteration
      stack[at].step = 2;
      stack.push_back({item.body, 0});
      return true;
    }
    // The body is compiled: its last branch decides, and the side that continues computes the next values.
    const BranchItem& decides = *undertow::decides(plan_, item);
    const size_t leave = unless(cells_[z(item.body)][z(decides.pred)]);
    std::vector<int32_t> temporary;
    for (Operand next : item.next) {
      temporary.push_back(fresh());
      move(cell(decides.regions[0], next), temporary.back());
    }
    for (size_t k = 0; k < item.variables.size(); ++k)
      move(temporary[k], cells_[z(item.body)][z(item.variables[k].to)]);
    emit({.code = Code::Count, .to = body_->loops[z(loop_)].counter});
    emit({.code = Code::Jump, .extra = static_cast<int32_t>(stack[at].patch)});
    body_->code[leave].extra = label();
    loop_ = stack[at].outer_loop;
    for (const Exit& exit : item.exits) {
      need_numbers(region, {&exit.to, 1});
      move(cell(item.body, exit.from), define(region, exit.to));
    }
    return false;
  }

  void call(int32_t region, const CallItem& item) {
    need(program_.bodies[z(item.body)] != nullptr);
    for (const auto* operands : {&item.arguments, &item.hoists, &item.results}) need_numbers(region, *operands);
    NarrowCall made{};
    made.site = item.site;
    made.region = item.body;
    made.body = program_.bodies[z(item.body)].get();
    made.phase = item.phase;
    const std::pair<int32_t, int32_t> key{region, item.call};
    made.frame = made.entry = -1;
    const bool has_phases = plan_.regions[z(item.body)].programs.size() > 1;
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
    emit({.code = item.phase == 0 ? Code::Call : Code::Resume, .extra = static_cast<int32_t>(program_.calls.size())});
    program_.calls.push_back(std::move(made));
    items_.push_back(&item);
    result_cells_.push_back(std::move(results));
  }

  void straight(int32_t region, const Item& item) {
    switch (item.kind) {
      case Item::Kind::Op: return op(region, plan_.ops[z(item.number)]);
      case Item::Kind::Read: {
        const ReadItem& read = plan_.reads[z(item.number)];
        const Slot& slot = this->slot(region, read.to);
        const bool is_array = slot.is_dynamic || slot.rank() > 0;
        const int32_t to = define(region, read.to);
        if (is_array) fresh();  // a second cell, for its shape
        const Code code = is_array ? (read.is_shared ? Code::ReadSharedArray : Code::ReadArray)
                                   : (read.is_shared ? Code::ReadShared : Code::ReadEntry);
        return emit({.code = code, .a = static_cast<int32_t>(slot.bytes), .to = to, .extra = read.index});
      }
      case Item::Kind::Collect: {
        const CollectItem& collect = plan_.collects[z(item.number)];
        const bool is_at = collect.kind == CollectKind::Rows;
        need(collect.kind != CollectKind::Product);
        need_numbers(region, collect.values);
        const Operand value = collect.values[is_at ? 1 : 0];
        const Operand number = collect.values[0];
        return emit({.code = is_at ? Code::CollectAt : Code::Collect,
                     .node = collect.node,
                     .a = cell(region, value),
                     .b = static_cast<int32_t>(size_of(slot(region, value).dtype)),
                     .extra = collect.index,
                     .constant = static_cast<uint64_t>(size_of(slot(region, number).dtype))},
                    is_at ? cell(region, number) : 0);
      }
      default: {
        const CollectedItem& collected = plan_.collecteds[z(item.number)];
        need(collected.to[0] != kNoSlot && collected.to[1] == kNoSlot && entries_.contains({region, collected.call}));
        need_numbers(region, collected.to);
        const Slot& slot = plan_.regions[z(region)].slots[z(collected.to[0])];
        const int32_t to = define(region, collected.to[0]);
        return emit({.code = Code::Collected,
                     .a = entries_.at({region, collected.call}),
                     .b = static_cast<int32_t>(size_of(slot.dtype)),
                     .to = to,
                     .extra = collected.index});
      }
    }
  }

  void op(int32_t region, const OpItem& item) {
    if (item.is_check) return check(region, item);
    need(item.kernel >= 0 && item.outputs.size() == 1 && item.outputs[0] != kNoSlot && !item.inputs.empty());
    need_numbers(region, item.outputs);
    const std::string_view name = plan_.kernel_ops[z(item.kernel)];
    need_numbers(region, std::span(item.inputs).subspan(name == "index" ? 1 : 0));
    if (name == "index") {
      NarrowPick pick{plan_.kernels[z(item.kernel)].get(), {}};
      for (Operand x : item.inputs) pick.inputs.push_back({cell(region, x), &slot(region, x)});
      const auto number = static_cast<int32_t>(program_.picks.size());
      program_.picks.push_back(std::move(pick));
      return emit({.code = Code::Pick, .node = item.node, .to = define(region, item.outputs[0]), .extra = number});
    }
    need(item.inputs.size() <= 3);
    Cell x[3] = {0, 0, 0};
    for (size_t k = 0; k < item.inputs.size(); ++k) x[k] = cell(region, item.inputs[k]);
    const int32_t to = define(region, item.outputs[0]);
    if (name == "identity" || name == "stop_gradient" || name == "fill")
      return emit({.code = Code::Move, .node = item.node, .a = x[0], .to = to});
    const Elementwise* each = plan_.kernels[z(item.kernel)]->elementwise();
    need(each != nullptr);
    Code code = code_of<Code>(name, *each);
    if (code != Code::Flat) {  // only the second operand may be a constant, and only for some codes
      const bool is_pair = each->arity == 2;
      if (is_pair && x[0] < 0 && x[1] >= 0 && mirrored(code) != Code::Flat) {
        std::swap(x[0], x[1]);
        code = mirrored(code);
      }
      x[0] = in_cell(x[0]);
      if (is_pair && x[1] < 0) {
        if (code >= Code::Add)
          code = of(code, 0, 1);
        else
          x[1] = in_cell(x[1]);
      }
    }
    const uint64_t constant = code != Code::Flat && x[1] < 0 ? program_.constants[z(~x[1])] : 0;
    emit({code, item.node, x[0], x[1], to, item.kernel, constant}, x[2]);
  }

  void check(int32_t region, const OpItem& item) {
    need(!item.inputs.empty() && item.inputs.size() <= kMostAxes && slot(region, item.inputs[0]).dtype == DType::Bool);
    need_numbers(region, item.inputs);
    NarrowPick operands{nullptr, {}};
    for (Operand x : item.inputs) operands.inputs.push_back({cell(region, x), &slot(region, x)});
    const auto number = static_cast<int32_t>(program_.picks.size());
    program_.picks.push_back(std::move(operands));
    emit({.code = Code::Check, .node = item.node, .a = cell(region, item.inputs[0]), .extra = number});
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
  int32_t label_ = 0;                        // the last target of a jump
  std::vector<std::vector<int32_t>> cells_;  // of each region's slots
  std::map<std::pair<int32_t, int32_t>, int32_t> frames_, entries_;
  std::vector<const CallItem*> items_;
  std::vector<std::vector<int32_t>> result_cells_;
};

}  // namespace

std::unique_ptr<const NarrowProgram> compile_narrow(const Plan& plan) {
  auto program = std::make_unique<NarrowProgram>();
  program->bodies.resize(plan.regions.size());
  Compiler compiler(plan, *program);
  for (size_t k = 0; k < plan.regions.size(); ++k)
    if (plan.regions[k].kind == Region::Kind::Function && plan.groups[z(plan.regions[k].group)].is_narrow)
      compiler.open(static_cast<int32_t>(k));
  for (size_t k = 0; k < plan.regions.size(); ++k)
    if (program->bodies[k]) compiler.compile(static_cast<int32_t>(k));
  compiler.link();
  return program;
}

}  // namespace undertow
