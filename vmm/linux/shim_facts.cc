#include "vmm/linux/shim_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/linear_map.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

/// Where modules may begin.
constexpr GuestVirt kModulesNear = arch::kKernelImage.wrapping_add(arch::kSmallKernelImageSize);
constexpr GuestVirt kModulesFar = arch::kKernelImage.wrapping_add(arch::kKernelImageSize);
constexpr std::uint64_t kRoomWanted = 64 << 20;
/// CPU_ENTRY_AREA_RO_IDT: where every CPU's IDTR points, also in the user half
/// (arch/x86/include/asm/cpu_entry_area.h, 4.15 and later).
constexpr GuestVirt kIdtOfCpus{0xffff'fe00'0000'0000};

Result<GuestVirt> symbol(const Kernel& kernel, std::string_view name) {
  const Symbol* found = kernel.symbols().find(name, "vmlinux");
  if (found == nullptr) {
    return fail(ErrorCode::Unsupported,
                fmt::format("cannot trap in this guest: its kernel has no symbol {}", name));
  }
  return found->address;
}

/// A kernel with CONFIG_PAGE_TABLE_ISOLATION has room for a user half behind each root of page
/// tables. Where isolation is on, that of its own maps what each CPU needs to enter the kernel
/// (pti_clone_user_shared() of arch/x86/mm/pti.c).
Result<bool> has_user_half(vmm::Machine& machine, const Kernel& kernel) {
  const Symbol* const root = kernel.symbols().find("init_top_pgt", "vmlinux");
  if (root == nullptr) {
    return fail(ErrorCode::Unsupported,
                "cannot trap in this guest: neither its types nor its symbols tell whether it "
                "isolates page tables (cpuinfo_x86.x86_capability, init_top_pgt)");
  }
  if (root->size < 2 * arch::kPageSize) return false;
  vmm::PageTable user = kernel.table();
  user.root = user.root.wrapping_add(arch::kPageSize);
  return vmm::translate(machine.memory(), user, kIdtOfCpus).has_value();
}

/// A bit of boot_cpu_data.x86_capability (arch/x86/include/asm/cpufeatures.h); empty: the types do
/// not tell.
Result<std::optional<bool>> has_feature(const vmm::GuestMemory& memory, const Kernel& kernel,
                                        unsigned word, unsigned bit) {
  const GuestVirt cpu = TRY(symbol(kernel, "boot_cpu_data"));
  const auto first = offset_of(kernel.types(), "cpuinfo_x86", {"x86_capability"});
  if (!first) return std::nullopt;
  const vmm::PageTableReader reader(memory, kernel.table());
  const auto all = load<std::uint32_t>(
      reader, cpu.wrapping_add(std::uint64_t{*first} + word * sizeof(std::uint32_t)));
  if (!all) return fail(ErrorCode::Invalid, "the guest's boot_cpu_data cannot be read");
  return (*all >> bit & 1) != 0;
}

/// X86_FEATURE_PTI, 4.15 and later; without types by the page tables.
Result<bool> page_table_isolation(vmm::Machine& machine, Kernel& kernel) {
  const auto told = TRY(has_feature(machine.memory(), kernel, 7, 11));
  return told ? Result<bool>(*told) : has_user_half(machine, kernel);
}

/// struct task_struct is some 10 KiB; types that say otherwise lead nowhere.
constexpr std::uint32_t kTaskReach = 64 << 10;

/// As an instruction with %gs: has it; empty where it has no room.
std::optional<std::int32_t> percpu_offset(std::uint64_t address) {
  const auto offset = static_cast<std::int32_t>(address);
  if (static_cast<std::uint64_t>(std::int64_t{offset}) != address) return std::nullopt;
  return offset;
}

/// Empty when this kernel's types do not tell all of it.
std::optional<vmm::ShimTaskFacts> task_facts(const Kernel& kernel) {
  const auto& layout = kernel.layout();
  const auto current = current_offset(kernel.symbols(), kernel.types());
  if (!current || !layout.task_comm || !layout.task_pid || !layout.task_tgid ||
      !layout.task_start_time) {
    return std::nullopt;
  }
  // Since 6.15 it is an address in the top 2 GiB, which is what %gs: takes of it.
  const auto offset = percpu_offset(*current);
  if (!offset) return std::nullopt;
  if (std::max({*layout.task_comm, *layout.task_pid, *layout.task_tgid, *layout.task_start_time}) >
      kTaskReach) {
    return std::nullopt;
  }
  return vmm::ShimTaskFacts{*offset, *layout.task_comm, *layout.task_pid, *layout.task_tgid,
                            *layout.task_start_time};
}

/// Else it cannot be told when the kernel changes its own text.
Result<void> check_text_lock(const Kernel& kernel) {
  if (kernel.symbols().find("text_mutex", "vmlinux") == nullptr ||
      mutex_owner_offset(kernel.types())) {
    return {};
  }
  return fail(ErrorCode::Unsupported,
              "cannot trap in this guest: its types do not tell who holds a mutex, and so not when "
              "its kernel changes its own code; --types FILE takes them from a file");
}

}  // namespace

Result<vmm::ShimKernelFacts> find_shim_facts(vmm::Machine& machine, Kernel& kernel) {
  TRY(check_text_lock(kernel));
  vmm::ShimKernelFacts facts;
  facts.kernel_table = kernel.table();
  facts.image_end = TRY(symbol(kernel, "_end"));
  facts.image_region_start = arch::kKernelImage;
  // An image that reaches beyond the near boundary can only be one with the far one. Below it,
  // staying clear of both is always right.
  const bool fits_near = facts.image_end < kModulesNear.wrapping_add(-kRoomWanted);
  facts.image_region_end = fits_near ? kModulesNear : kModulesFar;
  facts.this_cpu_off = TRY(symbol(kernel, "this_cpu_off")).raw();
  facts.idt = TRY(symbol(kernel, "idt_table"));
  facts.idt_of_cpus = kIdtOfCpus;
  facts.int3_handler = TRY(symbol(kernel, "asm_exc_int3"));
  facts.page_table_isolation = TRY(page_table_isolation(machine, kernel));
  facts.task = task_facts(kernel);
  const auto number = cpu_number_offset(kernel.symbols(), kernel.types());
  facts.cpu_number = number ? percpu_offset(*number).value_or(0) : 0;
  return facts;
}

/// X86_FEATURE_USER_SHSTK, 6.6 and later; before, the bit may mean something else.
Result<bool> has_user_shadow_stacks(const vmm::GuestMemory& memory, const Kernel& kernel) {
  if (kernel.symbols().find("reset_thread_features", "vmlinux") == nullptr) return false;
  return TRY(has_feature(memory, kernel, 11, 23)).value_or(true);
}

std::optional<vmm::FetchFacts> find_fetch_facts(const vmm::GuestMemory& memory,
                                                const Kernel& kernel) {
  const auto direct_map = find_direct_map(memory, kernel);
  if (!direct_map) return std::nullopt;
  return vmm::FetchFacts{kernel.table(), *direct_map, memory.extents(),
                         kernel.layout().task_stack.value_or(0),
                         kernel_stack_bytes(kernel.symbols())};
}

}  // namespace ringside::guest_linux
