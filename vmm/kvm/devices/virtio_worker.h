// The thread of one virtio device. It waits for notifications on an eventfd and serves the device's
// queues, so that a vCPU goes on while its disk works. Made before the guest runs, ends after it.
// An eventfd and not a condition variable: KVM can write it itself (KVM_IOEVENTFD), without the
// vCPU leaving the kernel.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/virtio_device.h"

namespace ringside::vmm::kvm {

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
