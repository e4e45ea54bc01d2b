// Interface stability, as the Dynamic Tracing Guide ("Stability") defines it: how stable a name is,
// how stable the meaning of its data, and which systems have it. Providers declare theirs, the
// compiler computes those of clauses, -v shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringside::dif {

/// From least to most stable.
enum class Stability : std::uint8_t {
  Internal,
  Private,
  Obsolete,
  External,
  Unstable,
  Evolving,
  Stable,
  Standard,
};

/// From narrowest to widest.
enum class DependencyClass : std::uint8_t { Unknown, Cpu, Platform, Group, Isa, Common };

struct Attributes {
  Stability name = Stability::Stable, data = Stability::Stable;
  DependencyClass dependency = DependencyClass::Common;
  bool operator==(const Attributes&) const = default;
};

/// Each part the lesser of the two.
Attributes least(const Attributes& a, const Attributes& b);
/// True when each part is at least that of `floor` (-x amin).
bool at_least(const Attributes& attributes, const Attributes& floor);

/// "Stable", "ISA": as dtrace prints them.
std::string_view text(Stability stability);
std::string_view text(DependencyClass dependency);
/// "Stable/Evolving/ISA".
std::string to_string(const Attributes& attributes);
/// Reads that text, in any case; empty if it is not valid.
std::optional<Attributes> parse_attributes(std::string_view text);

/// A provider's promises: for each part of its probes' names, and for args[].
struct ProviderAttributes {
  Attributes provider, module, function, name, arguments;
};

}  // namespace ringside::dif
