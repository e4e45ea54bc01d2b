#include "dif/evaluate/lazy_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace ringside::dif {

namespace {

constexpr std::size_t kLeast = 4096;
constexpr std::size_t kMost = std::size_t{1} << 46;  // half of what user space can address

void* map(std::size_t size) {
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // One touched byte would cost a huge page. A host without them says no, and needs none of it.
  if (at != MAP_FAILED) (void)::madvise(at, size, MADV_NOHUGEPAGE);
  return at;
}

}  // namespace

bool LazyMemory::is_possible(std::size_t size) {
  if (size == 0) return true;
  void* const at = size <= kMost ? map(size) : MAP_FAILED;
  if (at == MAP_FAILED) return false;
  ::munmap(at, size);
  return true;
}

LazyMemory::LazyMemory(std::size_t size) {
  for (size = std::clamp(size, kLeast, kMost);; size = std::max(size / 2, kLeast)) {
    void* const at = map(size);
    if (at != MAP_FAILED) {
      bytes_ = {static_cast<std::byte*>(at), size};
      return;
    }
    if (size == kLeast) throw std::bad_alloc();
  }
}

LazyMemory::~LazyMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace ringside::dif
