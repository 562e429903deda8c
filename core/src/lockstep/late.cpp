// Steps that wait for those of other tables.
#include "lockstep/run.h"

namespace undertow::lockstep {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 23;  // of rows that wait for one thing

}  // namespace

/// Run the operators of a stage, or keep some of them for later: true where the fiber waits for these.
bool Lockstep::put_off(Fiber* self, const Stage& stage) {
  Table& table = *self->table;
  const Late* late = stage.waits < 0 ? nullptr : &plan_.lates[z(stage.waits)];
  if (late != nullptr && late->kind == LateKind::Ahead && self->program->phase + 1 >= table.visits) {
    straight(table, stage.straight);  // there is no next phase
    straight(table, stage.now);
    return false;
  }
  const auto is_looked_at = [&] { return late->kind == LateKind::Kept && options_.check_finite; };  // where it is made
  if (late == nullptr || table.lanes >= late->wide || is_looked_at()) {
    straight(table, stage.run);
    return false;
  }
  straight(table, stage.straight);
  Waiting& waiting = waiting_[z(stage.waits)];
  if (late->is_held()) {
    waiting.hold(*late, table, self, deep_ - 1);
  } else if (!waiting.keep(tables_, *late, table)) {
    straight(table, stage.late);
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

/// Run all that waits in one way.
void Lockstep::run_late(LateKind kind) {
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
      space_.waves[part.wave].ready.push_back(fiber);
    }
    waiting.clear(tables_);
  }
  at_ = before;
}

void Lockstep::run_together(const Late& late, Waiting& waiting) {
  ++stats_.joint_runs;
  stats_.joint_tables += static_cast<int64_t>(waiting.parts.size());
  if (waiting.parts.size() == 1 && late.is_held()) {
    at_ = waiting.parts[0].table;
    straight(*waiting.parts[0].table, late.items);
    return;
  }
  Table* joint = waiting.join(tables_, plan_, late);
  const bool are_there = late.kind != LateKind::Kept;  // those whose rows these are
  at_ = are_there ? joint : nullptr;
  calling_ = {};
  if (are_there) {
    joint_ = joint;
    joint_parts_ = waiting.parts.data();
  }
  straight(*joint, late.items);
  if (are_there) waiting.share(tables_, late, *joint);
  joint_ = nullptr;
  tables_.end(joint);
}

}  // namespace undertow::lockstep
