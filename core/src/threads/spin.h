// Waiting awake: work that comes in quick succession should not pay for waking a thread each time.
#pragma once

#include <chrono>

namespace undertow {

constexpr std::chrono::microseconds kSpin{50};  // about what it takes to sleep and be woken

/// Look again and again whether something has come, for a moment; the caller sleeps if it has not.
template <class HasCome>
bool spin(HasCome&& has_come) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int k = 0; k < 32; ++k) {
      if (has_come()) return true;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace undertow
