// Tags: where a lockstep run is.
#include "lockstep/run.h"

#include "run/waves.h"

namespace undertow::lockstep {

Lockstep::Lockstep(Run& run) : TableRunner(run), space_(run.wave_space()), waiting_(run.plan.deferrals.size()) {}

Place Lockstep::where(std::vector<Label>& labels) const {
  if (at_ == nullptr) return calling_;
  const int64_t lane = operators_.lane;
  return out(at_, lane >= 0 && lane < at_->lanes ? lane : 0, labels);
}

Place Lockstep::out(const Part& part, int64_t lane, std::vector<Label>& labels) const {
  return out(static_cast<const Request&>(part).table, lane, labels);
}

Place Lockstep::out(const Table* at, int64_t lane, std::vector<Label>& labels) const {
  if (at == joint_) {
    const DeferredRows::Part* part = joint_parts_;
    while (lane >= part->at + part->lanes) ++part;
    at = part->table;
    lane -= part->at;
  }
  for (; at->region->kind != Region::Kind::Function; at = at->parent) {
    if (at->region->kind == Region::Kind::Main) return {};
    if (at->region->kind == Region::Kind::Loop) labels.push_back({at->site, at->iteration});
    if (at->region->kind == Region::Kind::Map)
      labels.push_back({at->site, reinterpret_cast<const int64_t*>(at->numbers->data())[lane]});
    lane = at->parent_lane(lane);
  }
  for (const Piece& piece : at->chunk->pieces)
    if (const int64_t caller = piece.caller_of(at, lane); caller >= 0) {
      labels.push_back({piece.part->item->site, -1});
      return {piece.part, caller};
    }
  return {};  // it was stopped before there was a lane
}

void Lockstep::tell(const Table& table, int32_t phase) {
  if (!options_.is_traced) return;
  const auto region = static_cast<int32_t>(table.region - plan_.regions.data());
  run_.host.wave(region, table.lanes, table.chunk->invocation->depth, phase, 0);
}

}  // namespace undertow::lockstep
