#include "siblings.h"

#include <algorithm>
#include <map>
#include <vector>

#include "undertow/size.h"

namespace undertow {
namespace {

class Families {
 public:
  Families(Plan& plan, Region& region) : plan_(plan), region_(region) {}

  void find() {
    for (const Program& program : region_.phases)
      for (size_t k = 0; k < program.stages.size(); ++k)
        for (const Item& item : program.stages[k].entered)
          if (item.kind == Item::Kind::Call) look(plan_.calls[z(item.number)], item.number, &program.stages[k]);
    for (const Program& program : region_.phases)
      for (const Stage& stage : program.stages)
        for (const Item& item : stage.straight)
          if (item.kind == Item::Kind::Op) join(plan_.ops[z(item.number)]);
  }

  /// Slots whose every use is an argument of a call.
  void find_passed() {
    for (size_t k = 0; k < region_.slots.size(); ++k) {
      Slot& slot = region_.slots[k];
      slot.is_passed =
          slot.offset < 0 && !slot.is_dynamic && slot.uses > 0 && arguments_[static_cast<int32_t>(k)] == slot.uses;
    }
  }

 private:
  struct Source {
    int32_t call;        // number in Plan::calls
    size_t result;       // of it
    const Stage* stage;  // where it is made
  };

  void look(const CallItem& call, int32_t number, const Stage* stage) {
    for (Operand x : call.arguments)
      if (x >= 0) ++arguments_[x];
    if (call.phase > 0) return;
    for (size_t k = 0; k < call.results.size(); ++k)
      if (call.results[k] >= 0) sources_[call.results[k]] = {number, k, stage};
  }

  /// Does this put one result of several calls, made together, side by side?
  void join(const OpItem& item) {
    if (item.kernel < 0 || item.is_open || item.inputs.size() < 2 || item.outputs[0] < 0) return;
    const Slot& out = region_.slots[z(item.outputs[0])];
    const View result{nullptr, 0, out.shape.data(), out.rank(), out.dtype};
    if (!plan_.kernels[z(item.kernel)]->is_row(result)) return;
    std::vector<int32_t> calls;
    const Source* first = nullptr;
    for (Operand x : item.inputs) {
      const auto found = sources_.find(x);
      if (found == sources_.end()) return;
      const Source& source = found->second;
      if (first == nullptr) first = &source;
      const CallItem &call = plan_.calls[z(source.call)], &other = plan_.calls[z(first->call)];
      const Slot &slot = region_.slots[z(x)], &like = region_.slots[z(item.inputs[0])];
      const bool is_alike = source.stage == first->stage && source.result == first->result && call.body == other.body &&
                            call.group == other.group && call.asks == other.asks && call.visits == other.visits;
      // A call is a sibling once; small values are copied anyway.
      if (!is_alike || call.family >= 0 || slot.offset >= 0 || slot.is_dynamic || slot.bytes != like.bytes) return;
      if (std::ranges::find(calls, source.call) != calls.end()) return;
      calls.push_back(source.call);
    }
    for (size_t k = 0; k < calls.size(); ++k) {
      CallItem& call = plan_.calls[z(calls[k])];
      call.family = calls[0];
      call.sibling = static_cast<int32_t>(k);
      call.siblings = static_cast<int32_t>(calls.size());
    }
  }

  Plan& plan_;
  Region& region_;
  std::map<int32_t, Source> sources_;     // of slots: which call gives them
  std::map<int32_t, int32_t> arguments_;  // of slots: how many calls take them
};

}  // namespace

void find_siblings(Plan& plan) {
  for (Region& region : plan.regions) {
    Families families(plan, region);
    families.find();
    families.find_passed();
  }
}

}  // namespace undertow
