// Linked into the tests: any operator new during a firing aborts the test (dif/fire_context.h).
#include <cstdlib>
#include <new>

#include "dif/fire_context.h"
#include "vmm/base/check.h"

void* operator new(std::size_t size) {
  CHECK(!ringside::dif::in_fire_context());
  void* at = std::malloc(size);
  CHECK(at != nullptr);
  return at;
}

void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
