// A probe's name of four parts, and the pattern for it that D programs and -l use. A pattern may
// have a fifth part in front: the machines that it is for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringside::dif {

/// Identifies one published probe for the life of a session: the number in dtrace's ID column.
struct ProbeId {
  std::uint32_t value = 0;
  auto operator<=>(const ProbeId&) const = default;
};

/// Identifies one enabled clause on one probe (an enabling control block).
struct EcbId {
  std::uint32_t value = 0;  // dtrace's EPID; 0 is none
  auto operator<=>(const EcbId&) const = default;
};

/// [machine:]provider:module:function:name. In a pattern, an empty field matches anything, and
/// fields may use the shell's * ? [] (with ! for a complement) and backslash.
struct ProbeDescription {
  std::string provider, module, function, name;
  std::string machine = {};  // of patterns only: a probe's name is its machine's own

  bool operator==(const ProbeDescription&) const = default;
  std::string to_string() const {
    std::string text = provider + ':' + module + ':' + function + ':' + name;
    return machine.empty() ? text : machine + ':' + text;
  }
};

/// True when `text` matches the one-field pattern. Time at most pattern length times text length.
bool glob_match(std::string_view pattern, std::string_view text);
/// True when the pattern has an unescaped metacharacter (so a lookup by name will not do).
bool is_glob(std::string_view pattern);
/// One field of a description: an empty pattern matches anything.
bool field_matches(std::string_view pattern, std::string_view text);
/// All four fields match; callers with several machines ask is_for() for the fifth.
bool matches(const ProbeDescription& pattern, const ProbeDescription& probe);
/// Whether the pattern is about probes of the machine of this name.
bool is_for(const ProbeDescription& pattern, std::string_view machine);

}  // namespace ringside::dif
