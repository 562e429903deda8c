// A Link that is a Python object: engines/outside.py says what it has.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "interpreter.h"
#include "undertow/remote.h"

namespace undertow {

class PythonLink final : public Link {
  /// As long as it lives, this thread has the lock of the interpreter.
  struct Lock {
    Lock() : state(PyGILState_Ensure()) {}  // nanobind's is noexcept: a thread that is ended there would abort
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { PyGILState_Release(state); }
    PyGILState_STATE state;
  };

  /// Do something with that lock.
  template <class Work>
  static auto locked(Work&& work) {
    if (is_finalizing()) park();
    return surviving([&] {
      const Lock lock;
      return work();
    });
  }

 public:
  /// Used by a thread that does without the lock of the interpreter.
  explicit PythonLink(nanobind::object link) : link_(std::move(link)) {
    is_eager = nanobind::cast<bool>(nanobind::getattr(link_, "is_eager", nanobind::bool_(false)));
  }

  int64_t idle() override {
    return locked([&] { return nanobind::cast<int64_t>(link_.attr("idle")()); });
  }
  int64_t publish(std::span<const std::byte> data) override {
    return locked([&] {
      const auto view =
          nanobind::steal(PyMemoryView_FromMemory(const_cast<char*>(reinterpret_cast<const char*>(data.data())),
                                                  static_cast<Py_ssize_t>(data.size()), PyBUF_READ));
      return nanobind::cast<int64_t>(link_.attr("publish")(view));
    });
  }
  void submit(int64_t task, int32_t phase, const std::string& message, const std::vector<int64_t>& shared) override {
    locked([&] { link_.attr("submit")(task, phase, nanobind::bytes(message.data(), message.size()), shared); });
  }
  std::vector<Reply> take(double seconds) override {
    return locked([&] {
      std::vector<Reply> replies;
      for (nanobind::handle reply : link_.attr("take")(seconds)) {
        const auto bytes = nanobind::cast<nanobind::bytes>(reply[2]);
        replies.push_back({nanobind::cast<int64_t>(reply[0]), nanobind::cast<int32_t>(reply[1]),
                           std::string(bytes.c_str(), bytes.size())});
      }
      return replies;
    });
  }
  void drop(int64_t task) override {
    locked([&] { link_.attr("drop")(task); });
  }

 private:
  nanobind::object link_;
};

}  // namespace undertow
