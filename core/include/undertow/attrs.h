// Attributes of an operator in a plan. Looked up when a kernel is bound, never while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace undertow {

using OptionalInts = std::vector<std::optional<int64_t>>;  // nullopt: None in a Python slice or an open shape
using Attr = std::variant<int64_t, std::string, OptionalInts>;

class Attrs {
 public:
  void set(std::string name, Attr value) { items_.insert_or_assign(std::move(name), std::move(value)); }

  int64_t integer(const char* name) const { return get<int64_t>(name); }
  bool flag(const char* name) const { return get<int64_t>(name) != 0; }
  const OptionalInts& optionals(const char* name) const { return get<OptionalInts>(name); }
  std::vector<int> axes(const char* name) const {
    std::vector<int> out;
    for (const auto& axis : optionals(name)) {
      if (!axis || *axis < 0 || *axis > INT32_MAX)
        throw std::invalid_argument(std::string("the attribute ") + name + " names no axes");
      out.push_back(static_cast<int>(*axis));
    }
    return out;
  }

 private:
  template <class T>
  const T& get(const char* name) const {
    auto found = items_.find(name);
    if (found == items_.end() || !std::holds_alternative<T>(found->second))
      throw std::invalid_argument(std::string("the attribute ") + name + " is missing or of the wrong type");
    return std::get<T>(found->second);
  }
  std::map<std::string, Attr, std::less<>> items_;
};

}  // namespace undertow
