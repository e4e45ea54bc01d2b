#include "vmm/attach/process/observed_process.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/host/vmm_program.h"
#include "vmm/base/process.h"

namespace ringside::vmm {
namespace {

Result<void> check_process(const HostProcess& process, const VmmProgram& program) {
  if (!process.exists()) return tl::make_unexpected(explain_no_access(process));
  if (process.state() == 'Z') {
    return fail(ErrorCode::Unsupported, fmt::format("process {} has ended", process.pid()));
  }
  TRY(check_guest_processor(process, program));
  const auto descriptors = process.descriptors();
  if (!descriptors) return tl::make_unexpected(explain_no_access(process));
  TRY(check_memory_is_here(process, program, *descriptors));
  if (program.kind == VmmKind::Qemu || !vcpu_numbers(*descriptors).empty()) return {};
  return tl::make_unexpected(runs_no_guest(process));
}

}  // namespace

Result<std::unique_ptr<ObservedProcess>> ObservedProcess::look_at(pid_t pid, Reach reach) {
  const HostProcess process(pid);
  UniqueFd pidfd = open_pidfd(pid);
  const VmmProgram program = describe_program(process);
  TRY(check_process(process, program));
  Result<AttachLock> lock = fail(ErrorCode::Limit, "only its memory is looked at");
  if (reach == Reach::All) lock = AttachLock::take(pid);
  if (!lock && lock.error().code != ErrorCode::Limit) return tl::make_unexpected(lock.error());
  RamBacking ram = TRY(RamBacking::open(process, RamBacking::Access::Read));
  std::unique_ptr<ObservedProcess> machine(
      new ObservedProcess(pid, std::move(pidfd), std::move(ram)));
  if (lock) machine->lock_ = std::move(*lock);
  const bool translates = vcpu_numbers(TRY(process.descriptors())).empty();
  machine->kind_ = fmt::format("{} ({})", program.title, translates ? "TCG" : "KVM");
  machine->name_ = program.name;
  machine->find_ram();
  if (process.is_stopped()) {
    machine->stopped_by_ = "its process is stopped; SIGCONT lets it go on";
  }
  if (translates) {
    machine->vcpu_trouble_ = "QEMU translates the guest, and only its monitor has its registers";
  } else if (!machine->lock_) {
    machine->vcpu_trouble_ = lock.error().message;
  } else {
    machine->find_vcpus(process);
  }
  if (machine->vcpus_ || machine->ram_trouble_.empty()) return machine;
  return fail(ErrorCode::Unsupported, fmt::format("process {}: {}", pid, machine->ram_trouble_));
}

void ObservedProcess::find_ram() {
  auto found = find_guest_ram(ram_.candidates());
  if (found) {
    memory_ = ram_.make(found->ranges);
  } else {
    ram_trouble_ = std::move(found).error().message;
  }
}

void ObservedProcess::find_vcpus(const HostProcess& process) {
  if (stopped_by_) {
    vcpu_trouble_ = "the process is stopped";
    return;
  }
  if (!ram_.process_memory()) {
    vcpu_trouble_ = explain_no_access(process).message;
    return;
  }
  if (!has_vcpu_in_kvm(process)) {
    stopped_by_ = "its owner has paused it: none of its vCPUs is in KVM";
    vcpu_trouble_ = "none of the vCPUs is in KVM";
    return;
  }
  auto found = ProcessVcpus::open(process, ram_.process_memory(), memory_);
  if (found) {
    vcpus_ = std::move(*found);
  } else {
    vcpu_trouble_ = std::move(found).error().message;
  }
}

MachineState ObservedProcess::state() const {
  pollfd end{process_.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 1 ? MachineState::Died : MachineState::Running;
}

Result<Registers> ObservedProcess::registers(unsigned vcpu) {
  return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
}

Result<void> ObservedProcess::write(std::span<const CodeWrite>) {
  return fail(ErrorCode::Unsupported, "a machine that is looked at is not written to");
}

}  // namespace ringside::vmm
