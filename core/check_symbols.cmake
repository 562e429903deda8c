# Fails if an object for a newer processor defines a weak symbol: the linker might take it for all the others.
# Usage: cmake -DNM=... -DOBJECTS=a.o,b.o -P check_symbols.cmake
string(REPLACE "," ";" OBJECTS "${OBJECTS}")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND "${NM}" -C --defined-only "${object}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [WVvu] [^\n]*" weak "${symbols}")
  if(weak)
    message(FATAL_ERROR "${object} shares symbols with other instruction sets: ${weak}")
  endif()
endforeach()
