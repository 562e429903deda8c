#include "failure.h"

#include <utility>

namespace undertow::expand {

void Failure::note(const Place& place, std::exception_ptr error, std::vector<Label> tag) {
  const std::lock_guard lock(mutex_);
  if (error_ && !finds_before(place)) return;
  if (error_) {  // what was above the other and is not above this one comes after it
    const Copy* joint = place.copy;
    while (!above_.contains(joint)) joint = joint->parent;
    for (const Copy* at = place_.copy; at != joint; at = at->parent) {
      above_.erase(at);
      afters_.insert(at);
    }
  }
  error_ = std::move(error);
  tag_ = std::move(tag);
  place_ = place;
  befores_.clear();
  is_known_ = false;
  is_there_ = true;
}

/// Find the copies above the failure, up to those that are known.
void Failure::find_above() {
  is_known_ = true;
  Key key{place_.order, place_.index};
  for (const Copy* at = place_.copy; at != nullptr; at = at->parent) {
    const bool is_new = above_.insert_or_assign(at, key).second;
    if (!is_new && at != place_.copy) return;
    if (at->row != nullptr) key = {at->row->order, at->index};
  }
}

bool Failure::is_before(const Place& place) {
  const std::lock_guard lock(mutex_);
  return finds_before(place);
}

/// Go up until the way of the failure, or an answer, is found; remember it for all copies that were passed.
bool Failure::finds_before(const Place& place) {
  if (!is_known_) find_above();
  way_.clear();
  Key key{place.order, place.index};
  bool is_before = false;
  for (const Copy* at = place.copy;; at = at->parent) {
    if (const auto found = above_.find(at); found != above_.end()) {
      const Key& other = found->second;
      is_before = key.order != other.order ? key.order < other.order : key.index < other.index;
      break;
    }
    if (afters_.contains(at)) break;
    if (befores_.contains(at)) {
      is_before = true;
      break;
    }
    way_.push_back(at);
    key = {at->row->order, at->index};
  }
  (is_before ? befores_ : afters_).insert(way_.begin(), way_.end());
  return is_before;
}

void Failure::forget(const Copy* copy) {
  const std::lock_guard lock(mutex_);
  befores_.erase(copy);
  afters_.erase(copy);
}

}  // namespace undertow::expand
