#include "vmm/kvm/board.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "vmm/kvm/devices/disk_file.h"
#include "vmm/kvm/devices/virtio_block.h"
#include "vmm/kvm/devices/virtio_rng.h"

namespace ringside::vmm::kvm {

/// Makes virtio devices and gives each the next place on the bus, the next pin and a worker.
class Board::VirtioSlots {
 public:
  VirtioSlots(KvmGuest& guest, InterruptPins& pins, std::function<void(std::string_view)> warn)
      : guest_(guest), pins_(pins), warn_(std::move(warn)) {}

  Result<void> add_disks(const std::vector<DiskConfig>& disks);
  /// `name`: of the device, in messages.
  Result<void> add(std::unique_ptr<VirtioDevice> device, const std::string& name);
  std::vector<Virtio> take() { return std::move(made_); }

 private:
  KvmGuest& guest_;
  InterruptPins& pins_;
  const std::function<void(std::string_view)> warn_;
  std::vector<Virtio> made_;
};

Result<void> Board::VirtioSlots::add_disks(const std::vector<DiskConfig>& disks) {
  constexpr std::size_t kMostDisks = kMostVirtio - 2;  // the random numbers' and hvc0's places
  if (disks.size() > kMostDisks) {
    return fail(ErrorCode::Limit,
                fmt::format("a machine takes {} disks at most, not {}", kMostDisks, disks.size()));
  }
  for (std::size_t i = 0; i < disks.size(); ++i) {
    DiskFile file = TRY(DiskFile::open(disks[i]));
    TRY(add(std::make_unique<VirtioBlock>(std::move(file), fmt::format("ringside-disk-{}", i)),
            fmt::format("the disk {}", disks[i].path)));
  }
  return {};
}

Result<void> Board::VirtioSlots::add(std::unique_ptr<VirtioDevice> device,
                                     const std::string& name) {
  const auto index = static_cast<std::uint32_t>(made_.size());
  const std::uint64_t base = kVirtioBase + index * kVirtioStride;
  Virtio virtio;
  virtio.worker = TRY(VirtioWorker::create(*device));
  virtio.transport = std::make_unique<VirtioMmio>(
      pins_.line(kVirtioFirstGsi + index), guest_.memory(), *device,
      [worker = virtio.worker.get()](unsigned) { worker->kick(); },
      [warn = warn_, name](std::string_view broken_rule) {
        if (!warn) return;
        warn(fmt::format("{} waits to be reset: the guest's driver gave it {}", name, broken_rule));
      });
  virtio.device = std::move(device);
  TRY(guest_.mmio().add(base, VirtioMmio::kSize, *virtio.transport));
  // A host without it: the write comes as an exit, and the transport kicks the worker.
  (void)guest_.vm().notify_by_event(base + VirtioMmio::kQueueNotify, virtio.worker->event_fd());
  made_.push_back(std::move(virtio));
  return {};
}

Result<std::unique_ptr<Board>> Board::create(KvmGuest& guest, SerialPeers& peers,
                                             const KvmConfig& config) {
  auto pins = std::make_unique<InterruptPins>(
      [&guest](std::uint32_t gsi, bool level) { guest.set_line(gsi, level); });
  VirtioSlots slots(guest, *pins, config.warn);
  TRY(slots.add_disks(config.disks));
  TRY(slots.add(std::make_unique<VirtioRng>(), "the device of random numbers"));
  auto console = std::make_unique<VirtioConsole>(peers.console_output(), peers.room());
  VirtioConsole& hvc0 = *console;
  TRY(slots.add(std::move(console), "hvc0"));
  std::unique_ptr<Board> board(new Board(guest, peers, std::move(pins), slots.take(), hvc0));
  TRY(board->add_ports(guest.ports()));
  return board;
}

Board::Board(KvmGuest& guest, SerialPeers& peers, std::unique_ptr<InterruptPins> pins,
             std::vector<Virtio> virtio, VirtioConsole& hvc0)
    : pins_(std::move(pins)),
      keyboard_(guest.guest_end()),
      power_(pins_->line(kSci), guest.guest_end()),
      pvpanic_(guest.guest_end()),
      reset_(guest.guest_end()),
      virtio_(std::move(virtio)),
      hvc0_(hvc0) {
  for (std::size_t port = 0; port < kSerialPorts.size(); ++port) {
    serial_.emplace_back(pins_->line(kSerialPorts[port].gsi), peers.output(port), peers.room());
  }
}

Result<void> Board::add_ports(Bus& ports) {
  TRY(ports.add(kCmos, Cmos::kPorts, cmos_));
  TRY(ports.add(kKeyboard, I8042::kPorts, keyboard_));
  TRY(ports.add(kPm1Event, AcpiPm::kPorts, power_));
  TRY(ports.add(kPvpanic, Pvpanic::kPorts, pvpanic_));
  TRY(ports.add(kReset, ResetControl::kPorts, reset_));
  for (std::size_t port = 0; port < kSerialPorts.size(); ++port) {
    TRY(ports.add(kSerialPorts[port].port, Uart16550::kPorts, serial_[port]));
  }
  return {};
}

SerialPeers::Ports Board::peer_ports(bool typed_to_hvc0) {
  SerialPeers::Ports ports;
  for (std::size_t port = 0; port < ports.uarts.size(); ++port) ports.uarts[port] = &serial_[port];
  if (typed_to_hvc0) ports.typed = &hvc0_;
  return ports;
}

}  // namespace ringside::vmm::kvm
