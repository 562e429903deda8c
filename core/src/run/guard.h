// What a run throws knows where it happened.
#pragma once

#include <new>

#include "undertow/memory.h"
#include "undertow/run.h"

namespace undertow {

/// Do something. `locate(stop)` says where a run was stopped; `where()` gives the tag at which the host has raised
/// something, for `stopped`.
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
  } catch (const Interrupted&) {  // nobody asks where, and a tag may be long
    throw;
  } catch (...) {  // the host's
    stopped = where();
    throw;
  }
}

}  // namespace undertow
