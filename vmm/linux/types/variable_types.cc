#include "vmm/linux/types/variable_types.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "vmm/base/c_type.h"
#include "vmm/linux/constants.h"

namespace ringside::guest_linux {
namespace {

struct Variable {
  std::string_view name;
  TypeKind kind;  // Struct, else a type with a plain name, of which there may be a pointer or array
  std::string_view type;
  std::uint32_t count = 0;  // Array of numbers
};

constexpr std::uint32_t kLongestText = 256;

constexpr Variable kVariables[] = {
    {"__per_cpu_offset", TypeKind::Array, "unsigned long", kMostCpus},
    {"avenrun", TypeKind::Array, "unsigned long", 3},
    {"cpu_khz", TypeKind::Integer, "unsigned int"},
    {"init_cred", TypeKind::Struct, "cred"},
    {"init_files", TypeKind::Struct, "files_struct"},
    {"init_fs", TypeKind::Struct, "fs_struct"},
    {"init_mm", TypeKind::Struct, "mm_struct"},
    {"init_net", TypeKind::Struct, "net"},
    {"init_pid_ns", TypeKind::Struct, "pid_namespace"},
    {"init_task", TypeKind::Struct, "task_struct"},
    {"init_user_ns", TypeKind::Struct, "user_namespace"},
    {"init_uts_ns", TypeKind::Struct, "uts_namespace"},
    {"jiffies", TypeKind::Integer, "unsigned long"},
    {"jiffies_64", TypeKind::Integer, "unsigned long"},
    {"linux_banner", TypeKind::Array, "char"},
    {"linux_proc_banner", TypeKind::Array, "char"},
    {"loops_per_jiffy", TypeKind::Integer, "unsigned long"},
    {"max_low_pfn", TypeKind::Integer, "unsigned long"},
    {"max_pfn", TypeKind::Integer, "unsigned long"},
    {"max_threads", TypeKind::Integer, "int"},
    {"min_low_pfn", TypeKind::Integer, "unsigned long"},
    {"modules", TypeKind::Struct, "list_head"},
    {"nr_cpu_ids", TypeKind::Integer, "unsigned int"},
    {"nr_threads", TypeKind::Integer, "int"},
    {"panic_on_oops", TypeKind::Integer, "int"},
    {"panic_timeout", TypeKind::Integer, "int"},
    {"saved_command_line", TypeKind::Pointer, "char"},
    {"super_blocks", TypeKind::Struct, "list_head"},
    {"total_forks", TypeKind::Integer, "unsigned long"},
    {"tsc_khz", TypeKind::Integer, "unsigned int"},
};

/// With its NUL.
std::uint32_t text_length(const GuestReader& kernel, GuestVirt address) {
  std::array<char, kLongestText> text{};
  if (!kernel.read(address, std::as_writable_bytes(std::span(text)))) return kLongestText;
  const auto end = std::ranges::find(text, '\0');
  return std::min(static_cast<std::uint32_t>(end - text.begin()) + 1, kLongestText);
}

}  // namespace

std::optional<TypeId> variable_type(TypeGraph& types, std::string_view name,
                                    const GuestReader& kernel, GuestVirt address) {
  if (const auto told = types.find(variable_key(name))) return told;
  const auto* known = std::ranges::find(kVariables, name, &Variable::name);
  if (known == std::end(kVariables)) return std::nullopt;
  if (known->kind == TypeKind::Struct) return types.find(TypeKind::Struct, known->type);
  const auto type = types.find(known->type);
  if (type && known->kind == TypeKind::Pointer) return types.pointer_to(*type);
  if (!type || known->kind != TypeKind::Array) return type;
  return types.array_of(*type, known->count != 0 ? known->count : text_length(kernel, address));
}

}  // namespace ringside::guest_linux
