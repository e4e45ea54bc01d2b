#include "vmm/qemu/qemu_vcpus.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

namespace ringside::vmm {
namespace {

constexpr int kEndTimeout = 500;  // milliseconds

}  // namespace

Result<void> QemuVcpus::start() {
  TRY(gdb_.attach());
  return gdb_.resume();
}

Result<void> QemuVcpus::check_alive() {
  if (watcher_.state() != MachineState::Running) {
    return fail(ErrorCode::MachineGone, "the guest has ended");
  }
  if (out_of_step_) return fail(ErrorCode::MachineGone, "QEMU stopped answering");
  return {};
}

/// After a request that failed half-way the answers cannot be told apart any more. Mostly QEMU is
/// about to end; one that is not has hung or lies, and nothing could ever let its guest go on.
template <class T>
Result<T> QemuVcpus::judge(Result<T> answer) {
  if (answer || (answer.error().code != ErrorCode::MachineGone && gdb_.in_step())) return answer;
  out_of_step_ = true;
  pollfd ended{watcher_.event_fd(), POLLIN, 0};
  if (poll(&ended, 1, kEndTimeout) != 0) return answer;
  Error error = std::move(answer).error();
  error.code = ErrorCode::MachineGone;
  if (life_ == Life::Stays) {
    error.message += fmt::format("; its guest, of process {}, may stand still", child_.pid());
  } else {
    error.message +=
        "; this QEMU was ended, with its guest: try again, or name another with --qemu";
    watcher_.note_ended_by_us();
    child_.kill();
    poll(&ended, 1, kEndTimeout);  // so that state() tells why when a caller sees our error
  }
  return Unexpected<Error>(std::move(error));
}

Result<void> QemuVcpus::pause() {
  const std::lock_guard lock(mutex_);
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

Result<void> QemuVcpus::resume() {
  const std::lock_guard lock(mutex_);
  if (pauses_ == 0 || --pauses_ != 0) return {};  // 0: let_go() has let the guest go
  watcher_.set_paused_by_us(false);
  TRY(check_alive());
  return judge(gdb_.resume());
}

Result<Registers> QemuVcpus::registers(unsigned vcpu) {
  if (vcpu >= count_) return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  const std::lock_guard lock(mutex_);
  TRY(check_alive());
  return judge(gdb_.read_registers(vcpu));
}

Result<void> QemuVcpus::write(std::span<const CodeWrite> writes) {
  const std::lock_guard lock(mutex_);
  TRY(check_alive());
  return judge(gdb_.write_bytes(writes, memory_));
}

void QemuVcpus::let_go() {
  const std::lock_guard lock(mutex_);
  if (pauses_ != 0 && check_alive()) {
    pauses_ = 0;
    (void)gdb_.resume();
  }
  // QEMU forgets what it has not read when we hang up: the guest would stay paused.
  if (check_alive()) gdb_.await_taken();
}

}  // namespace ringside::vmm
