// Makes argument plans that cut arg<n> to the size of its type and extend its sign, as args[n] is.
// A value of less than 8 bytes does not fill its register or word of the stack, and the calling
// convention leaves the other bytes undefined: `mov $-2, %eax` returns an int and leaves 0xfffffffe
// in rax.
// Used by providers whose probes are functions' entries and returns.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "dif/program/probe_description.h"
#include "providers/context/argument_plan.h"
#include "providers/provider.h"
#include "vmm/base/c_type.h"

namespace ringside::providers {

class TypedPlans {
 public:
  /// `types` must outlive it. They may lose all that they know (Kernel::end_set_up()).
  explicit TypedPlans(const TypeGraph& types) : types_(types) {}

  /// From now on plans of this probe are by these types, unless types are not known any more.
  void know(dif::ProbeId probe, const ProbeArguments& arguments);
  /// `base`, which outlives this, with each argument as its type says. It lives as long as this.
  const ArgumentPlan* plan(dif::ProbeId probe, const ArgumentPlan& base);

 private:
  /// 4 bits for each argument: the size of a type of less than 8 bytes, and whether it is signed;
  /// 0: all of the word.
  using Widths = std::uint64_t;
  static constexpr unsigned kBits = 4;
  static constexpr Widths kSigned = 8, kSize = 7;
  Widths width_of(TypeId type) const;

  const TypeGraph& types_;
  std::unordered_map<std::uint32_t, Widths> widths_;  // by probe; those of whole words are not here
  std::map<std::pair<const ArgumentPlan*, Widths>, ArgumentPlan> plans_;
};

}  // namespace ringside::providers
