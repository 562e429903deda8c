// Deferred steps: they wait, to run with those of other tables.
#include "lockstep/run.h"

namespace undertow::lockstep {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 23;  // of the rows that wait for one step

}  // namespace

/// Run the operators of a stage, or defer some of them; true if the fiber must wait for these.
bool Lockstep::defer(Fiber* self, const Stage& stage) {
  Table& table = *self->table;
  const Deferral* deferral = stage.deferral < 0 ? nullptr : &plan_.deferrals[z(stage.deferral)];
  if (deferral != nullptr && deferral->kind == DeferredKind::Ahead && self->program->phase + 1 >= table.visits) {
    straight(table, stage.straight);  // there is no next phase
    straight(table, stage.now);
    return false;
  }
  const auto is_looked_at = [&] {
    return deferral->kind == DeferredKind::Kept && options_.check_finite;
  };  // where it is made
  if (deferral == nullptr || table.lanes >= deferral->wide || is_looked_at()) {
    straight(table, stage.run);
    return false;
  }
  straight(table, stage.straight);
  DeferredRows& waiting = waiting_[z(stage.deferral)];
  if (deferral->is_held()) {
    waiting.hold(*deferral, table, self, deep_ - 1);
  } else if (!waiting.keep(tables_, *deferral, table)) {
    straight(table, stage.deferred);
    return false;
  }
  deferred_lanes_[z(deferral->kind)] += table.lanes;
  if (waiting.bytes >= kMostBytes) {
    if (deferral->is_held())
      is_full_ = true;  // they run once this fiber has been suspended
    else
      run_deferred(deferral->kind);
  }
  return deferral->is_held();
}

/// Run all deferred steps of one kind.
void Lockstep::run_deferred(DeferredKind kind) {
  const Table* before = at_;
  deferred_lanes_[z(kind)] = 0;
  if (kind == DeferredKind::Held) is_full_ = false;
  for (size_t number = 0; number < waiting_.size(); ++number) {
    DeferredRows& waiting = waiting_[number];
    if (plan_.deferrals[number].kind != kind || waiting.parts.empty()) continue;
    run_together(plan_.deferrals[number], waiting);
    for (const DeferredRows::Part& part : waiting.parts) {
      if (kind != DeferredKind::Held) break;
      Fiber* fiber = static_cast<Fiber*>(part.fiber);
      fiber->is_past = true;
      space_.waves[part.wave].ready.push_back(fiber);
    }
    waiting.clear(tables_);
  }
  at_ = before;
}

void Lockstep::run_together(const Deferral& deferral, DeferredRows& waiting) {
  ++stats_.joint_runs;
  stats_.joint_tables += static_cast<int64_t>(waiting.parts.size());
  if (waiting.parts.size() == 1 && deferral.is_held()) {
    at_ = waiting.parts[0].table;
    straight(*waiting.parts[0].table, deferral.items);
    return;
  }
  Table* joint = waiting.join(tables_, plan_, deferral);
  const bool are_there = deferral.kind != DeferredKind::Kept;  // do the tables of these rows still exist?
  at_ = are_there ? joint : nullptr;
  calling_ = {};
  if (are_there) {
    joint_ = joint;
    joint_parts_ = waiting.parts.data();
  }
  straight(*joint, deferral.items);
  if (are_there) waiting.share(tables_, deferral, *joint);
  joint_ = nullptr;
  tables_.end(joint);
}

}  // namespace undertow::lockstep
