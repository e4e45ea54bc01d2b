// In this file, top to bottom: what is of ours, KVM, TCG, the list.
#include "vmm/attach/host_vms.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "guest-shim/mailbox_abi.h"
#include "vmm/attach/attach_lock.h"
#include "vmm/attach/process/host_process.h"
#include "vmm/attach/process/process_access.h"
#include "vmm/attach/process/vcpu_threads.h"
#include "vmm/attach/process/vmm_program.h"
#include "vmm/attach/ram/ram_backing.h"
#include "vmm/qemu/qemu_command.h"

namespace ringside::vmm {
namespace {

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

bool is_stopped(const HostProcess& process) {
  const char state = process.state();
  return state == 'T' || state == 't';
}

std::string state_of_kvm(const HostProcess& process) {
  if (is_stopped(process)) return "stopped";
  return has_vcpu_in_kvm(process) ? "running" : "paused";
}

/// Adds the facts that its memory tells; returns the reason where it tells nothing.
std::string look_inside(const HostProcess& process, HostVm& vm) {
  auto ram = RamBacking::open(process);
  if (!ram) return ram.error().message;
  const auto found = find_guest_ram(ram->candidates());
  if (!found) return found.error().message;
  const GuestMemory memory = memory_of(found->places, ram->candidates());
  vm.kernel = found->release;
  vm.memory = memory.size();
  if (vm.ours.empty() && has_any_shim(memory)) vm.ours = "a shim";
  return {};
}

void describe_kvm(const HostProcess& process, HostVm& vm, unsigned vcpus) {
  vm.accelerator = "kvm";
  vm.vcpus = vcpus;
  vm.state = state_of_kvm(process);
  vm.obstacle = look_inside(process, vm);
  if (!vm.obstacle.empty()) return;
  if (vm.state != "running") {
    vm.obstacle = fmt::format("it is {}", vm.state);
  } else {
    vm.target = fmt::format("pid:{}", process.pid());
  }
}

void describe_tcg(const HostProcess& process, const VmmProgram& program, HostVm& vm) {
  vm.accelerator = "tcg";
  vm.vcpus = program.vcpus.value_or(1);  // QEMU's own default
  vm.state = is_stopped(process) ? "stopped" : "unknown";
  if (const auto known = check_guest_processor(process, program); !known) {
    vm.obstacle = known.error().message;
    return;
  }
  (void)look_inside(process, vm);  // its monitor takes less than its memory does
  if (!program.domain.empty()) {
    vm.target = program.domain;
  } else if (!program.qmp_path.empty()) {
    vm.target = "qmp:" + program.qmp_path;
  } else {
    vm.obstacle =
        "QEMU translates it (TCG), which takes its monitor, and no QMP socket with a path is on "
        "its command line";
  }
}

/// Empty for a process that runs no guest. A QEMU runs one even where its descriptors, by which
/// others are known, are not for us.
std::optional<HostVm> describe(const HostProcess& process) {
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
  if (const auto holder = AttachLock::holder(process.pid())) {
    vm.ours = fmt::format("traced by process {}", *holder);
  }
  if (!descriptors) {
    vm.obstacle = explain_no_access(process).message;
  } else if (!vcpus.empty()) {
    describe_kvm(process, vm, static_cast<unsigned>(vcpus.size()));
  } else {
    describe_tcg(process, program, vm);
  }
  return vm;
}

}  // namespace

std::vector<HostVm> list_host_vms(const std::string& proc) {
  std::vector<HostVm> found;
  for (const HostProcess& process : HostProcess::all(proc)) {
    if (auto vm = describe(process)) found.push_back(std::move(*vm));
  }
  return found;
}

}  // namespace ringside::vmm
