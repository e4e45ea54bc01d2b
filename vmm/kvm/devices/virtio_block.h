// A disk: the virtio block device (VIRTIO Version 1.2, section 5.2) over a raw file. Reads, writes,
// flushes and tells its id. Data moves between the file and guest memory without a copy of ours.
// One queue. The device's worker (VirtioWorker) finishes a request before it takes the next: the
// page cache answers most at once, and the guest's block layer makes large requests to a slow disk.
// Does not: discard, write zeroes, or let the guest switch the cache mode.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "vmm/kvm/devices/disk_file.h"
#include "vmm/kvm/devices/virtio_device.h"

namespace ringside::vmm::kvm {

class VirtioBlock final : public VirtioDevice {
 public:
  static constexpr std::uint16_t kQueueSize = 256;
  static constexpr std::uint32_t kMostPieces = kQueueSize - 2;  // a request's header and status
  static constexpr std::uint32_t kLargestPiece = 64 << 10;

  /// `serial`: the disk's id for the guest, cut to 20 bytes.
  VirtioBlock(DiskFile file, std::string serial);

  std::uint32_t id() const override { return 2; }
  std::uint64_t features() const override;
  std::span<const std::uint16_t> queue_sizes() const override { return kQueueSizes; }
  std::span<const std::byte> config() const override { return config_; }

 private:
  static constexpr std::array<std::uint16_t, 1> kQueueSizes{kQueueSize};
  struct Outcome;

  std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) override;
  Outcome perform(const DescriptorChain& chain);
  bool in_range(std::uint64_t sector, std::size_t size, std::size_t pieces) const;

  const DiskFile file_;
  const std::string serial_;
  std::array<std::byte, 60> config_{};  // struct virtio_blk_config up to its write-zeroes part
};

}  // namespace ringside::vmm::kvm
