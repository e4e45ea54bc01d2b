#include "vmm/kvm/board.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/kvm/devices/disk_file.h"
#include "vmm/kvm/devices/virtio_block.h"
#include "vmm/kvm/devices/virtio_rng.h"

namespace ringside::vmm::kvm {

void Board::Pin::set(const InterruptLine* who, bool level) {
  // Held while KVM is told, so that two devices' changes reach it in their order.
  const std::lock_guard lock(mutex_);
  const bool before = !pulling_.empty();
  if (level)
    pulling_.insert(who);
  else
    pulling_.erase(who);
  if (pulling_.empty() == before) guest_.set_line(gsi_, !pulling_.empty());
}

Result<std::unique_ptr<Board>> Board::create(KvmGuest& guest, SerialPeers& peers,
                                             const KvmConfig& config) {
  std::unique_ptr<Board> board(new Board(guest, peers, config));
  TRY(board->add_ports());
  TRY(board->add_disks(config.disks));
  TRY(board->add_virtio(std::make_unique<VirtioRng>(), "the device of random numbers"));
  auto console = std::make_unique<VirtioConsole>(peers.console_output(), peers.room());
  board->hvc0_ = console.get();
  TRY(board->add_virtio(std::move(console), "hvc0"));
  return board;
}

Board::Board(KvmGuest& guest, SerialPeers& peers, const KvmConfig& config)
    : guest_(guest),
      warn_(config.warn),
      keyboard_(guest.guest_end()),
      power_(line(kSci), guest.guest_end()),
      pvpanic_(guest.guest_end()),
      reset_(guest.guest_end()) {
  for (std::size_t port = 0; port < kSerialPorts.size(); ++port) {
    serial_.emplace_back(line(kSerialPorts[port].gsi), peers.output(port), peers.room());
  }
}

Board::~Board() {
  // Each worker uses its device: workers first.
  for (Virtio& virtio : virtio_) virtio.worker.reset();
}

InterruptLine& Board::line(std::uint32_t gsi) {
  for (Pin& pin : pins_) {
    if (pin.gsi() == gsi) return lines_.emplace_back(pin);
  }
  return lines_.emplace_back(pins_.emplace_back(guest_, gsi));
}

Result<void> Board::add_ports() {
  Bus& ports = guest_.ports();
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

Result<void> Board::add_disks(const std::vector<DiskConfig>& disks) {
  constexpr std::size_t kMostDisks = kMostVirtio - 2;  // the random numbers' and hvc0's places
  if (disks.size() > kMostDisks) {
    return fail(ErrorCode::Limit,
                fmt::format("a machine takes {} disks at most, not {}", kMostDisks, disks.size()));
  }
  for (std::size_t i = 0; i < disks.size(); ++i) {
    DiskFile file = TRY(DiskFile::open(disks[i]));
    TRY(add_virtio(
        std::make_unique<VirtioBlock>(std::move(file), fmt::format("ringside-disk-{}", i)),
        fmt::format("the disk {}", disks[i].path)));
  }
  return {};
}

Result<void> Board::add_virtio(std::unique_ptr<VirtioDevice> device, const std::string& name) {
  const auto index = static_cast<std::uint32_t>(virtio_.size());
  const std::uint64_t base = kVirtioBase + index * kVirtioStride;
  Virtio virtio;
  virtio.worker = TRY(VirtioWorker::create(*device));
  virtio.transport = std::make_unique<VirtioMmio>(
      line(kVirtioFirstGsi + index), guest_.memory(), *device,
      [worker = virtio.worker.get()](unsigned) { worker->kick(); },
      [this, name](std::string_view broken_rule) {
        if (!warn_) return;
        warn_(
            fmt::format("{} waits to be reset: the guest's driver gave it {}", name, broken_rule));
      });
  virtio.device = std::move(device);
  TRY(guest_.mmio().add(base, VirtioMmio::kSize, *virtio.transport));
  // A host without it: the write comes as an exit, and the transport kicks the worker.
  (void)guest_.vm().notify_by_event(base + VirtioMmio::kQueueNotify, virtio.worker->event_fd());
  virtio_.push_back(std::move(virtio));
  return {};
}

SerialPeers::Ports Board::peer_ports(bool typed_to_hvc0) {
  SerialPeers::Ports ports;
  for (std::size_t port = 0; port < ports.uarts.size(); ++port) ports.uarts[port] = &serial_[port];
  if (typed_to_hvc0) ports.typed = hvc0_;
  return ports;
}

}  // namespace ringside::vmm::kvm
