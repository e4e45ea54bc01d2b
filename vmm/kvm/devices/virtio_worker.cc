#include "vmm/kvm/devices/virtio_worker.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringside::vmm::kvm {

Result<std::unique_ptr<VirtioWorker>> VirtioWorker::create(VirtioDevice& device) {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  if (!event) return fail(ErrorCode::Io, fmt::format("eventfd: {}", std::strerror(errno)));
  return std::unique_ptr<VirtioWorker>(new VirtioWorker(device, std::move(event)));
}

VirtioWorker::VirtioWorker(VirtioDevice& device, UniqueFd event)
    : device_(device), event_(std::move(event)) {
  // Signals are for the threads that wait for them: the new thread inherits that it takes none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

VirtioWorker::~VirtioWorker() {
  ending_ = true;
  kick();
  thread_.join();
}

void VirtioWorker::kick() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then the thread is to wake anyway.
  (void)!::write(event_.get(), &one, sizeof one);
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
