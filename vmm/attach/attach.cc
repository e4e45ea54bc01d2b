#include "vmm/attach/attach.h"

#include <fmt/format.h>

#include <utility>

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

Result<AttachedMachine> attach_to(const QmpTarget& target) {
  auto socket = TRY(MonitorSocket::connect(target.path));
  MonitoredMachine::Access access{nullptr, socket->pid(), socket->fd()};
  access.monitor = std::move(socket);
  auto machine = MonitoredMachine::attach(std::move(access));
  if (!machine) {
    return fail(machine.error().code, fmt::format("{}: {}", target.path, machine.error().message));
  }
  std::string name = (*machine)->name();
  return AttachedMachine{std::move(*machine), std::move(name)};
}

Result<AttachedMachine> attach_to(const DomainTarget& target) {
  return fail(
      ErrorCode::Unsupported,
      fmt::format("{}: this version attaches to no libvirt domain; give pid:N", target.domain));
}

}  // namespace

Result<AttachedMachine> attach(const AttachTarget& target) {
  return std::visit([](const auto& where) { return attach_to(where); }, target.where);
}

}  // namespace ringside::vmm
