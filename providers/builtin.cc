#include "providers/builtin.h"

namespace ringside::providers {
namespace {

constexpr const char* kNames[] = {"BEGIN", "END", "ERROR"};

}  // namespace

Probe BuiltinProvider::probe(std::uint32_t index) const {
  return {{first_ + index}, {"dtrace", "", "", kNames[index]}};
}

std::optional<dif::ProbeId> BuiltinProvider::enabled_id(std::uint32_t index) const {
  if (!enabled_[index]) return std::nullopt;
  return dif::ProbeId{first_ + index};
}

Result<void> BuiltinProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  for (std::uint32_t index = 0; index < kProbes; ++index) {
    const Probe candidate = probe(index);
    if (dif::matches(pattern, candidate.name)) visit(candidate);
  }
  return {};
}

Result<std::optional<Probe>> BuiltinProvider::by_id(dif::ProbeId id) {
  if (id.value < first_ || id.value - first_ >= kProbes) return std::optional<Probe>();
  return std::optional(probe(id.value - first_));
}

ProbeArguments BuiltinProvider::arguments(const Probe&) {
  return {};
}

dif::ProviderAttributes BuiltinProvider::attributes() const {
  using enum dif::Stability;
  using enum dif::DependencyClass;
  return {
      .provider = {Stable, Stable, Common},
      .module = {Private, Private, Unknown},
      .function = {Private, Private, Unknown},
      .name = {Stable, Stable, Common},
      .arguments = {Stable, Stable, Common},
  };
}

Result<void> BuiltinProvider::enable(const Probe& probe) {
  const std::uint32_t index = probe.id.value - first_;
  if (index >= kProbes) return fail(ErrorCode::NotFound, "the provider dtrace has no such probe");
  enabled_[index] = true;
  return {};
}

}  // namespace ringside::providers
