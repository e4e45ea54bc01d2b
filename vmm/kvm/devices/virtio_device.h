// What all virtio devices share: their queues, from the driver's DRIVER_OK to the device's reset,
// under one lock, and the loop that serves a queue (VIRTIO Version 1.2, sections 2 and 3).
// A device says what it is and answers one chain at a time; the transport (virtio_mmio.h) does the
// rest. How to add one: as device.h says, with this class as its base.
// Threads: notify() on the device's worker or a vCPU, start() and stop() on a vCPU. The lock order
// is transport, device, signals.
// Fire context: no.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/kvm/devices/virtqueue.h"

namespace ringside::vmm::kvm {

/// How a device reaches its driver; the transport's part. Called with the device locked.
class VirtioSignals {
 public:
  virtual ~VirtioSignals() = default;
  /// Used buffers are to be seen.
  virtual void used() = 0;
  /// The driver broke a rule, the one that Virtqueue::broken_rule() names (section 2.1.2,
  /// DEVICE_NEEDS_RESET).
  virtual void needs_reset(std::string_view broken_rule) = 0;
  /// The queue was served for long enough, and is not empty: notify() is to be called again.
  virtual void more(unsigned queue) = 0;
};

class VirtioDevice {
 public:
  virtual ~VirtioDevice() = default;

  virtual std::uint32_t id() const = 0;  // section 5
  /// Of the device's own kind; those of queues and transport are not its matter.
  virtual std::uint64_t features() const = 0;
  /// The largest size of each queue.
  virtual std::span<const std::uint16_t> queue_sizes() const = 0;
  /// The configuration space (section 2.5), which never changes; writes to it are ignored.
  virtual std::span<const std::byte> config() const = 0;

  /// The driver is there. Queues that it did not set up are empty.
  void start(std::vector<std::optional<Virtqueue>> queues, VirtioSignals& signals);
  /// Forgets the queues: when it returns, guest memory is no longer touched.
  void stop();
  /// The driver put chains on that queue. Does a bounded number of them.
  void notify(unsigned queue);

 protected:
  /// Answers a chain: how many bytes were written. Empty: not now, the chain stays with the device,
  /// which asks for no more of this queue until it has pushed it.
  virtual std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) = 0;
  /// Whether answer() would take a chain of this queue now.
  virtual bool wants(unsigned) const { return true; }
  /// The queues are gone; so are the chains that were kept.
  virtual void stopped() {}

  /// With mutex_ held: notify().
  void serve(unsigned index);
  /// With mutex_ held: gives a kept chain back.
  void finish(unsigned index, std::uint16_t head, std::uint32_t written);

  std::mutex mutex_;

 private:
  Virtqueue* queue(unsigned index);
  void tell(Virtqueue& queue);

  std::atomic<bool> stopping_ = false;  // stop() waits for one chain, not for a queue of them
  std::vector<std::optional<Virtqueue>> queues_;
  VirtioSignals* signals_ = nullptr;
};

}  // namespace ringside::vmm::kvm
