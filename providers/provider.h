// A provider publishes probes, and turns them on and off. The registry (registry.h) knows all
// providers; the dispatcher (dispatch.h) leads a trap or a timer to the engine.
//
// How to add a provider: implement Provider; give it an id range in registry.cc; publish only what
// is safe to enable; arm nothing before enable().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dif/program/probe_description.h"
#include "dif/program/stability.h"
#include "vmm/base/c_type.h"
#include "vmm/base/result.h"

namespace ringside::providers {

struct Probe {
  dif::ProbeId id;
  dif::ProbeDescription name;
};

/// A probe that the guest's text would have, but that may not be published, and why.
struct Refusal {
  dif::ProbeDescription name;
  std::string reason;  // "vfs_read has no ftrace site"
};

/// A provider's promise of a probe's arguments. The probe's plan says where they come from
/// (argument_plan.h): argument n of the plan has types[n].
struct ProbeArguments {
  bool known = false;  // false: only arg0..arg9 can be used
  std::vector<TypeId> types;
  std::vector<std::string> names;
  std::string why_unknown = {};  // of one that is not known, where there is more to say
  /// How a program sees args[], if a translator changes it: args[n] is the argument `native`, which
  /// a translator of the libraries converts from types[native] to `type` ("psinfo_t *"). Empty:
  /// args[n] is argument n itself.
  struct Translated {
    std::string type;
    unsigned native = 0;
  };
  std::vector<Translated> translated;
};

class Provider {
 public:
  using Visitor = std::function<void(const Probe&)>;
  using RefusalVisitor = std::function<void(const Refusal&)>;

  virtual ~Provider() = default;
  std::string_view name() const { return name_; }
  /// Whether probes have this provider's name: those of `pid` are called pid1, pid2...
  virtual bool has_name(std::string_view provider) const { return provider == name_; }
  /// Whether a pattern that is not empty may be for its probes.
  virtual bool may_match(std::string_view pattern) const { return dif::glob_match(pattern, name_); }
  /// Whether it is asked only for patterns that no other provider may match: one that would
  /// have to look at all processes.
  virtual bool is_for_the_rest() const { return false; }
  /// A promise for all probes of this provider (Dynamic Tracing Guide, "Stability" of each
  /// provider).
  const dif::ProviderAttributes& attributes() const { return attributes_; }
  /// First id and how many ids this provider may use; the same for the same guest in every run.
  /// The registry sets the one and asks for the other once, when the provider is added.
  void set_first_id(std::uint32_t first) { first_ = first; }
  virtual std::uint32_t id_count() const = 0;

  /// Visits the published probes that match, in the order of their ids. A provider may publish a
  /// probe because the pattern asks for it (profile-97). The Probe is good for the call of `visit`;
  /// a copy of it, for as long as the provider. An error: the guest could not be read; what was
  /// visited before it stands.
  virtual Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) = 0;
  /// Visits what matches but is refused, in the order that provide() has. Only for messages and
  /// listings: it looks at everything again. Nothing by default.
  virtual Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) {
    (void)pattern, (void)visit;
    return {};
  }
  /// Visits the places that matching probes should stand on, too, and cannot: what happens there
  /// they do not count. Nothing by default.
  virtual void gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) {
    (void)pattern, (void)visit;
  }
  /// The published probe with this id; empty when the id belongs to none.
  virtual Result<std::optional<Probe>> by_id(dif::ProbeId id) = 0;
  /// The arguments of one of its own probes. The types are in the kernel's graph, which outlives
  /// the provider.
  virtual ProbeArguments arguments(const Probe& probe) = 0;
  /// One line on what the probe stands on, for -l -v; empty by default.
  virtual std::string detail(const Probe& probe) {
    (void)probe;
    return {};
  }

  /// While tracing runs: a module has come, or has come again somewhere else
  /// (Kernel::admit_module(), SymbolTable::late()). Limit: there is no room for its probes.
  virtual Result<void> admit(std::uint16_t module) {
    (void)module;
    return {};
  }
  /// The same as provide(), for a module that was loaded later and admitted. Does nothing by
  /// default.
  virtual Result<void> provide_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                                  const Visitor& visit) {
    (void)module, (void)pattern, (void)visit;
    return {};
  }

  /// While tracing runs: looks whether processes have mapped files that came later, and prepares
  /// enabled probes there, too; the tracer makes them fire. Returns how many places these are.
  /// Limit: there is no room for them. Does nothing by default.
  virtual Result<std::size_t> follow_files(std::vector<std::string>& names) {
    (void)names;
    return std::size_t{0};
  }

  /// Prepares the probe; the tracer makes it fire. Idempotent. NotFound: the probe is not this
  /// provider's; Unsupported, with the reason: nothing can stand there (any more); Limit: the guest
  /// has no room for one more. After an error the probe is as it was.
  virtual Result<void> enable(const Probe& probe) = 0;
  virtual bool is_enabled(dif::ProbeId id) const = 0;
  /// The tracer sees to it that the probe fires no more.
  virtual void note_disabled(dif::ProbeId id) = 0;
  /// Why this probe cannot be enabled or disabled while tracing runs; empty when it can.
  virtual std::optional<std::string> why_fixed(dif::ProbeId id) const {
    (void)id;
    return std::nullopt;
  }

 protected:
  /// `name` must outlive the provider.
  Provider(std::string_view name, const dif::ProviderAttributes& attributes)
      : name_(name), attributes_(attributes) {}

  dif::ProbeId id_at(std::uint32_t index) const { return {first_ + index}; }
  /// Below id_count(); empty for an id that is not this provider's.
  std::optional<std::uint32_t> index_of(dif::ProbeId id) const {
    const std::uint32_t index = id.value - first_;  // wraps to a large value below first_
    return index < id_count() ? std::optional(index) : std::nullopt;
  }
  /// enable() answers this for a probe that is not this provider's.
  tl::unexpected<Error> no_such_probe() const {
    return fail(ErrorCode::NotFound, "the provider " + std::string(name_) + " has no such probe");
  }

 private:
  const std::string_view name_;
  const dif::ProviderAttributes attributes_;
  std::uint32_t first_ = 1;
};

}  // namespace ringside::providers
