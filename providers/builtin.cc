#include "providers/builtin.h"

namespace ringside::providers {
namespace {

constexpr const char* kNames[] = {"BEGIN", "END", "ERROR"};

using enum dif::Stability;
using enum dif::DependencyClass;

constexpr dif::ProviderAttributes kBuiltinAttributes{
    .provider = {Stable, Stable, Common},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Stable, Stable, Common},
    .arguments = {Stable, Stable, Common},
};

}  // namespace

BuiltinProvider::BuiltinProvider() : Provider("dtrace", kBuiltinAttributes) {}

Probe BuiltinProvider::probe(std::uint32_t index) const {
  return {id_at(index), {"dtrace", "", "", kNames[index]}};
}

std::optional<dif::ProbeId> BuiltinProvider::enabled_id(std::uint32_t index) const {
  if (!enabled_[index]) return std::nullopt;
  return id_at(index);
}

Result<void> BuiltinProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  for (std::uint32_t index = 0; index < kProbes; ++index) {
    const Probe candidate = probe(index);
    if (dif::matches(pattern, candidate.name)) visit(candidate);
  }
  return {};
}

Result<std::optional<Probe>> BuiltinProvider::by_id(dif::ProbeId id) {
  const auto index = index_of(id);
  return index ? std::optional(probe(*index)) : std::nullopt;
}

ProbeArguments BuiltinProvider::arguments(const Probe&) {
  return {};
}

Result<void> BuiltinProvider::enable(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index) return no_such_probe();
  enabled_[*index] = true;
  return {};
}

bool BuiltinProvider::is_enabled(dif::ProbeId id) const {
  const auto index = index_of(id);
  return index && enabled_[*index];
}

void BuiltinProvider::note_disabled(dif::ProbeId id) {
  if (const auto index = index_of(id)) enabled_[*index] = false;
}

std::optional<std::string> BuiltinProvider::why_fixed(dif::ProbeId id) const {
  if (index_of(id) != kBegin) return std::nullopt;
  return "BEGIN fires once, when tracing begins: it is enabled before that, or not at all";
}

}  // namespace ringside::providers
