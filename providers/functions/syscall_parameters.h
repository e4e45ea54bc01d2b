// The parameters of system calls as the kernel's own tracepoints of them describe each: names, and
// types as text of the source. BTF mostly has no prototype of a call's function, because the
// compiler has inlined it into its __x64_sys_ function. The descriptions are in the guest's memory
// (struct syscall_metadata), if the kernel has CONFIG_FTRACE_SYSCALLS.
// Used by the syscall provider while programs are compiled. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "providers/provider.h"
#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class SyscallParameters {
 public:
  /// Both must outlive it. `memory` reads the kernel's memory.
  SyscallParameters(const GuestReader& memory, const guest_linux::Kernel& kernel)
      : memory_(memory), kernel_(kernel) {}

  /// Empty where the kernel does not describe the call, or by a type that its BTF lacks. Only
  /// before Kernel::end_set_up().
  std::optional<ProbeArguments> of(std::string_view call);

 private:
  std::optional<TypeId> type_of(std::string_view spelling);
  TypeId first_of(TypeId type, unsigned depth = 0) const;
  void index_types();

  const GuestReader& memory_;
  const guest_linux::Kernel& kernel_;
  bool is_indexed_ = false;
  std::unordered_map<std::uint32_t, TypeId> pointers_, consts_;  // by what they are to or of, first
};

}  // namespace ringside::providers
