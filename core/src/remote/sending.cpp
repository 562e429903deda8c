// The owner's half of tasks that run elsewhere: what workers are sent, and what is done with their replies.
#include <algorithm>

#include "remote/message.h"
#include "remote/outline.h"
#include "remote/sentinel.h"
#include "threads/task.h"
#include "threads/tasks.h"
#include "undertow/size.h"

namespace undertow {

using remote::Reader;
using remote::Writer;

std::string Task::message(remote::Publisher& publisher) {
  const Run& owner = shared_.owner;
  const Plan& plan = owner.plan;
  const int32_t phase = shared_.invocation.phase;
  Writer to;
  to.put(remote::kVersion);
  to.put(phase);
  if (phase == 0) put_invocation(to, publisher);
  for (Lanes& part : parts_) {
    const Part& from = *part.owner;
    const CallItem& item = *(part.item = from.item);
    to.put(static_cast<int32_t>(&item - plan.calls.data()));
    for (size_t k = 0; k < item.arguments.size(); ++k)
      if (item.arguments[k] >= 0)
        remote::put_column(to, plan.slot(*part.region, item.arguments[k]), from.arguments[k].from(part.from),
                           part.lanes, &publisher);
  }
  const std::vector<int32_t>& reads = plan.remote->reads[z(invocation_.group)];
  for (int32_t slot : reads) remote::put_column(to, plan.regions[0].slots[z(slot)], owner.shared(slot), 1, &publisher);
  reply_.clear();
  return to.take();
}

void Task::put_invocation(Writer& to, remote::Publisher& publisher) const {
  const Run& owner = shared_.owner;
  const Plan& plan = owner.plan;
  const RunOptions& options = shared_.options;
  to.put(invocation_.group);
  to.put(invocation_.visits);
  to.put(invocation_.resume_group);
  to.put(invocation_.depth);
  to.put(options.width);
  to.put(options.max_depth);
  to.put(options.memory);
  to.put(shared_.share.bytes.left());
  to.put(shared_.share.frames.left());
  to.put<uint8_t>(options.check_finite);
  to.put<uint8_t>(options.is_timed);
  to.put<uint8_t>(options.goes_deep);
  to.put(owner.stats.max_depth);
  to.put(static_cast<int64_t>(owners_.size()));
  for (const Entry* entry : owners_) {
    to.put(static_cast<int32_t>(entry->item - plan.calls.data()));
    for (size_t k = 0; k < entry->values.size(); ++k)
      if (entry->item->hoists[k] >= 0)
        remote::put_column(to, plan.slot(*entry->region, entry->item->hoists[k]), entry->values[k], 1, &publisher);
  }
  std::vector<const void*> origins;
  to.put(static_cast<int64_t>(parts_.size()));
  for (const Lanes& part : parts_) {
    to.put(static_cast<int32_t>(part.owner->item - plan.calls.data()));
    to.put(part.lanes);
    const auto origin = std::ranges::find(origins, part.origin);
    to.put(static_cast<int32_t>(origin - origins.begin()));
    if (origin == origins.end()) origins.push_back(part.origin);
    to.put<uint8_t>(part.makes_entries);
    to.put(part.entry_bytes);
    to.all(part.places);
  }
}

int64_t Task::arrived(std::string reply) {
  reply_ = std::move(reply);
  Reader from(std::as_bytes(std::span(reply_)));
  if (from.flag()) shared_.first_failed = std::min<int64_t>(shared_.first_failed, order);
  return from.between<int64_t>(0, int64_t{1} << 60);  // the first of the counts: activations
}

void Task::accept(Run& owner) {
  const Plan& plan = owner.plan;
  const std::string reply = std::exchange(reply_, {});
  Reader from(std::as_bytes(std::span(reply)));
  const bool is_stopped = from.flag();
  remote::get_counts(from, stats, plan);
  for (Use* use : {&frames, &bytes}) {
    use->kept = from.between<int64_t>(0, INT64_MAX);
    use->most = from.between<int64_t>(use->kept, INT64_MAX);
  }
  stats.max_depth = from.get<int64_t>();
  stats.deepest = remote::get_labels(from);
  complete(stats.deepest);
  if (is_stopped) {
    Stop stop = remote::get_stop(from, plan);
    complete(stop.tag);
    throw stop;
  }
  put_results(from, owner);
  const int64_t partials = from.count(4);
  for (int64_t k = 0; k < partials; ++k) {
    Entry& entry = *owners_[z(from.between<int32_t>(0, static_cast<int32_t>(owners_.size()) - 1))];
    const auto index = from.between<int32_t>(0, static_cast<int32_t>(entry.sums.size()) - 1);
    Partial partial{&entry, z(index), from.flag(), {}, {}};
    for (Buffer* buffer : {&partial.numbers, &partial.values}) {
      const int64_t count = from.count();
      if (buffer == &partial.numbers && !partial.is_rows && count > 0) throw BadMessage("a whole sum has rows");
      const std::byte* data = from.part(count);
      if (buffer == &partial.numbers && !partial.is_rows) continue;
      buffer->resize(z(std::max<int64_t>(count, 1)));
      lanes::copy(buffer->data(), data, count);
      if (count == 0) *buffer = Buffer(buffer->leave(), 0);
    }
    partials_.push_back(std::move(partial));
  }
  from.end();
}

/// Results of all lanes: numbers to the columns that the owner has made, arrays to blocks of its own.
void Task::put_results(Reader& from, Run& owner) {
  remote::Memory memory;
  const remote::Arrived arrived{{}, memory, owner.tables};
  for (const Lanes& part : parts_)
    for (size_t k = 0; k < part.item->results.size(); ++k) {
      if (part.item->results[k] == kNoSlot) continue;
      const Slot& slot = part.region->slots[z(part.item->results[k])];
      const Column column = remote::get_column(from, slot, part.lanes, arrived);
      if (column.data == nullptr) throw BadMessage("a result is missing");
      const Column to = shared_.rooms[part.number][k].from(part.from);
      if (!slot.is_dynamic) {
        lanes::move(to.data, to.stride, column.data, column.stride, part.lanes, slot.bytes);
        continue;
      }
      for (int64_t lane = 0; lane < part.lanes; ++lane) {
        const Box& box = *column.lane<Box>(lane);
        const int64_t bytes = View{box.data, 0, box.shape, slot.rank(), slot.dtype}.bytes();
        Block* block = owner.tables.pool.take(bytes, slot.home);
        lanes::copy(block->data(), box.data, bytes);
        owner.tables.pool.drop(to.lane<Box>(lane)->block);
        *to.lane<Box>(lane) = {block, block->data(), box.shape};
      }
    }
}

/// A tag ends where the guest's lanes were called: continue from there.
void Task::complete(std::vector<Label>& labels) const {
  if (labels.empty() || !remote::is_end(labels.back())) return;
  const auto [number, lane] = remote::end_of(labels.back());
  labels.pop_back();
  if (number < 0 || z(number) >= parts_.size() || lane < 0 || lane >= parts_[z(number)].lanes)
    throw BadMessage("a tag ends at a lane that there is not");
  Place at = out(parts_[z(number)], lane, labels);
  while (at.part != nullptr) at = at.part->invocation->caller->out(*at.part, at.lane, labels);
}

// ------------------------------------------------------------------------------------------------------------------

remote::Publisher& Tasks::publisher() {
  if (publisher_ == nullptr) publisher_ = std::make_unique<remote::Publisher>(*run_.link, run_.tables.pool);
  return *publisher_;
}

void Tasks::send(SharedLanes& shared) {
  for (Task& task : shared.tasks) {
    if (task.sent < 0) sent_[task.sent = ++count_] = &task;
    const std::string message = task.message(publisher());
    run_.link->submit(task.sent, shared.invocation.phase, message, publisher().used());
  }
}

/// Wait for all tasks, or until one has stopped and all before it have come.
void Tasks::await(SharedLanes& shared) {
  constexpr double kBetween = 0.02;  // seconds between two looks at the host
  const auto forget = [&](Task& task) {
    sent_.erase(task.sent);
    run_.link->drop(task.sent);
  };
  for (bool is_first = true;; is_first = false) {
    const bool is_over = std::ranges::all_of(shared.tasks, [&](const Task& task) { return task.has_arrived(); });
    if (is_over) break;
    receive(is_first ? 0 : kBetween);
    if (!is_first) run_.poll.look();
    // A task that stopped ends the run: what comes after it is not needed, but one before it may stop, too.
    const int64_t failed = shared.first_failed;
    if (failed == INT64_MAX) continue;
    const auto last = shared.tasks.begin() + failed;
    if (std::all_of(shared.tasks.begin(), last, [](const Task& task) { return task.has_arrived(); })) break;
  }
  if (shared.is_last_phase())
    for (Task& task : shared.tasks) forget(task);
}

void Tasks::receive(double seconds) {
  for (Link::Reply& reply : run_.link->take(seconds)) {
    const auto found = sent_.find(reply.task);
    if (found == sent_.end()) continue;  // it was dropped
    if (reply.bytes.empty()) throw BadMessage("it is empty");
    Task& task = *found->second;
    calls_.fetch_add(task.arrived(std::move(reply.bytes)), std::memory_order_relaxed);
  }
}

}  // namespace undertow
