// The interface of a device: it answers reads and writes of its range of ports or of guest-physical
// memory, and may pull an interrupt line. Every offset, size and value comes from the guest:
// hostile. Devices know nothing of KVM, threads or the machine. How to add a device: a file of its
// own here, with the specification and its section in the header comment; a test beside it; a line
// where vmm/kvm/board.cc puts it on the buses; its fuzz target. Threads: calls come from every
// vCPU's thread and, for input, from other threads; a device locks itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vmm/machine.h"

namespace ringside::vmm::kvm {

class Device {
 public:
  virtual ~Device() = default;
  /// `offset`: from the start of the device's range. `data`: 1, 2, 4 or 8 bytes, all inside the
  /// range; zero before a read. Registers that a device does not have read as all ones.
  virtual void read(std::uint64_t offset, std::span<std::byte> data) = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> data) = 0;
};

/// One pin of the interrupt controllers, level-triggered.
class InterruptLine {
 public:
  virtual ~InterruptLine() = default;
  virtual void set(bool level) = 0;
};

/// How a device reaches the machine. Called on the thread of the access.
class MachineEvents {
 public:
  virtual ~MachineEvents() = default;
  /// The guest asked for its own end. The vCPUs stop; the first call wins.
  virtual void guest_ended(MachineState how) = 0;
};

}  // namespace ringside::vmm::kvm
