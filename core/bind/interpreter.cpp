#include "interpreter.h"

#include <unistd.h>

// Which of them there is depends on the version of Python that loads the module, not on the one that it was built for.
extern "C" {
__attribute__((weak)) int Py_IsFinalizing(void);
__attribute__((weak)) int _Py_IsFinalizing(void);
}

namespace undertow {

bool is_finalizing() {
  if (Py_IsFinalizing != nullptr) return Py_IsFinalizing() != 0;
  return _Py_IsFinalizing != nullptr && _Py_IsFinalizing() != 0;
}

void park() {
  for (;;) pause();
}

}  // namespace undertow
