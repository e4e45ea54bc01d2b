// The QEMU back end: pausing, registers, code, the end.
#include "vmm/qemu/qemu_machine.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

namespace ringside::vmm {
namespace {

constexpr std::chrono::seconds kStartPatience(30);  // a host that swaps takes seconds to start QEMU
constexpr int kEndPatience = 500;                   // milliseconds

/// What to tell when QEMU did not get as far as a working monitor: its own last words, if any.
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

QemuMachine::QemuMachine(const MachineConfig& config, Accelerator accelerator, SharedRam ram,
                         ChildProcess child, QmpClient monitor, Links links)
    : accelerator_(accelerator),
      vcpus_(config.vcpus),
      ram_(std::move(ram)),
      memory_(ram_.guest_memory(pc_ram(ram_.size()))),
      child_(std::move(child)),
      watcher_(child_, std::move(monitor), std::move(links.console)),
      control_(std::move(links.control)),
      output_(std::move(links.output)),
      guardian_(std::move(links.guardian)),
      gdb_(std::move(links.gdb)) {}

Result<std::unique_ptr<QemuMachine>> QemuMachine::take_over(const MachineConfig& config,
                                                            Accelerator accelerator, SharedRam ram,
                                                            ChildProcess child, Links links) {
  QmpClient monitor(std::move(links.monitor));
  const auto greeted = monitor.handshake(kStartPatience);
  if (!greeted) return Unexpected<Error>(start_failure(child, greeted.error()));
  std::unique_ptr<QemuMachine> machine(new QemuMachine(
      config, accelerator, std::move(ram), std::move(child), std::move(monitor), std::move(links)));
  TRY(machine->watcher_.start());
  TRY(machine->gdb_.attach());
  TRY(machine->gdb_.resume());
  machine->keep_ = config.keep;
  return machine;
}

std::string_view QemuMachine::kind() const {
  return accelerator_ == Accelerator::Kvm ? "qemu (KVM)" : "qemu (TCG)";
}

std::optional<Machine::CommandPort> QemuMachine::command_port() {
  return CommandPort{control_.get(), output_.get()};
}

Result<void> QemuMachine::check_alive() {
  if (state() != MachineState::Running) return fail(ErrorCode::MachineGone, "the guest has ended");
  if (out_of_step_) return fail(ErrorCode::MachineGone, "QEMU stopped answering");
  return {};
}

/// After a request that failed half-way the answers cannot be told apart any more. Mostly QEMU is
/// about to end; one that is not has hung or lies, and nothing could ever let its guest go on.
template <class T>
Result<T> QemuMachine::judge(Result<T> answer) {
  if (answer || (answer.error().code != ErrorCode::MachineGone && gdb_.in_step())) return answer;
  out_of_step_ = true;
  pollfd ended{watcher_.event_fd(), POLLIN, 0};
  if (poll(&ended, 1, kEndPatience) != 0) return answer;
  Error error = std::move(answer).error();
  error.code = ErrorCode::MachineGone;
  if (keep_) {
    error.message += fmt::format("; its guest, of process {}, may stand still", child_.pid());
  } else {
    error.message +=
        "; this QEMU was ended, with its guest: try again, or name another with --qemu";
    child_.kill();
    poll(&ended, 1, kEndPatience);  // so that state() tells whoever sees our error
  }
  return Unexpected<Error>(std::move(error));
}

Result<void> QemuMachine::pause_vcpus() {
  const std::lock_guard lock(gdb_mutex_);
  TRY(check_alive());
  if (pauses_ == 0) {
    watcher_.set_paused_by_us(true);
    const auto paused = judge(gdb_.pause());
    if (!paused) watcher_.set_paused_by_us(false);
    TRY(paused);
  }
  ++pauses_;
  return {};
}

Result<void> QemuMachine::resume_vcpus() {
  const std::lock_guard lock(gdb_mutex_);
  if (pauses_ == 0 || --pauses_ != 0) return {};  // 0: shut_down has let the guest go
  watcher_.set_paused_by_us(false);
  TRY(check_alive());
  return judge(gdb_.resume());
}

Result<Registers> QemuMachine::read_registers(unsigned vcpu) {
  if (vcpu >= vcpus_) return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  const std::lock_guard lock(gdb_mutex_);
  TRY(check_alive());
  return judge(gdb_.read_registers(vcpu));
}

Result<void> QemuMachine::write_code_bytes(std::span<const CodeWrite> writes) {
  const std::lock_guard lock(gdb_mutex_);
  TRY(check_alive());
  return judge(gdb_.write_bytes(writes));
}

void QemuMachine::shut_down() {
  if (!keep_) {
    child_.kill();  // nothing of it needs a tidy end: no disk, and its RAM has no name
    watcher_.await_end();
    child_.reap();  // for a watcher that never started
    return;
  }
  watcher_.stop();
  const std::lock_guard lock(gdb_mutex_);
  if (pauses_ != 0 && check_alive()) {
    pauses_ = 0;
    (void)gdb_.resume();
  }
  // QEMU forgets what it has not read when we hang up: the guest would stay paused.
  if (check_alive()) gdb_.await_taken();
  guardian_.reset();
}

}  // namespace ringside::vmm
