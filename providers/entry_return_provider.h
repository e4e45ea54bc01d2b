// What the providers share whose probes are the entry and the return of each of a list of functions
// (fbt, syscall): ids, publishing, refusing.
// Does not: know where the probes stand, or enable them.
// Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>

#include "providers/provider.h"

namespace ringside::providers {

class EntryReturnProvider : public Provider {
 public:
  std::uint32_t id_count() const final { return static_cast<std::uint32_t>(functions() * 2); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) final;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) final;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) final;

 protected:
  enum class End : std::uint8_t { Entry, Return };
  struct Place {
    std::size_t function = 0;  // its index
    End end = End::Entry;
  };
  using Provider::Provider;

  virtual std::size_t functions() const = 0;
  /// Module and function of a probe's name.
  virtual dif::ProbeDescription function_name(std::size_t function) const = 0;
  /// Visits the functions that the pattern's module and function want, probed or not, by index.
  virtual void for_each_function(const dif::ProbeDescription& pattern,
                                 const std::function<void(std::size_t)>& visit) const = 0;
  /// Why there is no such probe; empty when there is.
  virtual Result<void> check(Place place) = 0;

  /// Empty for an id of none of these functions.
  std::optional<Place> place_of(dif::ProbeId id) const;
  /// False from the second time on.
  bool note_enabled(dif::ProbeId id) { return enabled_.insert(id.value).second; }

 private:
  Probe probe(Place place) const;
  void for_each_place(const dif::ProbeDescription& pattern,
                      const std::function<void(Place)>& visit) const;

  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
