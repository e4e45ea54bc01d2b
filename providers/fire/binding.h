// What a probe has to do with the instruction it stands on: how its arguments are found and
// whether it fires at all. Made by providers when a probe is enabled, used by the dispatcher.
// Fire context: yes.
#pragma once

#include <cstdint>

#include "dif/program/probe_description.h"
#include "providers/tracepoint/tracepoint.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::providers {

enum class BindingKind : std::uint8_t {
  FunctionEntry,   // at the function's first instruction: arguments in registers and on the stack
  FunctionReturn,  // at a way out: arg0 is its offset, arg1 the value where there is one
  SyscallEntry,    // at __x64_sys_NAME: rdi points at the caller's pt_regs
  SyscallReturn,   // where rax is the system call's result
};

inline constexpr std::uint32_t kNoNumber = UINT32_MAX;
inline constexpr std::uint32_t kSyscallNumbers = 1024;  // table size of the numbers we know

struct Binding {
  dif::ProbeId probe;
  BindingKind kind = BindingKind::FunctionEntry;
  bool has_value = false;          // FunctionReturn: rax is the return value
  std::uint8_t condition = 0xff;   // of a conditional jump: fires only when it is taken
  std::uint8_t regs_register = 0;  // with `number`: the register (0 rax ... 15 r15) with pt_regs
  std::uint32_t offset = 0;        // FunctionReturn: from the function's start
  /// SyscallReturn on the path that all system calls share: fires for this one only.
  std::uint32_t number = kNoNumber;
};

/// Where providers put their probes.
class ProbePoints {
 public:
  virtual ~ProbePoints() = default;
  /// Whether a probe may stand here; the error says why not.
  virtual Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) = 0;
  /// Another number than before: sites that were examined before may be none any more.
  virtual std::uint64_t generation() const { return 0; }
  /// Makes the tracepoint and leads it to the binding. Probes at one address fire in the order of
  /// these calls.
  virtual Result<void> bind(const ProbeSite& site, const Binding& binding) = 0;
  /// Whether functions without an ftrace site are left alone.
  virtual bool needs_ftrace_site() const { return true; }

 protected:
  /// For who examines in another way than the tracepoint table.
  static ProbeSite proven(GuestVirt at, std::span<const std::byte> instruction, SitePolicy policy) {
    return ProbeSite(at, instruction, policy);
  }
};

}  // namespace ringside::providers
