#include "vmm/kvm/devices/virtio_worker.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/sandbox.h"

namespace ringside::vmm::kvm {

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
