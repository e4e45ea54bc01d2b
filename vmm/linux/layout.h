// Finds offsets in the kernel's structures by name, in its own types, loads fields, and walks the
// kernel's circular lists. No offset is built in: they differ by version and configuration. Used by
// Kernel, the module list and the processes.
// Hostile input, and the guest may change it meanwhile: every walk is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// Bytes from the start of `struct structure` to the member that `path` names, member by member:
/// {"se", "sum_exec_runtime"}. Empty when a step does not exist or is a bit-field.
std::optional<std::uint32_t> offset_of(const TypeGraph& types, std::string_view structure,
                                       std::initializer_list<std::string_view> path);

/// A number in a structure, of 1 to 8 bytes.
struct NumberMember {
  std::uint32_t offset = 0, bytes = 0;
};
/// The same for a number, with its size, which differs between versions. Also empty if the number
/// is wider.
std::optional<NumberMember> number_of(const TypeGraph& types, std::string_view structure,
                                      std::initializer_list<std::string_view> path);

KernelLayout read_layout(const TypeGraph& types);

/// Where struct mutex has its owner, which in a real-time kernel is a rt_mutex's.
std::optional<std::uint32_t> mutex_owner_offset(const TypeGraph& types);

/// Whether this is a real-time kernel (PREEMPT_RT): rt_spin_lock() takes its spinlock_t.
bool is_realtime(const SymbolTable& symbols);

/// From a CPU's per-CPU base to the word that holds its `current`. Wraps: since 6.15 the symbol is
/// an ordinary address and the base a difference.
std::optional<std::uint64_t> current_offset(const SymbolTable& symbols, const TypeGraph& types);
/// The same for its number, an int.
std::optional<std::uint64_t> cpu_number_offset(const SymbolTable& symbols, const TypeGraph& types);
/// The same for its preempt_count (include/linux/preempt.h).
std::optional<std::uint64_t> preempt_count_offset(const SymbolTable& symbols,
                                                  const TypeGraph& types);
/// Whether a CPU with this preempt_count handles an NMI (bits 20 and up), a hardware interrupt
/// (bits 16 to 19) or a soft interrupt (bit 8, which is not set while soft interrupts are only
/// disabled).
constexpr bool is_in_interrupt(std::uint32_t preempt_count) {
  return (preempt_count & 0x7fff'0100) != 0;  // bit 31 is x86's PREEMPT_NEED_RESCHED
}

/// How large a task's kernel stack is (THREAD_SIZE): bytes, whole pages, by the first task's, else
/// what it is without KASAN.
std::uint64_t kernel_stack_bytes(const SymbolTable& symbols);

/// The distance from the lowest address of a task's kernel stack to the saved registers of user
/// mode (task_pt_regs in arch/x86/include/asm/processor.h): THREAD_SIZE less struct pt_regs, less
/// two words where the kernel is built for FRED (since 6.9).
std::uint64_t find_saved_registers(const SymbolTable& symbols);

/// The T at `offset` in a structure. Wraps like the guest's own arithmetic: a bad sum is merely
/// unreadable.
template <class T>
Result<T, Fault> load_field(const GuestReader& kernel, GuestVirt structure, std::uint64_t offset) {
  return load<T>(kernel, structure.wrapping_add(offset));
}

/// The number in the structure there, unsigned.
Result<std::uint64_t, Fault> load_number(const GuestReader& kernel, GuestVirt structure,
                                         NumberMember place);

/// How a walk of a circular list (struct list_head, include/linux/types.h) ended.
enum class ListEnd : std::uint8_t {
  Whole,       // back where it began
  Stopped,     // the visitor wanted no more
  Unreadable,  // a link leads nowhere
  Endless,     // more than `most` were there
};

/// Says whether to go on.
using ListVisitor = std::function<bool(GuestVirt)>;

/// Every node of a circular list (struct list_head) but its head.
ListEnd walk_list(const GuestReader& kernel, GuestVirt head, std::size_t most,
                  const ListVisitor& visit);

}  // namespace ringside::guest_linux
