#include "vmm/kvm/devices/virtio_device.h"

#include <utility>

namespace ringside::vmm::kvm {
namespace {

// Completions are told in batches, but none waits for a queue that is never empty.
constexpr unsigned kBatch = 16;

}  // namespace

void VirtioDevice::start(std::vector<std::optional<Virtqueue>> queues, VirtioSignals& signals) {
  const std::scoped_lock lock(mutex_);
  queues_ = std::move(queues);
  signals_ = &signals;
}

void VirtioDevice::stop() {
  stopping_ = true;
  const std::scoped_lock lock(mutex_);
  stopping_ = false;
  queues_.clear();
  stopped();
}

void VirtioDevice::notify(unsigned index) {
  const std::scoped_lock lock(mutex_);
  serve(index);
}

Virtqueue* VirtioDevice::queue(unsigned index) {
  return index < queues_.size() && queues_[index] ? &*queues_[index] : nullptr;
}

void VirtioDevice::serve(unsigned index) {
  Virtqueue* const queue = this->queue(index);
  if (queue == nullptr) return;
  queue->disable_notifications();
  DescriptorChain chain;
  // A driver can add chains as fast as we take them, but the caller has other duties.
  unsigned budget = 2u * queue->size();
  bool more = true;
  for (; more && budget > 0 && wants(index) && !stopping_; --budget) {
    if (queue->pop(chain)) {
      if (const auto written = answer(index, chain)) queue->push(chain.head, *written);
      if (budget % kBatch == 0) tell(*queue);
    } else {
      more = queue->enable_notifications();
      if (more) queue->disable_notifications();
    }
  }
  tell(*queue);
  if (more && budget == 0 && wants(index)) signals_->more(index);
}

void VirtioDevice::finish(unsigned index, std::uint16_t head, std::uint32_t written) {
  Virtqueue* const queue = this->queue(index);
  if (queue == nullptr) return;
  queue->push(head, written);
  tell(*queue);
}

void VirtioDevice::tell(Virtqueue& queue) {
  if (queue.interrupt_wanted()) signals_->used();
  if (queue.broken()) signals_->needs_reset(queue.broken_rule());
}

}  // namespace ringside::vmm::kvm
