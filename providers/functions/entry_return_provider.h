// The base of providers whose probes are the entry and the return of each of a list of functions
// (fbt, syscall): ids, publishing, refusing, enabling. A place is examined once: the site that a
// listing found is kept here until the probe is enabled.
// Does not: know where the probes stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dif/program/probe_description.h"
#include "providers/context/argument_plan.h"
#include "providers/context/binding.h"
#include "providers/functions/function_probes.h"
#include "providers/provider.h"
#include "vmm/base/c_type.h"

namespace ringside::providers {

/// Makes argument plans that cut arg<n> to the size of its type and extend its sign, as args[n] is.
/// A value of less than 8 bytes does not fill its register or word of the stack, and the calling
/// convention leaves the other bytes undefined: `mov $-2, %eax` returns an int and leaves
/// 0xfffffffe in rax.
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

class EntryReturnProvider : public Provider {
 public:
  std::uint32_t id_count() const final { return static_cast<std::uint32_t>(functions() * 2); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) final;
  Result<void> provide_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                          const Visitor& visit) final;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) final;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) final;
  Result<void> enable(const Probe& probe) final;
  bool is_enabled(dif::ProbeId id) const final { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) final { enabled_.erase(id.value); }

 protected:
  enum class End : std::uint8_t { Entry, Return };
  struct FunctionEnd {
    std::size_t function = 0;  // its index
    End end = End::Entry;
  };
  /// `name`, `points` and the kernel's types must outlive the provider.
  EntryReturnProvider(std::string_view name, const dif::ProviderAttributes& attributes,
                      ProbePoints& points, const TypeGraph& types)
      : Provider(name, attributes), points_(points), plans_(types) {}

  /// How many there are; the same for the provider's whole life.
  virtual std::size_t functions() const = 0;
  /// Module and function of a probe's name.
  virtual dif::ProbeDescription function_name(std::size_t function) const = 0;
  /// Visits the functions that the pattern's module and function want, probed or not, by index.
  virtual void for_each_function(const dif::ProbeDescription& pattern,
                                 const std::function<void(std::size_t)>& visit) const = 0;
  /// The same for a module that was loaded later and admitted. By default there are none.
  virtual void for_each_late_function(std::uint16_t module, const dif::ProbeDescription& pattern,
                                      const std::function<void(std::size_t)>& visit) const {
    (void)module, (void)pattern, (void)visit;
  }
  /// Where the probe stands; the error says why there is none.
  virtual Result<std::vector<BoundSite>> find_sites(FunctionEnd place) = 0;
  /// Called before the probe is enabled: adds to the sites what matters only then.
  virtual void complete(FunctionEnd place, std::vector<BoundSite>& sites) {
    (void)place, (void)sites;
  }

  /// The text of these functions is gone or has changed: their probes are not enabled any more, and
  /// their sites are forgotten.
  void forget_functions(std::size_t first, std::size_t count);

  ProbePoints& points() { return points_; }
  const ProbePoints& points() const { return points_; }
  /// Empty for an id of none of these functions.
  std::optional<FunctionEnd> place_of(dif::ProbeId id) const;

 private:
  static std::uint32_t index_at(FunctionEnd place);
  Probe probe(FunctionEnd place) const;
  Result<void> examine(FunctionEnd place);
  Result<std::vector<BoundSite>> take_sites(FunctionEnd place);
  using VisitFunction = std::function<void(std::size_t)>;
  static void for_each_end(const dif::ProbeDescription& pattern,
                           const std::function<void(const VisitFunction&)>& functions,
                           const std::function<void(FunctionEnd)>& visit);
  void for_each_place(const dif::ProbeDescription& pattern,
                      const std::function<void(FunctionEnd)>& visit) const;

  ProbePoints& points_;
  TypedPlans plans_;
  std::unordered_map<std::uint32_t, std::vector<BoundSite>> examined_;  // by index of id
  std::uint64_t generation_ = 0;                                        // that those are of
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
