#include "vmm/attach/process/process_machine.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "vmm/attach/host/attach_target.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/host/vmm_program.h"
#include "vmm/base/process.h"
#include "vmm/process_memory.h"

namespace ringside::vmm {
namespace {

/// Checks the process before its memory is looked at; the error says what is wrong.
Result<void> check_process(const HostProcess& process) {
  if (!process.exists()) return tl::make_unexpected(explain_no_access(process));
  const auto descriptors = process.descriptors();
  if (!descriptors) return tl::make_unexpected(explain_no_access(process));
  const VmmProgram program = describe_program(process);
  if (vcpu_numbers(*descriptors).empty()) {
    if (program.kind != VmmKind::Qemu) return tl::make_unexpected(runs_no_guest(process));
    TRY(check_guest_processor(process, program));
    const std::string monitor = program.qmp_path.empty()
                                    ? fmt::format("qmp:PATH, which QEMU has by {}", kQmpOption)
                                    : "qmp:" + program.qmp_path;
    return fail(ErrorCode::Unsupported,
                fmt::format("process {} is a QEMU that translates its guest (TCG), whose code "
                            "nobody can change from outside: attach by {}",
                            process.pid(),
                            program.domain.empty() ? "its monitor, " + monitor
                                                   : "its libvirt domain, " + program.domain));
  }
  TRY(check_memory_is_here(process, program, *descriptors));
  for (const pid_t thread : process.threads()) {
    const pid_t tracer = process.tracer_of(thread);
    if (tracer == 0) continue;
    return fail(ErrorCode::Io, fmt::format("process {} is traced by process {} ({}) already",
                                           process.pid(), tracer, HostProcess(tracer).program()));
  }
  const char state = process.state();
  if (state == 'T' || state == 't' || state == 'Z') {
    return fail(ErrorCode::Unsupported,
                fmt::format("process {} {}", process.pid(),
                            state == 'Z' ? "has ended" : "is stopped; let it go on (SIGCONT)"));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ProcessMachine>> ProcessMachine::attach(pid_t pid) {
  const HostProcess process(pid);
  UniqueFd pidfd = open_pidfd(pid);
  TRY(check_process(process));
  AttachLock lock = TRY(AttachLock::take(pid));
  RamBacking ram = TRY(RamBacking::open(process));
  auto found = find_guest_ram(ram.candidates());
  if (!found) {
    found.error().message = fmt::format("process {}: {}", pid, found.error().message);
    return tl::make_unexpected(std::move(found).error());
  }
  std::unique_ptr<ProcessMachine> machine(
      new ProcessMachine(pid, std::move(lock), std::move(pidfd), std::move(ram)));
  machine->memory_ = machine->ram_.make(found->ranges);
  const auto memory = machine->ram_.process_memory();
  machine->vcpus_ = TRY(ProcessVcpus::open(process, memory, machine->memory_));
  const VmmProgram program = describe_program(process);
  machine->kind_ = fmt::format("{} (KVM)", program.title);
  machine->name_ = program.name;
  machine->release_ = std::move(found->release);
  machine->frames_at_ = found->frames_at;
  machine->frames_ = found->frames;
  machine->vcpus_told_ = machine->vcpus_->count();
  return machine;
}

MachineState ProcessMachine::state() const {
  pollfd ended{process_.get(), POLLIN, 0};
  const bool gone = ::poll(&ended, 1, 0) > 0 && ended.revents != 0;
  return gone ? MachineState::Died : MachineState::Running;
}

/// Vcpus and memory that are plugged in meanwhile.
std::vector<std::string> ProcessMachine::take_news() {
  std::vector<std::string> news;
  const unsigned vcpus = vcpus_->count();
  if (vcpus > std::exchange(vcpus_told_, std::max(vcpus, vcpus_told_))) {
    news.push_back(
        fmt::format("it has {} vCPUs by now: the new ones are traced, and not sampled", vcpus));
  }
  const auto frames = memory_.load64(frames_at_);
  if (frames && *frames > frames_) {
    frames_ = *frames;
    news.emplace_back(
        "memory was plugged into it: what lies there is not to be seen by pid:N (its monitor would "
        "tell)");
  }
  return news;
}

std::string ProcessMachine::exit_reason() const {
  return state() == MachineState::Died ? "its process has ended" : std::string();
}

}  // namespace ringside::vmm
