// In this file, top to bottom: what is of ours, KVM, TCG, the list.
#include "vmm/attach/host_vms.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "guest-shim/mailbox_abi.h"
#include "vmm/attach/host/attach_lock.h"
#include "vmm/attach/host/attach_target.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/host/pause_mark.h"
#include "vmm/attach/host/vmm_program.h"
#include "vmm/attach/monitor/libvirt_monitor.h"
#include "vmm/attach/monitor/monitor_socket.h"
#include "vmm/attach/monitor/monitored_machine.h"
#include "vmm/attach/process/vcpu_threads.h"
#include "vmm/attach/ram/ram_backing.h"
#include "vmm/base/printable.h"
#include "vmm/qemu/qemu_command.h"

namespace ringside::vmm {
namespace {

constexpr std::chrono::milliseconds kStateTimeout{2000};  // with a monitor that hangs
constexpr std::size_t kWord = 20;                         // of a state

/// Whether a page begins as the shim does that was installed there. A guest may write the same.
bool has_shim(const GuestMemory& memory, GuestPhys page) {
  shim_header header{};
  return memory.read(page, std::as_writable_bytes(std::span(&header, 1))) &&
         header.magic == SHIM_MAGIC && header.base != 0;
}

/// In the first megabyte of a machine that was attached to, or where ringside's own keep room.
bool has_any_shim(const GuestMemory& memory) {
  constexpr std::uint64_t kEnd = 0xa0000;  // no RAM from there on
  for (std::uint64_t page = SHIM_PAGE; page < kEnd; page += SHIM_PAGE) {
    if (has_shim(memory, GuestPhys(page))) return true;
  }
  return has_shim(memory, kReservedMemory.base);
}

std::string state_of_kvm(const HostProcess& process) {
  if (process.is_stopped()) return "stopped";
  return has_vcpu_in_kvm(process) ? "running" : "paused";
}

/// Facts of a machine that QEMU translates, as its monitor tells them.
struct Told {
  std::string state;     // in QEMU's words
  std::string obstacle;  // why it cannot be attached to; empty where it can
};

/// From a monitor that nobody else uses.
Result<Told> ask_monitor(const HostProcess& process, const std::string& path) {
  TRY(MonitorSocket::check_free(path));
  const auto monitor = TRY(MonitorSocket::connect(path, kStateTimeout));
  if (monitor->pid() != process.pid()) {
    return fail(ErrorCode::NotFound, path + " is another process's by now");
  }
  const std::string status = json_text(TRY(monitor->execute("query-status")), "status");
  Told told{printable(status).substr(0, kWord), std::string(MonitoredMachine::refusal(status))};
  const auto debugger = MonitoredMachine::check_gdbserver(*monitor, process);
  if (!debugger && debugger.error().code == ErrorCode::Io && told.obstacle.empty()) {
    told.obstacle = debugger.error().message;
  }
  return told;
}

/// The default connection finds the domain where this is its libvirt's.
Result<std::string> state_of_domain(const VmmProgram& program, const FindDomain& find) {
  return find(program.domain_uuid.empty() ? program.domain : program.domain_uuid);
}

/// `domain` is what libvirt says, where the machine is its.
Told ask_about_tcg(const HostProcess& process, const VmmProgram& program,
                   const std::optional<Result<std::string>>& domain) {
  if (process.is_stopped()) return {"stopped", {}};
  Told told;
  if (domain) {
    told.state = domain->value_or("");
  } else if (!program.qmp_path.empty()) {
    told = ask_monitor(process, program.qmp_path).value_or(Told());
  }
  if (told.state.empty()) told.state = "unknown";
  return told;
}

/// Adds the facts that its memory tells; returns the reason where it tells nothing.
std::string look_inside(const HostProcess& process, HostVm& vm) {
  auto ram = RamBacking::open(process);
  if (!ram) return ram.error().message;
  const auto found = find_guest_ram(ram->candidates());
  if (!found) return found.error().message;
  const GuestMemory memory = memory_of(found->ranges, ram->candidates());
  vm.kernel = found->release;
  vm.memory = memory.size();
  if (vm.ours.empty() && has_any_shim(memory)) vm.ours = "a shim";
  return {};
}

/// Its monitor's socket as --attach takes it; empty where it has none that we know of.
std::string monitor_of(const VmmProgram& program) {
  return program.qmp_path.empty() ? "" : "qmp:" + program.qmp_path;
}

/// A domain goes by its name: libvirt tells what becomes of it. A process's monitor knows what
/// its memory does not show.
void describe_kvm(const HostProcess& process, const VmmProgram& program, HostVm& vm, unsigned vcpus,
                  const FindDomain& find) {
  vm.accelerator = "kvm";
  vm.vcpus = vcpus;
  vm.state = state_of_kvm(process);
  vm.obstacle = look_inside(process, vm);
  if (vm.state == "stopped" || (vm.obstacle.empty() && vm.state != "running")) {
    vm.obstacle = fmt::format("it is {}", vm.state);
  }
  if (!program.domain.empty() && vm.state != "stopped" && state_of_domain(program, find)) {
    vm.target = program.domain;
  } else if (vm.obstacle.empty()) {
    vm.target = fmt::format("pid:{}", process.pid());
  } else if (vm.state != "stopped") {
    vm.target = monitor_of(program);
  }
  if (!vm.target.empty()) vm.obstacle.clear();
}

void describe_tcg(const HostProcess& process, const VmmProgram& program, HostVm& vm,
                  const FindDomain& find) {
  vm.accelerator = "tcg";
  vm.vcpus = program.vcpus.value_or(1);  // QEMU's own default
  if (const auto known = check_guest_processor(process, program); !known) {
    vm.obstacle = known.error().message;
    return;
  }
  std::optional<Result<std::string>> domain;
  if (!program.domain.empty()) domain = state_of_domain(program, find);
  Told told = ask_about_tcg(process, program, domain);
  vm.state = std::move(told.state);
  vm.obstacle = std::move(told.obstacle);
  (void)look_inside(process, vm);  // its monitor takes less than its memory does
  vm.target = domain && *domain ? program.domain : monitor_of(program);
  if (!vm.obstacle.empty()) vm.target.clear();
  if (!vm.target.empty() || !vm.obstacle.empty()) return;
  if (domain) {
    vm.obstacle = fmt::format("{}; name another libvirt's domain as URI?name={}",
                              domain->error().message, program.domain);
  } else {
    vm.obstacle = fmt::format(
        "QEMU translates it (TCG), which takes its monitor, and no QMP socket with a path is on "
        "its command line; start it with {}",
        kQmpOption);
  }
}

/// Empty for a process that runs no guest. A QEMU runs one even where its descriptors, by which
/// others are known, are not for us.
std::optional<HostVm> describe(const HostProcess& process, const FindDomain& find) {
  const auto descriptors = process.descriptors();
  const auto vcpus = descriptors ? vcpu_numbers(*descriptors) : std::set<unsigned>();
  const VmmProgram program = describe_program(process);
  if (vcpus.empty() && program.kind != VmmKind::Qemu) return std::nullopt;
  HostVm vm{.name = program.name,
            .pid = process.pid(),
            .vmm = program.title,
            .accelerator = {},
            .state = "unknown",
            .vcpus = program.vcpus,
            .memory = program.memory,
            .kernel = {},
            .ours = {},
            .target = {},
            .obstacle = {}};
  const auto holder = AttachLock::holder(process.pid());
  if (holder) vm.ours = fmt::format("traced by process {}", *holder);
  if (!descriptors) {
    vm.obstacle = explain_no_access(process).message;
  } else if (!vcpus.empty()) {
    const auto used = vcpus_in_use(process).value_or(vcpus).size();
    describe_kvm(process, program, vm, static_cast<unsigned>(used), find);
  } else {
    describe_tcg(process, program, vm, find);
  }
  if (const auto left = PauseMark(process.pid()).left_by(); left && vm.state == "paused") {
    vm.ours = fmt::format("paused by process {}, a ringside that was killed", *left);
  }
  if (holder) {
    vm.target.clear();
    vm.obstacle = fmt::format("process {} traces it", *holder);
  }
  return vm;
}

}  // namespace

Result<std::string> find_domain(const std::string& domain) {
  return LibvirtMonitor::find_state({.uri = {}, .domain = domain}, kStateTimeout);
}

std::vector<HostVm> list_host_vms(const std::string& proc, const FindDomain& find) {
  std::vector<HostVm> found;
  for (const HostProcess& process : HostProcess::all(proc)) {
    if (auto vm = describe(process, find)) found.push_back(std::move(*vm));
  }
  return found;
}

}  // namespace ringside::vmm
