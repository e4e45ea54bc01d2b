// The entropy device (VIRTIO Version 1.2, section 5.4): random bytes of the host's getrandom(2).
#pragma once

#include <array>
#include <cstdint>

#include "vmm/kvm/devices/virtio_device.h"

namespace ringside::vmm::kvm {

class VirtioRng final : public VirtioDevice {
 public:
  /// Bytes for one request at most; a driver that wants more asks again.
  static constexpr std::size_t kMost = 4096;

  std::uint32_t id() const override { return 4; }
  std::uint64_t features() const override { return 0; }
  std::span<const std::uint16_t> queue_sizes() const override { return kQueueSizes; }
  std::span<const std::byte> config() const override { return {}; }

 private:
  static constexpr std::array<std::uint16_t, 1> kQueueSizes{16};

  std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) override;
};

}  // namespace ringside::vmm::kvm
