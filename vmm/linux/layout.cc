#include "vmm/linux/layout.h"

#include <span>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

struct FoundMember {
  std::uint32_t offset = 0;
  std::uint64_t bytes = 0;
};

std::optional<FoundMember> find_member_at(const TypeGraph& types, std::string_view structure,
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
  return FoundMember{static_cast<std::uint32_t>(bits / 8), types.size_of(*type)};
}

}  // namespace

std::optional<std::uint32_t> offset_of(const TypeGraph& types, std::string_view structure,
                                       std::initializer_list<std::string_view> path) {
  const auto found = find_member_at(types, structure, path);
  return found ? std::optional(found->offset) : std::nullopt;
}

std::optional<NumberMember> number_of(const TypeGraph& types, std::string_view structure,
                                      std::initializer_list<std::string_view> path) {
  const auto found = find_member_at(types, structure, path);
  if (!found || found->bytes == 0 || found->bytes > sizeof(std::uint64_t)) return std::nullopt;
  return NumberMember{found->offset, static_cast<std::uint32_t>(found->bytes)};
}

Result<std::uint64_t, Fault> load_number(const GuestReader& kernel, GuestVirt structure,
                                         NumberMember place) {
  std::uint64_t number = 0;
  const auto bytes = std::as_writable_bytes(std::span(&number, 1)).first(place.bytes);
  TRY(kernel.read(structure.wrapping_add(place.offset), bytes));
  return number;
}

std::optional<std::uint32_t> mutex_owner_offset(const TypeGraph& types) {
  const auto owner = offset_of(types, "mutex", {"owner"});
  return owner ? owner : offset_of(types, "mutex", {"rtmutex", "owner"});
}

bool is_realtime(const SymbolTable& symbols) {
  return symbols.find("rt_spin_lock", "vmlinux") != nullptr;
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
  layout.task_start_time = task({"start_time"});
  layout.task_real_parent = task({"real_parent"});
  layout.task_cred = task({"cred"});
  layout.task_sum_exec_runtime = task({"se", "sum_exec_runtime"});
  layout.task_exec_start = task({"se", "exec_start"});
  layout.task_mm = task({"mm"});
  layout.task_stack = task({"stack"});
  layout.cred_uid = offset_of(types, "cred", {"uid"});
  layout.cred_gid = offset_of(types, "cred", {"gid"});
  layout.rq_clock = offset_of(types, "rq", {"clock"});
  layout.rq_clock_task = offset_of(types, "rq", {"clock_task"});
  layout.pt_regs_ax = registers("ax");
  layout.pt_regs_orig_ax = registers("orig_ax");
  layout.pt_regs_ip = registers("ip");
  layout.pt_regs_sp = registers("sp");
  layout.pt_regs_cs = registers("cs");
  return layout;
}

namespace {

/// A member of struct pcpu_hot (6.2 to 6.14), a per-CPU variable of its own in other kernels.
std::optional<std::uint64_t> hot_offset(const SymbolTable& symbols, const TypeGraph& types,
                                        std::string_view member, std::string_view variable) {
  const Symbol* const hot = symbols.find("pcpu_hot", "vmlinux");
  const Symbol* const found = hot != nullptr ? hot : symbols.find(variable, "vmlinux");
  if (found == nullptr) return std::nullopt;
  if (hot == nullptr) return found->address.raw();
  auto offset = offset_of(types, "pcpu_hot", {member});
  if (!offset && member == "current_task") offset = 0;  // its first one
  return offset ? std::optional(hot->address.wrapping_add(*offset).raw()) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> current_offset(const SymbolTable& symbols, const TypeGraph& types) {
  return hot_offset(symbols, types, "current_task", "current_task");
}

std::optional<std::uint64_t> cpu_number_offset(const SymbolTable& symbols, const TypeGraph& types) {
  return hot_offset(symbols, types, "cpu_number", "cpu_number");
}

std::optional<std::uint64_t> preempt_count_offset(const SymbolTable& symbols,
                                                  const TypeGraph& types) {
  return hot_offset(symbols, types, "preempt_count", "__preempt_count");
}

ListEnd walk_list(const GuestReader& kernel, GuestVirt head, std::size_t most,
                  const ListVisitor& visit) {
  auto node = load<std::uint64_t>(kernel, head);
  for (std::size_t seen = 0; node && *node != 0; ++seen) {
    if (*node == head.raw()) return ListEnd::Whole;
    if (seen == most) return ListEnd::Endless;
    if (!visit(GuestVirt(*node))) return ListEnd::Stopped;
    node = load<std::uint64_t>(kernel, GuestVirt(*node));
  }
  return ListEnd::Unreadable;
}

std::uint64_t kernel_stack_bytes(const SymbolTable& symbols) {
  constexpr std::uint64_t kLargestStack = 1 << 20;
  std::uint64_t size = 16 << 10;  // THREAD_SIZE without KASAN
  const auto between = [&](std::string_view start, std::string_view end) {
    const Symbol* low = symbols.find(start, "vmlinux");
    const Symbol* high = symbols.find(end, "vmlinux");
    if (low == nullptr || high == nullptr || high->address <= low->address) return;
    const std::uint64_t bytes = high->address.offset_from(low->address);
    if (bytes <= kLargestStack && bytes % arch::kPageSize == 0) size = bytes;
  };
  between("__start_init_task", "__end_init_task");    // 4.16 to 6.9
  between("__start_init_stack", "__end_init_stack");  // since 6.10
  return size;
}

std::uint64_t find_saved_registers(const SymbolTable& symbols) {
  const std::uint64_t size = kernel_stack_bytes(symbols);
  const bool built_for_fred = symbols.find("asm_fred_entrypoint_user", "vmlinux") != nullptr;
  return size - (built_for_fred ? 16 : 0) - sizeof(arch::SavedRegisters);
}

}  // namespace ringside::guest_linux
