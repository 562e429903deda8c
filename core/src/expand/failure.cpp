#include "failure.h"

#include <utility>

namespace undertow::expand {

void Failure::note(const Place& place, std::exception_ptr error, std::vector<Label> tag) {
  const std::lock_guard lock(mutex_);
  if (error_ && !finds_before(place)) return;
  error_ = std::move(error);
  tag_ = std::move(tag);
  place_ = place;
  above_.clear();
  befores_.clear();
  is_there_ = true;
}

void Failure::find_above() {
  Key key{place_.order, place_.index};
  for (const Copy* at = place_.copy; at != nullptr; at = at->parent) {
    above_[at] = key;
    if (at->row != nullptr) key = {at->row->order, at->index};
  }
}

bool Failure::is_before(const Place& place) {
  const std::lock_guard lock(mutex_);
  return finds_before(place);
}

/// Go up until the way of the failure, or an answer, is found; remember it for all copies that were passed.
bool Failure::finds_before(const Place& place) {
  if (above_.empty()) find_above();
  way_.clear();
  Key key{place.order, place.index};
  bool is_before = false;
  for (const Copy* at = place.copy;; at = at->parent) {
    if (const auto found = above_.find(at); found != above_.end()) {
      const Key& other = found->second;
      is_before = key.order != other.order ? key.order < other.order : key.index < other.index;
      break;
    }
    if (const auto known = befores_.find(at); known != befores_.end()) {
      is_before = known->second;
      break;
    }
    way_.push_back(at);
    key = {at->row->order, at->index};
  }
  for (const Copy* at : way_) befores_[at] = is_before;
  return is_before;
}

void Failure::forget(const Copy* copy) {
  const std::lock_guard lock(mutex_);
  befores_.erase(copy);
}

}  // namespace undertow::expand
