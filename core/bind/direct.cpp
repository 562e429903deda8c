#include "direct.h"

#include <nanobind/stl/string_view.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "numpy.h"

namespace nb = nanobind;

namespace undertow {
namespace {

nb::object make_container(const Direct& direct, const Direct::Token& token, std::vector<nb::object>& contents,
                          size_t at) {
  nb::object made;
  const auto each = [&](auto&& put) {
    for (Py_ssize_t k = 0; k < token.count; ++k) put(k, contents[at + static_cast<size_t>(k)]);
  };
  switch (token.make) {
    case Direct::Make::Tuple:
      made = nb::steal(PyTuple_New(token.count));
      if (!made.is_valid()) throw nb::python_error();
      each([&](Py_ssize_t k, nb::object& value) { PyTuple_SetItem(made.ptr(), k, value.release().ptr()); });
      break;
    case Direct::Make::Dict:
      made = nb::dict();
      each([&](Py_ssize_t k, nb::object& value) {
        if (PyDict_SetItem(made.ptr(), PyTuple_GetItem(token.object.ptr(), k), value.ptr()) != 0)
          throw nb::python_error();
      });
      break;
    default:
      made = nb::steal(PyList_New(token.count));
      if (!made.is_valid()) throw nb::python_error();
      each([&](Py_ssize_t k, nb::object& value) { PyList_SetItem(made.ptr(), k, value.release().ptr()); });
      if (token.make == Direct::Make::Other) made = direct.build(token.object, made);
  }
  contents.resize(at);
  return made;
}

bool fits(const View& view, const ValueType& wanted) {
  bool fits = wanted.dtype == view.dtype && wanted.rank() == view.rank;
  for (int axis = 0; fits && axis < view.rank; ++axis) {
    const int64_t length = wanted.shape[static_cast<size_t>(axis)];
    fits = length == kUnknown || length == view.shape[axis];
  }
  return fits;
}

}  // namespace

Direct::Direct(nb::object owner_, nb::object core, int64_t width_, const nb::tuple& structure, nb::object build_)
    : owner(std::move(owner_)), plan_object(std::move(core)), build(std::move(build_)), width(width_) {
  plan = &nb::cast<const Plan&>(plan_object);
  for (nb::handle each : structure) {
    const auto token = nb::cast<nb::tuple>(each);
    const auto kind = nb::cast<std::string_view>(token[0]);
    if (kind == "leaf") {
      tokens.push_back({Make::Leaf, 0, {}});
      ++leaves;
    } else if (kind == "static") {
      tokens.push_back({Make::Static, 0, token[1].attr("value")});
    } else {
      const auto count = nb::cast<Py_ssize_t>(token[1]);
      if (kind == "tuple")
        tokens.push_back({Make::Tuple, count, {}});
      else if (kind == "list")
        tokens.push_back({Make::List, count, {}});
      else if (kind == "dict")
        tokens.push_back({Make::Dict, count, nb::tuple(token[2])});
      else
        tokens.push_back({Make::Other, count, token});
    }
  }
}

bool Direct::is_possible(const Plan& plan) {
  for (const OpItem& op : plan.ops)
    if (op.is_effect || op.kernel < 0) return false;
  for (int32_t number : plan.regions[0].results[0])
    if (number == kNoSlot) return false;  // an order token
  return true;
}

nb::object result_of(const Direct& direct, std::vector<Value>& values) {
  const auto leaf = [&](size_t k) {
    const auto slot = static_cast<size_t>(direct.plan->regions[0].results[0][k]);
    const ValueType& type = direct.plan->regions[0].slots[slot];
    return type.rank() == 0 ? numpy::scalar_of(values[k].bytes.data(), type.dtype)
                            : numpy::array_of(std::move(values[k]), type.dtype);
  };
  if (direct.tokens.size() == 1 && direct.leaves == 1) return leaf(0);
  struct Open {
    const Direct::Token* token;
    size_t at;  // in `contents`
  };
  std::vector<nb::object> contents;
  std::vector<Open> open;
  size_t next = 0;
  for (const Direct::Token& token : direct.tokens) {
    if (token.make == Direct::Make::Leaf)
      contents.push_back(leaf(next++));
    else if (token.make == Direct::Make::Static)
      contents.push_back(token.object);
    else
      open.push_back({&token, contents.size()});
    while (!open.empty() && contents.size() - open.back().at == static_cast<size_t>(open.back().token->count)) {
      const Open done = open.back();
      open.pop_back();
      nb::object made = make_container(direct, *done.token, contents, done.at);
      contents.push_back(std::move(made));
    }
  }
  return std::move(contents.at(0));
}

bool Inputs::read(Arguments& arguments, const std::vector<DType>& dtypes, const Plan& plan) {
  const Region& main = plan.regions[0];
  const std::vector<int32_t>& params = main.params[0];
  const size_t count = arguments.leaves.size();
  if (params.size() != count) return false;
  // Copying may release the GIL: it comes before anything is read that another thread may change.
  for (Leaf& leaf : arguments.leaves)
    if (leaf.kind == ArgumentKind::Array && !numpy::as_array(leaf.object.ptr())->is_plain())
      leaf.object = numpy::plain_copy(numpy::as_array(leaf.object.ptr()));
  views.resize(count);
  numbers.resize(kMostBytes * count);
  size_t axes = 0;
  for (const Leaf& leaf : arguments.leaves)
    if (leaf.kind == ArgumentKind::Array) axes += static_cast<size_t>(numpy::as_array(leaf.object.ptr())->rank);
  sizes.reserve(axes);
  for (size_t k = 0; k < count; ++k) {
    const Leaf& leaf = arguments.leaves[k];
    View& view = views[k];
    view.dtype = k < dtypes.size() ? dtypes[k] : leaf.dtype;
    if (leaf.kind == ArgumentKind::Array) {
      const numpy::ArrayObject& array = *numpy::as_array(leaf.object.ptr());
      if (!array.is_plain() || numpy::dtype_of(&array) != view.dtype) return false;  // changed in place meanwhile
      view.data = array.data;
      view.shape = sizes.data() + sizes.size();
      view.rank = array.rank;
      sizes.insert(sizes.end(), array.sizes, array.sizes + array.rank);
    } else {
      view.data = numbers.data() + kMostBytes * k;
      if (leaf.kind == ArgumentKind::Scalar)
        std::memcpy(view.data, numpy::data_of_scalar(leaf.object.ptr()), static_cast<size_t>(size_of(leaf.dtype)));
      else if (!read_number(leaf, view.dtype, static_cast<std::byte*>(view.data)))
        return false;
    }
    if (params[k] != kNoSlot && !fits(view, main.slots[static_cast<size_t>(params[k])])) return false;
  }
  return true;
}

}  // namespace undertow
