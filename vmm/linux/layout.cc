#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

std::optional<std::uint32_t> offset_of(const TypeGraph& types, std::string_view structure,
                                       std::initializer_list<std::string_view> path) {
  auto type = types.find(TypeKind::Struct, structure);
  std::uint64_t bits = 0;
  for (const std::string_view name : path) {
    const auto member = type ? types.find_member(*type, name) : std::nullopt;
    if (!member || member->bit_width != 0) return std::nullopt;
    bits += member->bit_offset;
    type = member->type;
  }
  if (!type || bits % 8 != 0 || bits / 8 > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(bits / 8);
}

KernelLayout read_layout(const TypeGraph& types) {
  const auto task = [&](std::initializer_list<std::string_view> path) {
    return offset_of(types, "task_struct", path);
  };
  const auto registers = [&](std::string_view name) { return offset_of(types, "pt_regs", {name}); };
  KernelLayout layout;
  layout.task_comm = task({"comm"});
  layout.task_pid = task({"pid"});
  layout.task_tgid = task({"tgid"});
  layout.task_real_parent = task({"real_parent"});
  layout.task_cred = task({"cred"});
  layout.task_sum_exec_runtime = task({"se", "sum_exec_runtime"});
  layout.task_mm = task({"mm"});
  layout.task_stack = task({"stack"});
  layout.cred_uid = offset_of(types, "cred", {"uid"});
  layout.cred_gid = offset_of(types, "cred", {"gid"});
  layout.pt_regs_ax = registers("ax");
  layout.pt_regs_orig_ax = registers("orig_ax");
  layout.pt_regs_ip = registers("ip");
  layout.pt_regs_sp = registers("sp");
  layout.pt_regs_cs = registers("cs");
  return layout;
}

}  // namespace ringside::guest_linux
