// The kernel and the probes around a program that is compiled, as an interface: which probes and
// types there are. The session's implementation asks the guest; tests have small made-up kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dif/bind/kernel_names.h"
#include "dif/program/program.h"
#include "vmm/base/c_type.h"

namespace ringside::d {

/// The probes that a description matches, and their arguments.
struct ProbeSignature {
  std::size_t matched = 0;
  bool is_everywhere = true;      // of several machines that the description is for, on each
  bool has_types = false;         // false: args[] cannot be used, arg0..9 can
  std::string why_no_types{};     // of all, or of those that are missing; empty: nothing to tell
  std::vector<TypeId> arguments;  // of the first probe that matched
  std::vector<std::string> argument_names;
  dif::ProbeDescription first;         // that probe's full name
  dif::ProviderAttributes attributes;  // of that probe's provider
  /// args[] as a program sees it, if that differs from what the probe passes: args[n] is the
  /// argument `native` of `arguments`, translated to `type` ("bufinfo_t *", of a D library).
  struct Translated {
    std::string type;
    unsigned native = 0;
    bool operator==(const Translated&) const = default;
  };
  std::vector<Translated> translated;
};

using dif::KernelVariable;

/// The world around a program, as the session sees it. All answers may come from a hostile guest.
class Environment : public dif::KernelNames {
 public:
  virtual TypeGraph& types() = 0;
  const TypeGraph& kernel_types() override { return types(); }
  Argument argument(const dif::ProbeDescription& pattern, unsigned n) override {
    const ProbeSignature found = signature(pattern);
    Argument result{found.matched, std::nullopt};
    if (n < found.arguments.size()) result.type = found.arguments[n];
    return result;
  }
  /// For `#pragma D depends_on`, and to know which libraries can be used.
  virtual bool has_provider(std::string_view name) {
    (void)name;
    return false;
  }
  /// "6.1.0-56-cloud-amd64"; empty where there is no kernel.
  virtual std::string_view kernel_release() const { return {}; }
  /// How many indices regs[] and uregs[] have.
  virtual std::uint64_t register_indices() const { return 0; }
  virtual ProbeSignature signature(const dif::ProbeDescription& pattern) = 0;
  /// The same without the arguments: to find their types may take a while.
  virtual ProbeSignature match(const dif::ProbeDescription& pattern) { return signature(pattern); }
  /// Visits each probe that matches with its arguments' types, as signature() has them of the
  /// first, until `visit` returns false.
  virtual void for_each_signature(const dif::ProbeDescription& pattern,
                                  const std::function<bool(const ProbeSignature&)>& visit) {
    const ProbeSignature all = signature(pattern);
    if (all.matched != 0) (void)visit(all);
  }
  /// The full name of the probe with this number; empty when there is none.
  virtual std::optional<dif::ProbeDescription> probe_by_id(dif::ProbeId id) {
    (void)id;
    return {};
  }
  /// The name of a kernel variable that is nearest to one that there is not; empty where none is
  /// near.
  virtual std::string similar_kernel_variable(std::string_view module, std::string_view name) {
    (void)module, (void)name;
    return {};
  }
  /// The reason why nothing matches, in words for the user; empty when there is none to tell.
  virtual std::string why_no_match(const dif::ProbeDescription& pattern) {
    (void)pattern;
    return {};
  }
};

}  // namespace ringside::d
