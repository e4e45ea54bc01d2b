#include "providers/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ringside::providers {

void Registry::add(std::unique_ptr<Provider> provider) {
  provider->set_first_id(next_id_);
  const std::uint32_t count = provider->id_count();
  entries_.push_back({std::move(provider), next_id_, count});
  next_id_ += count;
}

Provider* Registry::owner(dif::ProbeId id) {
  for (Entry& entry : entries_) {
    if (id.value >= entry.first && id.value - entry.first < entry.count) {
      return entry.provider.get();
    }
  }
  return nullptr;
}

namespace {

dif::ProviderAttributes nothing_promised() {
  constexpr dif::Attributes kPrivate{dif::Stability::Private, dif::Stability::Private,
                                     dif::DependencyClass::Unknown};
  return {kPrivate, kPrivate, kPrivate, kPrivate, kPrivate};
}

/// Providers of dtrace's that are not here, and what to use: a user who names one is told.
struct AbsentProvider {
  std::string_view name, reason;
};
constexpr AbsentProvider kAbsent[] = {
    {"cpc",
     "the host's counters fire no probes: perf stat -e instructions:G -p PID on the host counts "
     "the "
     "guest's of a QEMU with KVM, and profile-N samples in time"},
};

}  // namespace

/// An empty field matches anything, so only a filled one can rule a whole provider out.
std::vector<Provider*> Registry::asked_for(const dif::ProbeDescription& pattern) const {
  std::vector<Provider*> asked, rest;
  for (const Entry& entry : entries_) {
    Provider* const provider = entry.provider.get();
    if (pattern.provider.empty() && provider->is_for_the_rest()) continue;
    if (!pattern.provider.empty() && !provider->may_match(pattern.provider)) continue;
    (provider->is_for_the_rest() ? rest : asked).push_back(provider);
  }
  return asked.empty() ? rest : asked;
}

Result<void> Registry::for_each(const dif::ProbeDescription& pattern,
                                const Provider::Visitor& visit) {
  for (Provider* provider : asked_for(pattern)) TRY(provider->provide(pattern, visit));
  return {};
}

Result<void> Registry::admit(std::uint16_t module) {
  for (Entry& entry : entries_) TRY(entry.provider->admit(module));
  return {};
}

Result<void> Registry::for_each_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                                   const Provider::Visitor& visit) {
  for (Provider* provider : asked_for(pattern)) {
    TRY(provider->provide_in(module, pattern, visit));
  }
  return {};
}

Result<std::size_t> Registry::follow_files(std::vector<std::string>& names) {
  std::size_t places = 0;
  for (Entry& entry : entries_) places += TRY(entry.provider->follow_files(names));
  return places;
}

Result<void> Registry::refusals(const dif::ProbeDescription& pattern,
                                const Provider::RefusalVisitor& visit) {
  for (Provider* provider : asked_for(pattern)) TRY(provider->refusals(pattern, visit));
  for (const AbsentProvider& absent : kAbsent) {
    if (pattern.provider == absent.name) visit({pattern, std::string(absent.reason)});
  }
  return {};
}

void Registry::gaps(const dif::ProbeDescription& pattern, const Provider::RefusalVisitor& visit) {
  for (Provider* provider : asked_for(pattern)) provider->gaps(pattern, visit);
}

Result<std::optional<Probe>> Registry::by_id(dif::ProbeId id) {
  Provider* provider = owner(id);
  if (provider == nullptr) return std::optional<Probe>();
  return provider->by_id(id);
}

ProbeArguments Registry::arguments(const Probe& probe) {
  Provider* provider = owner(probe.id);
  return provider == nullptr ? ProbeArguments() : provider->arguments(probe);
}

std::string Registry::detail(const Probe& probe) {
  Provider* provider = owner(probe.id);
  return provider == nullptr ? std::string() : provider->detail(probe);
}

dif::ProviderAttributes Registry::attributes(const Probe& probe) {
  Provider* provider = owner(probe.id);
  return provider == nullptr ? nothing_promised() : provider->attributes();
}

bool Registry::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.provider->has_name(name); });
}

Result<void> Registry::enable(const Probe& probe) {
  Provider* provider = owner(probe.id);
  if (provider == nullptr) {
    return fail(ErrorCode::NotFound,
                fmt::format("no probe has the id {}; list the probes with -l", probe.id.value));
  }
  return provider->enable(probe);
}

Result<Provider*> Registry::changeable_owner(const Probe& probe) {
  Provider* provider = owner(probe.id);
  if (provider == nullptr) {
    return fail(ErrorCode::NotFound,
                fmt::format("no probe has the id {}; list the probes with -l", probe.id.value));
  }
  if (auto why = provider->why_fixed(probe.id)) {
    return fail(ErrorCode::Unsupported, std::move(*why));
  }
  return provider;
}

Result<std::vector<Probe>> Registry::enable_more(std::span<const Probe> probes) {
  std::vector<Probe> fresh;
  Result<void> done;
  for (const Probe& probe : probes) {
    const auto provider = changeable_owner(probe);
    if (provider && (*provider)->is_enabled(probe.id)) continue;
    done = provider ? (*provider)->enable(probe) : tl::make_unexpected(provider.error());
    if (!done) break;
    fresh.push_back(probe);
  }
  if (done) return fresh;
  for (const Probe& probe : fresh) owner(probe.id)->note_disabled(probe.id);
  return tl::make_unexpected(std::move(done).error());
}

Result<void> Registry::disable(std::span<const Probe> probes) {
  for (const Probe& probe : probes) TRY(changeable_owner(probe));
  for (const Probe& probe : probes) owner(probe.id)->note_disabled(probe.id);
  return {};
}

}  // namespace ringside::providers
