#include "vmm/kvm/devices/virtio_device.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/sandbox.h"

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

Result<std::unique_ptr<VirtioWorker>> VirtioWorker::create(VirtioDevice& device) {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  if (!event) return fail(ErrorCode::Io, fmt::format("eventfd: {}", std::strerror(errno)));
  std::unique_ptr<VirtioWorker> worker(new VirtioWorker(device, std::move(event)));
  worker->thread_ = TRY(start_sandboxed({"virtio"}, [it = worker.get()] { it->run(); }));
  return worker;
}

VirtioWorker::~VirtioWorker() {
  if (!thread_.joinable()) return;
  ending_ = true;
  kick();
  thread_.join();
}

void VirtioWorker::kick() {
  raise_event(event_);
}

void VirtioWorker::run() {
  const auto queues = static_cast<unsigned>(device_.queue_sizes().size());
  while (true) {
    std::uint64_t count = 0;
    if (::read(event_.get(), &count, sizeof count) < 0 && errno != EINTR) return;
    for (unsigned queue = 0; queue < queues && !ending_; ++queue) device_.notify(queue);
    if (ending_) return;
  }
}

}  // namespace ringside::vmm::kvm
