// Linked into the tests: any operator new during a firing aborts the test
// (dif/engine/fire_context.h).
#include <cstdlib>
#include <new>

#include "dif/engine/fire_context.h"
#include "vmm/base/check.h"

void* operator new(std::size_t size) {
  CHECK(!ringside::dif::in_fire_context());
  void* at = std::malloc(size);
  CHECK(at != nullptr);
  return at;
}

// std::stable_sort takes its buffer with this one.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);
}

void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, const std::nothrow_t&) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
