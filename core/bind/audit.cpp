// Tells Python code of each text that is compiled: an audit hook. It stays as long as the process.
//
// It is not written in Python, because every event calls every hook: one in Python makes each `id(x)` of the process
// 0.1 microseconds slower.
#include <nanobind/nanobind.h>

#include <cstring>

#include "interpreter.h"
#include "parts.h"

// The headers show it only outside of the stable interface, though every version has it.
extern "C" int PySys_AddAuditHook(int (*hook)(const char*, PyObject*, void*), void* data);

namespace nb = nanobind;

namespace undertow {
namespace {

PyObject* listener = nullptr;               // never released: hooks are called until the very end
PyInterpreterState* interpreter = nullptr;  // the only one that the listener may run in

int tell(const char* event, PyObject* args, void*) {
  if (event[0] != 'c' || std::strcmp(event, "compile") != 0) return 0;
  if (is_finalizing() || PyInterpreterState_Get() != interpreter) return 0;
  PyObject* result = surviving([&] { return PyObject_CallObject(listener, args); });
  if (result == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;  // Ctrl-C
    PyErr_Clear();                                            // what is compiled does not fail because of us
  }
  Py_XDECREF(result);
  return 0;
}

bool listen(nb::callable to) {
  const bool is_first = listener == nullptr;
  PyObject* before = listener;
  listener = to.release().ptr();
  interpreter = PyInterpreterState_Get();
  Py_XDECREF(before);
  if (!is_first || PySys_AddAuditHook(tell, nullptr) == 0) return true;
  PyErr_Clear();  // another hook does not allow it
  return false;
}

}  // namespace

void bind_audit(nb::module_& module) {
  module.def("listen_to_compile", &listen, nb::arg("listener"),
             "From now on, call `listener(source, filename)` before each text is compiled. False if that is not "
             "allowed.");
}

}  // namespace undertow
