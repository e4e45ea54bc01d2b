// An address space of devices: the 64 KiB of I/O ports, or guest-physical memory outside RAM. Finds
// the device for an access; an access that no device answers reads as all ones, as on a PC.
// Set up before vCPUs run, unchanged afterwards, so that look-up needs no lock.
// Fire context: no.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/kvm/devices/device.h"

namespace ringside::vmm::kvm {

class Bus {
 public:
  /// [base, base + size) is the device's. Invalid when it is empty, wraps or overlaps another's.
  Result<void> add(std::uint64_t base, std::uint64_t size, Device& device);
  /// `data` is 1, 2, 4 or 8 bytes; an access that straddles a range's end is nobody's.
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
