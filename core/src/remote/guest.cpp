// The worker's half of a task: an invocation that came in a message, with a run of its own.
#include <deque>
#include <optional>

#include "remote/message.h"
#include "remote/outline.h"
#include "remote/sentinel.h"
#include "run/entries.h"
#include "run/waves.h"
#include "undertow/remote.h"
#include "undertow/size.h"

namespace undertow {

using remote::Reader;
using remote::Writer;

struct Guest::State final : Caller, Host {
  State(const Plan& of, const std::atomic<bool>& stops, Link* to) : plan(of), is_stopped(stops), link(to) {}

  // Its host. Tasks run no operators that need one.
  void apply(int32_t node, std::span<const View>, std::span<Value>) override { throw Stop{Stop::Kind::Internal, node}; }
  void poll() override {
    if (is_stopped) throw Interrupted{};
  }

  Column room(Part& part, size_t result) override { return rooms[place_of(part)][result]; }
  void take(Part& part, size_t result, const Slot& slot, const Column& column) override {
    run->tables.put(part.region->slots[z(part.item->results[result])], room(part, result), nullptr, slot, column,
                    part.lanes);
  }
  void taken(Part&) override {}
  void back(Invocation&) override {}
  Place out(const Part& part, int64_t lane, std::vector<Label>& labels) const override {
    labels.push_back(remote::end_at(static_cast<int64_t>(place_of(part)), lane));
    return {};
  }

  size_t place_of(const Part& part) const {
    size_t place = 0;
    while (&parts[place] != &part) ++place;
    return place;
  }

  void begin(Reader& from, const std::vector<std::span<const std::byte>>& shared);
  void get_arguments(Reader& from, const std::vector<std::span<const std::byte>>& shared);
  void make_rooms();
  std::string reply(bool is_stopped, const Stop* stop, int64_t depth_before);

  const CallItem& call_in(Reader& from) const {
    if (plan.calls.empty()) throw BadMessage("the plan has no calls");
    return plan.calls[z(from.between<int32_t>(0, static_cast<int32_t>(plan.calls.size()) - 1))];
  }
  const Region& region_of(const CallItem& call) const {
    return plan.regions[z(plan.remote->regions[z(&call - plan.calls.data())])];
  }

  const Plan& plan;
  const std::atomic<bool>& is_stopped;
  Link* const link;
  RunOptions options;
  RunStats stats;
  std::optional<RunShare> share;
  remote::Memory memory;
  remote::Memory results;  // of this phase
  std::vector<Column> main;
  std::deque<Part> parts;
  std::deque<Entry> entries;
  std::deque<std::vector<Entry*>> below;
  std::vector<std::vector<Column>> rooms;  // for results, by part
  Invocation invocation{};
  std::optional<Run> run;
};

void Guest::State::begin(Reader& from, const std::vector<std::span<const std::byte>>& shared) {
  const auto group = from.between<int32_t>(0, static_cast<int32_t>(plan.groups.size()) - 1);
  if (plan.groups[z(group)].grain == 0) throw BadMessage("this group does not run elsewhere");
  invocation.caller = this;
  invocation.group = group;
  invocation.visits = from.between<int32_t>(1, INT32_MAX);
  invocation.resume_group = from.get<int32_t>();
  invocation.depth = from.between<int64_t>(1, int64_t{1} << 60);
  options.width = from.between<int64_t>(1, 1 << 16);
  options.max_depth = from.between<int64_t>(0, INT64_MAX);
  options.memory = from.between<int64_t>(1, INT64_MAX);
  const auto bytes = from.between<int64_t>(0, INT64_MAX), frames = from.between<int64_t>(0, INT64_MAX);
  options.check_finite = from.flag();
  options.is_timed = from.flag();
  options.goes_deep = from.flag();
  stats.max_depth = from.between<int64_t>(0, INT64_MAX);
  share.emplace(bytes, frames);
  main.resize(plan.regions[0].slots.size());
  run.emplace(plan, options, *this, stats, nullptr, &*share, link);
  run->main_columns = main.data();
  const remote::Arrived arrived{shared, memory, run->tables};
  for (int64_t left = from.count(4); left > 0; --left) {
    const CallItem& item = call_in(from);
    if (!item.makes_entry) throw BadMessage("a call makes no entry");
    Entry& entry = entries.emplace_back();
    entry.region = &region_of(item);
    entry.item = &item;
    entry.sums.resize(item.hoists.size());
    for (Operand x : item.hoists) {
      const Slot& slot = plan.slot(*entry.region, x);
      entry.values.push_back(x < 0 ? Column{nullptr, plan.constants[z(~x)].data, 0}
                                   : remote::get_column(from, slot, 1, arrived));
      if (entry.values.back().data == nullptr) throw BadMessage("a hoisted value is missing");
      entry.values.back().stride = 0;
    }
  }
  for (int64_t left = from.count(20); left > 0; --left) {
    const CallItem& item = call_in(from);
    const Region& body = plan.regions[z(item.body)];
    if (item.group != group || item.phase != 0) throw BadMessage("a call does not enter this group");
    if (std::ranges::find(item.visits, invocation.visits) == item.visits.end())
      throw BadMessage("a call has another number of visits");
    Part& part = parts.emplace_back();
    part = {};
    part.invocation = &invocation;
    part.item = &item;
    part.region = &region_of(item);
    part.lanes = from.between<int64_t>(1, int64_t{1} << 40);
    part.origin = reinterpret_cast<const void*>(z(from.between<int32_t>(0, INT32_MAX)) + 1);
    part.makes_entries = from.flag();
    part.entry_bytes = from.between<int64_t>(0, int64_t{1} << 40);
    const std::vector<int32_t> places = from.all<int32_t>();
    const std::vector<int32_t>& makers = plan.remote->makers[z(item.body)];
    std::vector<Entry*>& own = below.emplace_back();
    for (int32_t place : places) {
      if (place < 0 || z(place) >= entries.size()) throw BadMessage("there is no such entry");
      Entry& entry = entries[z(place)];
      if (!std::ranges::binary_search(makers, static_cast<int32_t>(entry.item - plan.calls.data())))
        throw BadMessage("lanes are below an entry of others");
      own.push_back(&entry);
    }
    if (body.hoisted == 0 ? !own.empty() : own.size() != 1 && own.size() != z(part.lanes))
      throw BadMessage("there are too many or too few entries");
    if (own.size() == 1)
      part.entry = own[0];
    else if (!own.empty())
      part.entries = own.data();
    invocation.parts.push_back(&part);
  }
  if (parts.empty()) throw BadMessage("there are no lanes");
}

void Guest::State::get_arguments(Reader& from, const std::vector<std::span<const std::byte>>& shared) {
  const remote::Arrived arrived{shared, memory, run->tables};
  const int32_t phase = invocation.runner == nullptr ? 0 : invocation.phase + 1;
  for (Part& part : parts) {
    const CallItem& item = call_in(from);
    const bool is_same =
        &region_of(item) == part.region && item.body == part.item->body && item.call == part.item->call;
    if (item.phase != phase || !is_same || (phase == 0 && &item != part.item))
      throw BadMessage("a call does not ask for this phase");
    part.item = &item;
    part.arguments.assign(item.arguments.size(), {});
    const std::vector<int32_t>& params = plan.regions[z(item.body)].params[z(phase)];
    for (size_t k = 0; k < item.arguments.size(); ++k) {
      const Operand x = item.arguments[k];
      if (x == kNoSlot) continue;
      part.arguments[k] = x < 0 ? Column{nullptr, plan.constants[z(~x)].data, 0}
                                : remote::get_column(from, plan.slot(*part.region, x), part.lanes, arrived);
      if (part.arguments[k].data == nullptr && params[k] != kNoSlot) throw BadMessage("an argument is missing");
    }
  }
  for (int32_t slot : plan.remote->reads[z(invocation.group)]) {
    main[z(slot)] = remote::get_column(from, plan.regions[0].slots[z(slot)], 1, arrived);
    main[z(slot)].stride = 0;
  }
  from.end();
}

void Guest::State::make_rooms() {
  results = {};
  rooms.clear();
  for (const Part& part : parts) {
    std::vector<Column>& own = rooms.emplace_back();
    for (int32_t result : part.item->results) {
      if (result == kNoSlot) {
        own.emplace_back();
        continue;
      }
      const Slot& slot = part.region->slots[z(result)];
      if (slot.is_dynamic) {
        Box* boxes = results.boxes(part.lanes);
        own.push_back({nullptr, reinterpret_cast<std::byte*>(boxes), static_cast<int64_t>(sizeof(Box))});
      } else {
        int64_t bytes;
        if (__builtin_mul_overflow(slot.bytes, part.lanes, &bytes)) throw OverLimit{OverLimit::Kind::OutOfMemory};
        own.push_back({nullptr, results.take(bytes), slot.bytes});
      }
    }
  }
}

/// What a phase has found and counted, or why it stopped.
std::string Guest::State::reply(bool has_stopped, const Stop* stop, int64_t depth_before) {
  Tables& tables = run->tables;
  Writer to;
  to.put<uint8_t>(has_stopped);
  remote::put_counts(to, stats);
  to.put(tables.frames);
  to.put(std::max(tables.frames, tables.peak_frames));
  to.put(tables.pool.live());
  to.put(std::max(tables.pool.live(), tables.pool.peak()));
  to.put(stats.max_depth);
  remote::put_labels(to, stats.max_depth > depth_before ? stats.deepest : std::vector<Label>{});
  if (stop != nullptr) {
    remote::put_stop(to, *stop);
    return to.take();
  }
  for (size_t place = 0; place < parts.size(); ++place)
    for (size_t k = 0; k < rooms[place].size(); ++k) {
      const Column& column = rooms[place][k];
      if (parts[place].item->results[k] == kNoSlot) continue;
      const Slot& slot = parts[place].region->slots[z(parts[place].item->results[k])];
      remote::put_column(to, slot, column, parts[place].lanes, nullptr);
      if (!slot.is_dynamic) continue;
      for (int64_t lane = 0; lane < parts[place].lanes; ++lane) {
        Box& box = *column.lane<Box>(lane);
        tables.pool.drop(box.block);
        box = {};
      }
    }
  std::vector<Partial> partials;
  std::vector<int32_t> owners;
  for (size_t k = 0; k < entries.size(); ++k) {
    take_partials(tables, entries[k], entries[k], partials);
    owners.resize(partials.size(), static_cast<int32_t>(k));
  }
  to.put(static_cast<int64_t>(partials.size()));
  for (size_t k = 0; k < partials.size(); ++k) {
    const Partial& partial = partials[k];
    to.put(owners[k]);
    to.put(static_cast<int32_t>(partial.index));
    to.put<uint8_t>(partial.is_rows);
    for (const Buffer* buffer : {&partial.numbers, &partial.values}) {
      to.put(static_cast<int64_t>(buffer->size()));
      to.copy(buffer->data(), static_cast<int64_t>(buffer->size()));
    }
  }
  return to.take();
}

Guest::Guest(const Plan& plan) : plan_(plan) {}
Guest::~Guest() = default;

std::string Guest::run(std::span<const std::byte> message, std::vector<std::span<const std::byte>> shared, Link* link) {
  if (is_stopped_) throw Interrupted{};
  Reader from(message);
  if (from.get<uint32_t>() != remote::kVersion) throw BadMessage("it is of another version");
  const auto phase = from.get<int32_t>();
  const bool is_first = state_ == nullptr;
  if (phase != (is_first ? 0 : state_->invocation.phase + 1)) throw BadMessage("it is not for the next phase");
  // Whatever goes wrong, the task is over.
  std::unique_ptr<State> state = std::move(state_);
  if (is_first) {
    state = std::make_unique<State>(plan_, is_stopped_, link);
    state->begin(from, shared);
  } else if (phase >= state->invocation.visits) {
    throw BadMessage("there are no more phases");
  }
  state->get_arguments(from, shared);
  RunStats& stats = state->stats;
  const int64_t depth = stats.max_depth;
  const auto end = [&](const Stop* stop) {
    activations = stats.activations;
    waves = stats.waves;
    std::string reply = state->reply(stop != nullptr, stop, depth);
    const int64_t reached = stats.max_depth, nodes = plan_.nodes;
    std::vector<Label> deepest = std::move(stats.deepest);
    stats = {};
    stats.max_depth = reached;
    stats.deepest = std::move(deepest);
    stats.fired.assign(z(nodes), 0);
    return reply;
  };
  try {
    state->make_rooms();
    state->run->tables.measure();
    state->run->run(state->invocation, is_first);
  } catch (const Stop& stop) {
    return end(&stop);
  } catch (const OverLimit&) {  // before there was a run
    const Stop stop{Stop::Kind::OutOfMemory};
    return end(&stop);
  }
  std::string reply = end(nullptr);
  if (phase + 1 < state->invocation.visits) state_ = std::move(state);
  return reply;
}

}  // namespace undertow
