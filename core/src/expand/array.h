// Arrays of a run: a block that begins with its shape. They are reference counted; constants are not.
//
// Where several threads run (`kIsShared`), counts are atomic: who drops the last reference has seen all that others
// did with the array.
#pragma once

#include <cstring>

#include "run/values.h"
#include "undertow/kernel.h"
#include "undertow/memory.h"
#include "undertow/run.h"
#include "undertow/value_type.h"

namespace undertow::expand {

constexpr int64_t kConstant = -1;  // as reference count: never freed

/// Bytes before the elements: the shape, padded to whole cache lines.
constexpr int64_t shape_bytes(int rank) { return (int64_t{rank} * 8 + 63) / 64 * 64; }

inline Block* as_array(uint64_t cell) { return reinterpret_cast<Block*>(cell); }
inline uint64_t as_cell(const void* block) { return reinterpret_cast<uint64_t>(block); }
inline int64_t* shape_of(Block* array) { return reinterpret_cast<int64_t*>(array->data()); }
inline std::byte* data_of(Block* array, int rank) { return array->data() + shape_bytes(rank); }

inline View view_of(Block* array, int rank, DType dtype) {
  View view{data_of(array, rank), 0, shape_of(array), rank, dtype};
  view.stride = view.bytes();
  return view;
}

/// An array that is there: a slot that nothing was written to has none.
inline Block* array_in(uint64_t cell) {
  if (cell == 0) [[unlikely]]
    throw Stop{Stop::Kind::Missing};
  return as_array(cell);
}

// Counts that may be shared by threads: of references, of what is waited for.

template <bool kIsShared, class T>
T load(const T& count) {
  if constexpr (kIsShared)
    return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  else
    return count;
}
template <bool kIsShared, class T>
void add_one(T& count) {
  if constexpr (kIsShared)
    __atomic_fetch_add(&count, T{1}, __ATOMIC_RELAXED);
  else
    ++count;
}
template <class T>
T one_more(T& count) {  // always atomic
  return static_cast<T>(__atomic_add_fetch(&count, T{1}, __ATOMIC_ACQ_REL));
}
/// What is left; who gets 0 has seen what the others did before.
template <bool kIsShared, class T>
T take_one(T& count) {
  if constexpr (kIsShared)
    return static_cast<T>(__atomic_sub_fetch(&count, T{1}, __ATOMIC_ACQ_REL));
  else
    return --count;
}

template <bool kIsShared>
uint64_t shared(uint64_t cell) {
  Block* array = array_in(cell);
  if (load<kIsShared>(array->refs) != kConstant) add_one<kIsShared>(array->refs);
  return cell;
}

template <class Memory>
void drop(Memory& memory, Block* array) {
  if (array != nullptr && load<Memory::kShared>(array->refs) != kConstant) memory.drop(array);
}

template <class Memory>
Block* make_array(Memory& memory, const int64_t* shape, int rank, DType dtype) {
  Block* array = memory.take(shape_bytes(rank) + array_bytes(dtype, shape, rank));
  if (rank > 0) std::memcpy(shape_of(array), shape, static_cast<size_t>(rank) * 8);
  return array;
}

/// Is a value of this type an array of its own? A number stands in its cell, unless it is too large: a c128.
inline bool is_array(int rank, DType dtype) { return rank > 0 || size_of(dtype) > 8; }
inline bool is_array(const ValueType& type) { return is_array(type.rank(), type.dtype); }

/// A value as a cell: the number itself, or a new array.
template <class Memory>
uint64_t make_cell(Memory& memory, const void* data, const int64_t* shape, int rank, DType dtype) {
  Block* array = is_array(rank, dtype) ? make_array(memory, shape, rank, dtype) : nullptr;
  uint64_t number = 0;
  const int64_t bytes = View{nullptr, 0, shape, rank, dtype}.bytes();
  if (bytes > 0)
    std::memcpy(array != nullptr ? data_of(array, rank) : static_cast<void*>(&number), data,
                static_cast<size_t>(bytes));
  return array != nullptr ? as_cell(array) : number;
}

}  // namespace undertow::expand
