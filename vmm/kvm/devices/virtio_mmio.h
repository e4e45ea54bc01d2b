// The virtio transport over memory-mapped registers, version 2: VIRTIO Version 1.2, section 4.2,
// with the device status and feature negotiation of sections 2.1, 2.2 and 3.1. Offers VERSION_1,
// INDIRECT_DESC and EVENT_IDX beside the device's own features.
// Registers are 32 bits wide and take no other access; the configuration space takes any.
// Does not: have shared memory regions, queue reset, or a configuration that changes (so
// ConfigGeneration stays 0).
// A notification goes to `kick` when there is one (VirtioWorker), else the vCPU that wrote it
// serves a part of the queue. KVM may catch writes to kQueueNotify itself (KVM_IOEVENTFD).
// A driver that breaks a rule is asked to reset the device (2.1.2). `complain` is told the rule,
// once in the device's life, because a driver that does not look waits for ever.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "vmm/kvm/devices/device.h"
#include "vmm/kvm/devices/interrupt_pins.h"
#include "vmm/kvm/devices/virtio_device.h"

namespace ringside::vmm::kvm {

class VirtioMmio final : public Device, private VirtioSignals {
 public:
  static constexpr std::uint64_t kSize = 0x200;  // of the register block
  static constexpr std::uint64_t kQueueNotify = 0x050;

  /// References must outlive the transport. `complain` is called on the thread that found the rule
  /// broken, with the device locked; broken_rule is as Virtqueue::broken_rule().
  VirtioMmio(InterruptLine& line, GuestMemory& memory, VirtioDevice& device,
             std::function<void(unsigned queue)> kick = {},
             std::function<void(std::string_view broken_rule)> complain = {});
  ~VirtioMmio() override;

  void read(std::uint64_t offset, std::span<std::byte> data) override;
  void write(std::uint64_t offset, std::span<const std::byte> data) override;

 private:
  struct QueueSetUp {
    Virtqueue::Rings rings;
    bool ready = false;
  };

  std::uint32_t read_register(std::uint64_t offset);
  void write_register(std::uint64_t offset, std::uint32_t value);
  void write_queue_register(std::uint64_t offset, std::uint32_t value);
  void write_status(std::uint32_t value);
  void notify(std::uint32_t queue);
  void reset();
  void start();
  std::uint64_t offered() const;
  QueueSetUp* selected();

  void used() override;
  void needs_reset(std::string_view broken_rule) override;
  void more(unsigned queue) override;
  void raise(std::uint32_t cause);

  std::mutex mutex_;
  InterruptLine& line_;
  GuestMemory& memory_;
  VirtioDevice& device_;
  const std::function<void(unsigned)> kick_;
  const std::function<void(std::string_view)> complain_;

  std::uint32_t device_features_select_ = 0, driver_features_select_ = 0, queue_select_ = 0;
  std::uint64_t driver_features_ = 0;
  std::uint32_t status_ = 0;
  std::vector<QueueSetUp> queues_;

  std::mutex signal_mutex_;  // of those below; taken last
  std::uint32_t interrupt_status_ = 0;
  bool needs_reset_ = false;
  bool complained_ = false;
};

}  // namespace ringside::vmm::kvm
