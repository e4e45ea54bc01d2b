#include "vmm/attach/attach.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/attach/libvirt_monitor.h"
#include "vmm/attach/monitor_socket.h"
#include "vmm/attach/monitored_machine.h"
#include "vmm/attach/process_machine.h"

namespace ringside::vmm {
namespace {

Result<AttachedMachine> attach_to(const ProcessTarget& target) {
  auto machine = TRY(ProcessMachine::attach(target.pid));
  std::string name = machine->name();
  return AttachedMachine{std::move(machine), std::move(name)};
}

Result<AttachedMachine> attach_by(MonitoredMachine::Access access, const std::string& called) {
  auto machine = MonitoredMachine::attach(std::move(access));
  if (!machine) {
    return fail(machine.error().code, fmt::format("{}: {}", called, machine.error().message));
  }
  std::string name = (*machine)->name();
  return AttachedMachine{std::move(*machine), std::move(name)};
}

Result<AttachedMachine> attach_to(const QmpTarget& target) {
  auto monitor = TRY(MonitorSocket::connect(target.path));
  MonitoredMachine::Access access{nullptr, monitor->pid(), monitor->fd()};
  access.monitor = std::move(monitor);
  return attach_by(std::move(access), target.path);
}

Result<AttachedMachine> attach_to(const DomainTarget& target) {
  auto monitor = TRY(LibvirtMonitor::connect(target));
  const std::string name = monitor->name();
  MonitoredMachine::Access access{nullptr, TRY(monitor->find_process()), -1};
  access.monitor = std::move(monitor);
  return attach_by(std::move(access), "domain " + name);
}

}  // namespace

Result<AttachedMachine> attach(const AttachTarget& target) {
  return std::visit([](const auto& where) { return attach_to(where); }, target.where);
}

}  // namespace ringside::vmm
