// The common part of virtio devices: their queues, from the driver's DRIVER_OK to the device's
// reset, under one lock, and the loop that serves a queue (VIRTIO Version 1.2, sections 2 and 3).
// A device describes itself and answers one chain at a time; the transport (virtio_mmio.h) does the
// rest. VirtioWorker is the thread that serves it. How to add one: as device.h says, with this
// class as its base. Threads: notify() on the device's worker or a vCPU, start() and stop() on a
// vCPU. The lock order is transport, device, signals.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/virtqueue.h"

namespace ringside::vmm::kvm {

/// How a device reaches its driver; the transport's part. Called with the device locked.
class VirtioSignals {
 public:
  virtual ~VirtioSignals() = default;
  /// Interrupts the driver: it has used buffers to look at.
  virtual void used() = 0;
  /// The driver broke a rule, the one that Virtqueue::broken_rule() names (section 2.1.2,
  /// DEVICE_NEEDS_RESET).
  virtual void needs_reset(std::string_view broken_rule) = 0;
  /// The queue is not empty, but was served for long enough: call notify() again soon.
  virtual void more(unsigned queue) = 0;
};

class VirtioDevice {
 public:
  virtual ~VirtioDevice() = default;

  /// The kind of device (section 5).
  virtual std::uint32_t id() const = 0;
  /// Feature bits of this kind of device; the transport adds those of queues and its own.
  virtual std::uint64_t features() const = 0;
  /// The largest size of each queue.
  virtual std::span<const std::uint16_t> queue_sizes() const = 0;
  /// The configuration space (section 2.5), which never changes; writes to it are ignored.
  virtual std::span<const std::byte> config() const = 0;

  /// The driver is ready. Queues that it did not set up are empty optionals. `signals` must live
  /// until stop().
  void start(std::vector<std::optional<Virtqueue>> queues, VirtioSignals& signals);
  /// Forgets the queues. When it returns, the device no longer touches guest memory.
  void stop();
  /// The driver put chains on that queue. Answers a bounded number of them.
  void notify(unsigned queue);

 protected:
  /// Answers a chain; returns how many bytes were written into it. Empty: the device keeps the
  /// chain, and gets no other of this queue until it has called finish().
  virtual std::optional<std::uint32_t> answer(unsigned queue, const DescriptorChain& chain) = 0;
  /// Whether answer() would take a chain of this queue now.
  virtual bool wants(unsigned) const { return true; }
  /// Called when the queues are gone, and kept chains with them.
  virtual void stopped() {}

  /// notify(), with mutex_ held.
  void serve(unsigned index);
  /// Gives a kept chain back, with mutex_ held. `written`: bytes.
  void finish(unsigned index, std::uint16_t head, std::uint32_t written);

  std::mutex mutex_;

 private:
  Virtqueue* queue(unsigned index);
  void tell(Virtqueue& queue);

  std::atomic<bool> stopping_ = false;  // stop() waits for one chain, not for a queue of them
  std::vector<std::optional<Virtqueue>> queues_;
  VirtioSignals* signals_ = nullptr;
};

/// The thread of one virtio device. It waits for notifications on an eventfd and serves the
/// device's queues, so that a vCPU goes on while its disk works. Made before the guest runs, ends
/// after it. An eventfd and not a condition variable: KVM can write it itself (KVM_IOEVENTFD),
/// without the vCPU leaving the kernel.
class VirtioWorker {
 public:
  /// Starts the thread, in the sandbox (sandbox.h). `device` must outlive the worker. Io when the
  /// host has no descriptor or thread left.
  static Result<std::unique_ptr<VirtioWorker>> create(VirtioDevice& device);
  ~VirtioWorker();

  /// Makes the thread look at the device's queues. Cheap: one write.
  void kick();
  /// The eventfd that kick() writes; stays the worker's.
  int event_fd() const { return event_.get(); }

 private:
  VirtioWorker(VirtioDevice& device, UniqueFd event) : device_(device), event_(std::move(event)) {}
  void run();

  VirtioDevice& device_;
  UniqueFd event_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace ringside::vmm::kvm
