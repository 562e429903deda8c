// Adds to what a run throws where it happened.
#pragma once

#include <new>

#include "undertow/memory.h"
#include "undertow/run.h"

namespace undertow {

/// Call `work`. If it throws a Stop, `locate(stop)` adds where; if the host raises, `stopped` is set to the tag
/// `where()`.
template <class Work, class Locate, class Where>
void guarded(Work&& work, Locate&& locate, Where&& where, std::vector<Label>& stopped) {
  try {
    work();
  } catch (const OverLimit& over) {
    constexpr Stop::Kind kinds[] = {Stop::Kind::Memory, Stop::Kind::Frames, Stop::Kind::Depth, Stop::Kind::OutOfMemory};
    Stop stop{kinds[static_cast<int>(over.kind)]};
    stop.a = over.bytes;
    locate(stop);
    throw stop;
  } catch (Stop& stop) {
    locate(stop);
    throw;
  } catch (const std::bad_alloc&) {
    Stop stop{Stop::Kind::OutOfMemory};
    locate(stop);
    throw stop;
  } catch (const Interrupted&) {  // the tag is not needed, and may be long
    throw;
  } catch (...) {  // raised by the host
    stopped = where();
    throw;
  }
}

}  // namespace undertow
