// The questions that binding asks of a kernel, as an interface. The session's implementation asks
// the guest; tests have small made-up kernels. Every answer may come from a hostile guest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "dif/program/probe_description.h"
#include "vmm/base/address.h"
#include "vmm/base/c_type.h"

namespace ringside::dif {

/// A variable or function of a kernel.
struct KernelVariable {
  std::string module;  // that it is in: "vmlinux"
  GuestVirt address;
  std::optional<TypeId> type;  // unknown for most: BTF has per-cpu variables only
};

class KernelNames {
 public:
  virtual ~KernelNames() = default;
  /// The kernel's types, found by name.
  virtual const TypeGraph& kernel_types() = 0;
  /// The part of the kernel ("vmlinux" or a module) whose own type this is; empty for D's.
  virtual std::string type_module(TypeId id) {
    (void)id;
    return {};
  }
  virtual bool has_module(std::string_view name) {
    (void)name;
    return false;
  }
  /// `symbol` or module`symbol; without a module the first one.
  virtual std::optional<KernelVariable> kernel_variable(std::string_view module,
                                                        std::string_view name) = 0;
  struct Argument {
    std::size_t matched = 0;     // probes
    std::optional<TypeId> type;  // of the first one's args[n]; empty: it has none
  };
  virtual Argument argument(const ProbeDescription& pattern, unsigned n) = 0;
  /// $target of the machine; 0 for none.
  virtual std::int64_t process() { return 0; }
};

}  // namespace ringside::dif
