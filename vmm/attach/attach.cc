#include "vmm/attach/attach.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/attach/process_machine.h"

namespace ringside::vmm {
namespace {

Result<AttachedMachine> attach_to(const ProcessTarget& target) {
  auto machine = TRY(ProcessMachine::attach(target.pid));
  std::string name = machine->name();
  return AttachedMachine{std::move(machine), std::move(name)};
}

Result<AttachedMachine> attach_to(const QmpTarget& target) {
  return fail(ErrorCode::Unsupported,
              fmt::format("{}: this version attaches to no QMP socket", target.path));
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
