// The base of providers whose probes are the entry and the return of each of a list of functions
// (fbt, syscall): ids, publishing, refusing, enabling. A place is examined once: the site that a
// listing found waits here until the probe is enabled.
// Does not: know where the probes stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "providers/fire/binding.h"
#include "providers/provider.h"

namespace ringside::providers {

class EntryReturnProvider : public Provider {
 public:
  std::uint32_t id_count() const final { return static_cast<std::uint32_t>(functions() * 2); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) final;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) final;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) final;
  Result<void> enable(const Probe& probe) final;
  bool is_enabled(dif::ProbeId id) const final { return enabled_.contains(id.value); }
  void note_disabled(dif::ProbeId id) final { enabled_.erase(id.value); }

 protected:
  enum class End : std::uint8_t { Entry, Return };
  struct Place {
    std::size_t function = 0;  // its index
    End end = End::Entry;
  };
  /// A site of a probe, and what the probe has to do with it; the probe's id is not filled in.
  struct Stand {
    ProbeSite site;
    Binding binding;
  };
  /// `name` and `points` must outlive the provider.
  EntryReturnProvider(std::string_view name, const dif::ProviderAttributes& attributes,
                      ProbePoints& points)
      : Provider(name, attributes), points_(points) {}

  /// How many there are; the same for the provider's whole life.
  virtual std::size_t functions() const = 0;
  /// Module and function of a probe's name.
  virtual dif::ProbeDescription function_name(std::size_t function) const = 0;
  /// Visits the functions that the pattern's module and function want, probed or not, by index.
  virtual void for_each_function(const dif::ProbeDescription& pattern,
                                 const std::function<void(std::size_t)>& visit) const = 0;
  /// Where the probe stands; the error says why there is none.
  virtual Result<std::vector<Stand>> find_stands(Place place) = 0;

  ProbePoints& points() { return points_; }
  const ProbePoints& points() const { return points_; }
  /// Empty for an id of none of these functions.
  std::optional<Place> place_of(dif::ProbeId id) const;

 private:
  static std::uint32_t index_at(Place place);
  Probe probe(Place place) const;
  Result<void> examine(Place place);
  Result<std::vector<Stand>> take_stands(Place place);
  void for_each_place(const dif::ProbeDescription& pattern,
                      const std::function<void(Place)>& visit) const;

  ProbePoints& points_;
  std::unordered_map<std::uint32_t, std::vector<Stand>> examined_;  // by index of id
  std::uint64_t generation_ = 0;                                    // that those are of
  std::unordered_set<std::uint32_t> enabled_;
};

}  // namespace ringside::providers
