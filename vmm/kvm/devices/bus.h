// An address space of devices: the 64 KiB of I/O ports, or guest-physical memory outside RAM. Finds
// the device for an access; an access that no device answers reads as all ones, as on a PC.
// Set up before vCPUs run, unchanged afterwards, so that look-up needs no lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class Bus {
 public:
  /// Gives [base, base + size) to `device`, which must outlive the bus. Invalid when the range is
  /// empty, wraps or overlaps another.
  Result<void> add(std::uint64_t base, std::uint64_t size, Device& device);
  /// `data` is 1, 2, 4 or 8 bytes. No device answers an access across a range's end.
  void read(std::uint64_t address, std::span<std::byte> data) const;
  void write(std::uint64_t address, std::span<const std::byte> data) const;

 private:
  struct Range {
    std::uint64_t base, size;
    Device* device;
  };
  const Range* find(std::uint64_t address, std::size_t size) const;

  std::vector<Range> ranges_;  // sorted by base
};

}  // namespace ringside::vmm::kvm
