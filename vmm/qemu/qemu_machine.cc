// The QEMU back end: taking over a process, the end.
#include "vmm/qemu/qemu_machine.h"

#include <fmt/format.h>

#include <utility>

namespace ringside::vmm {
namespace {

constexpr std::chrono::seconds kStartTimeout(30);  // a host that swaps takes seconds to start QEMU

/// The error for a QEMU that ended before its monitor worked: with its own last words, if any.
Error start_failure(ChildProcess& child, const Error& error) {
  child.kill();
  child.reap();
  TextTail text(4096);
  drain_into(text, child.stderr_fd());
  if (text.last_line().empty()) {
    return {error.code, error.message + "; is --qemu a QEMU for x86-64 (qemu-system-x86_64)?"};
  }
  return {ErrorCode::MachineGone, fmt::format("QEMU did not start: {}", text.last_line())};
}

}  // namespace

QemuMachine::QemuMachine(unsigned vcpus, Accelerator accelerator, SharedRam ram, ChildProcess child,
                         QmpClient monitor, Links links)
    : accelerator_(accelerator),
      as_is_(links.as_is),
      ram_(std::move(ram)),
      memory_(ram_.guest_memory(pc_ram(ram_.size()))),
      child_(std::move(child)),
      watcher_(child_, std::move(monitor), std::move(links.console)),
      guardian_(std::move(links.guardian)),
      vcpus_(vcpus, std::move(links.gdb), memory_, child_, watcher_) {}

Result<std::unique_ptr<QemuMachine>> QemuMachine::take_over(unsigned vcpus, Accelerator accelerator,
                                                            SharedRam ram, ChildProcess child,
                                                            Links links) {
  const bool keep = links.guardian.has_value();
  QmpClient monitor(std::move(links.monitor));
  const auto greeted = monitor.handshake(kStartTimeout);
  if (!greeted) return Unexpected<Error>(start_failure(child, greeted.error()));
  std::unique_ptr<QemuMachine> machine(new QemuMachine(
      vcpus, accelerator, std::move(ram), std::move(child), std::move(monitor), std::move(links)));
  TRY(machine->watcher_.start());
  TRY(machine->vcpus_.start());
  if (keep) machine->vcpus_.set_life(QemuVcpus::Life::Stays);
  machine->keep_ = keep;
  return machine;
}

std::string_view QemuMachine::kind() const {
  return accelerator_ == Accelerator::Kvm ? "qemu (KVM)" : "qemu (TCG)";
}

void QemuMachine::shut_down() {
  if (!keep_) {
    child_.kill();  // nothing of it needs a tidy end: no disk, and its RAM has no name
    watcher_.await_end();
    child_.reap();  // for a watcher that never started
    return;
  }
  watcher_.stop();
  vcpus_.let_go();
  guardian_.reset();
}

}  // namespace ringside::vmm
