#include "dif/lazy_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "vmm/base/check.h"

namespace ringside::dif {

LazyMemory::LazyMemory(std::size_t size) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kMost = std::size_t{1} << 46;  // half of what user space can address
  for (size = std::clamp(size, kPage, kMost);; size = std::max(size / 2, kPage)) {
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) {
      bytes_ = {static_cast<std::byte*>(at), size};
      return;
    }
    CHECK(size > kPage);  // not even a page: as good as bad_alloc
  }
}

LazyMemory::~LazyMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace ringside::dif
