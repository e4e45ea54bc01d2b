// The board: which devices a machine of ours has, at which addresses of layout.h, on which
// interrupt lines. The only place that knows all devices.
// Used by kvm_machine. How to add a device: devices/device.h.
// Fire context: no.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/devices/acpi_pm.h"
#include "vmm/kvm/devices/cmos.h"
#include "vmm/kvm/devices/i8042.h"
#include "vmm/kvm/devices/pvpanic.h"
#include "vmm/kvm/devices/reset_control.h"
#include "vmm/kvm/devices/uart16550.h"
#include "vmm/kvm/devices/virtio_mmio.h"
#include "vmm/kvm/devices/virtio_worker.h"
#include "vmm/kvm/kvm_guest.h"
#include "vmm/kvm/serial_peers.h"
#include "vmm/kvm/start_kvm.h"

namespace ringside::vmm::kvm {

class Board {
 public:
  /// Puts everything on the guest's buses; the guest has not started, and outlives the board.
  static Result<std::unique_ptr<Board>> create(KvmGuest& guest, SerialPeers& peers,
                                               const KvmConfig& config);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  unsigned virtio_count() const { return static_cast<unsigned>(virtio_.size()); }
  /// What SerialPeers feeds; `typed_to_hvc0`: what is typed is for hvc0.
  SerialPeers::Ports peer_ports(bool typed_to_hvc0);
  void press_power_button() { power_.press_power_button(); }

 private:
  /// A pin that several devices may pull; it is high while one of them does.
  class Pin {
   public:
    Pin(KvmGuest& guest, std::uint32_t gsi) : guest_(guest), gsi_(gsi) {}
    void set(const InterruptLine* who, bool level);
    std::uint32_t gsi() const { return gsi_; }

   private:
    KvmGuest& guest_;
    const std::uint32_t gsi_;
    std::mutex mutex_;
    std::set<const InterruptLine*> pulling_;
  };
  class Line final : public InterruptLine {
   public:
    explicit Line(Pin& pin) : pin_(pin) {}
    void set(bool level) override { pin_.set(this, level); }

   private:
    Pin& pin_;
  };
  struct Virtio {
    std::unique_ptr<VirtioDevice> device;
    std::unique_ptr<VirtioWorker> worker;
    std::unique_ptr<VirtioMmio> transport;
  };

  Board(KvmGuest& guest, SerialPeers& peers, const KvmConfig& config);
  InterruptLine& line(std::uint32_t gsi);
  Result<void> add_ports();
  Result<void> add_disks(const std::vector<DiskConfig>& disks);
  Result<void> add_virtio(std::unique_ptr<VirtioDevice> device, const std::string& name);

  KvmGuest& guest_;
  const std::function<void(std::string_view)> warn_;
  std::deque<Pin> pins_;  // deques: their elements do not move
  std::deque<Line> lines_;
  Cmos cmos_;
  I8042 keyboard_;
  AcpiPm power_;
  Pvpanic pvpanic_;
  ResetControl reset_;
  std::deque<Uart16550> serial_;
  std::vector<Virtio> virtio_;
  VirtioConsole* hvc0_ = nullptr;  // one of virtio_
};

}  // namespace ringside::vmm::kvm
