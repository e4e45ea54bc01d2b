// The board: the devices of a machine of ours, at their addresses in layout.h and on their
// interrupt lines. The only place that knows all devices. Used by kvm_machine. How to add a device:
// devices/device.h.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/devices/acpi_pm.h"
#include "vmm/kvm/devices/cmos.h"
#include "vmm/kvm/devices/end_ports.h"
#include "vmm/kvm/devices/i8042.h"
#include "vmm/kvm/devices/interrupt_pins.h"
#include "vmm/kvm/devices/uart16550.h"
#include "vmm/kvm/devices/virtio_device.h"
#include "vmm/kvm/devices/virtio_mmio.h"
#include "vmm/kvm/kvm_guest.h"
#include "vmm/kvm/serial_peers.h"
#include "vmm/kvm/start_kvm.h"

namespace ringside::vmm::kvm {

class Board {
 public:
  /// Puts every device on the guest's buses; the guest has not started. `guest` and `peers` outlive
  /// the board. Limit when there are more disks than places; an error that names the disk which
  /// cannot be opened.
  static Result<std::unique_ptr<Board>> create(KvmGuest& guest, SerialPeers& peers,
                                               const KvmConfig& config);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  unsigned virtio_count() const { return static_cast<unsigned>(virtio_.size()); }
  /// The devices that SerialPeers feeds; `typed_to_hvc0`: the keyboard is hvc0's, not ttyS0's.
  SerialPeers::Ports peer_ports(bool typed_to_hvc0);
  void press_power_button() { power_.press_power_button(); }

 private:
  struct Virtio {  // in this order: the worker, which uses both, ends first
    std::unique_ptr<VirtioDevice> device;
    std::unique_ptr<VirtioMmio> transport;
    std::unique_ptr<VirtioWorker> worker;
  };
  class VirtioSlots;

  Board(KvmGuest& guest, SerialPeers& peers, std::unique_ptr<InterruptPins> pins,
        std::vector<Virtio> virtio, VirtioConsole& hvc0);
  Result<void> add_ports(Bus& ports);

  const std::unique_ptr<InterruptPins> pins_;
  Cmos cmos_;
  I8042 keyboard_;
  AcpiPm power_;
  Pvpanic pvpanic_;
  ResetControl reset_;
  std::deque<Uart16550> serial_;
  std::vector<Virtio> virtio_;
  VirtioConsole& hvc0_;  // one of virtio_
};

}  // namespace ringside::vmm::kvm
