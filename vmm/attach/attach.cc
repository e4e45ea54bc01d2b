#include "vmm/attach/attach.h"

#include <fmt/format.h>

namespace ringside::vmm {
namespace {

Result<AttachedMachine> attach_to(const ProcessTarget& target) {
  return fail(ErrorCode::Unsupported,
              fmt::format("process {} cannot be attached to by this version", target.pid));
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
