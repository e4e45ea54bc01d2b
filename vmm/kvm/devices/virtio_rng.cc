#include "vmm/kvm/devices/virtio_rng.h"

#include <sys/random.h>

#include <algorithm>

namespace ringside::vmm::kvm {

std::optional<std::uint32_t> VirtioRng::answer(unsigned, const DescriptorChain& chain) {
  std::array<std::byte, kMost> bytes;
  const ssize_t got = ::getrandom(bytes.data(), std::min(kMost, chain.writable_size), 0);
  if (got <= 0) return 0;
  const auto random = std::span(bytes).first(static_cast<std::size_t>(got));
  return static_cast<std::uint32_t>(copy_to(chain.writable, 0, random));
}

}  // namespace ringside::vmm::kvm
