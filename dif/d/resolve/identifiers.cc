#include "dif/d/resolve/identifiers.h"

#include <algorithm>
#include <charconv>

#include "dif/program/action_kind.h"
#include "dif/program/builtin.h"

namespace ringside::d {
namespace {

using dif::Attributes;
using dif::DependencyClass;
using dif::Stability;

constexpr Attributes kStable{};
constexpr Attributes kIsa{Stability::Stable, Stability::Stable, DependencyClass::Isa};
constexpr Attributes kPrivateData{Stability::Stable, Stability::Private, DependencyClass::Common};
constexpr Attributes kEvolving{Stability::Evolving, Stability::Evolving, DependencyClass::Common};

/// Those that are not Stable/Stable/Common since 1.0. Sorted by name.
constexpr IdentifierInfo kIdentifiers[] = {
    {"breakpoint", kIsa},
    {"curthread", kPrivateData},
    {"execargs", kStable, {1, 10, 0}},
    {"freopen", kStable, {1, 1, 0}},
    {"func", kStable, {1, 2, 0}},
    {"getf", kStable, {1, 10, 0}},
    {"htonl", kStable, {1, 3, 0}},
    {"htonll", kStable, {1, 3, 0}},
    {"htons", kStable, {1, 3, 0}},
    {"index", kStable, {1, 1, 0}},
    {"inet_ntoa", kStable, {1, 5, 0}},
    {"inet_ntoa6", kStable, {1, 5, 0}},
    {"inet_ntop", kStable, {1, 5, 0}},
    {"json", kStable, {1, 11, 0}},
    {"llquantize", kStable, {1, 7, 0}},
    {"mod", kStable, {1, 2, 0}},
    {"ntohl", kStable, {1, 3, 0}},
    {"ntohll", kStable, {1, 3, 0}},
    {"ntohs", kStable, {1, 3, 0}},
    {"print", kStable, {1, 9, 0}},
    {"rindex", kStable, {1, 1, 0}},
    {"stddev", kStable, {1, 6, 0}},
    {"strchr", kStable, {1, 1, 0}},
    {"strrchr", kStable, {1, 1, 0}},
    {"strstr", kStable, {1, 1, 0}},
    {"strtok", kStable, {1, 1, 0}},
    {"strtoll", kStable, {1, 11, 0}},
    {"substr", kStable, {1, 1, 0}},
    {"sym", kStable, {1, 2, 0}},
    {"tolower", kStable, {1, 8, 0}},
    {"toupper", kStable, {1, 8, 0}},
    {"uaddr", kStable, {1, 2, 0}},
    {"ucaller", kStable, {1, 2, 0}},
    {"ufunc", kStable, {1, 2, 0}},
    {"umod", kStable, {1, 2, 0}},
    {"uregs", kIsa},
    {"ustackdepth", kStable, {1, 2, 0}},
    {"usym", kStable, {1, 2, 0}},
    {"vmid", kEvolving},
    {"vmname", kEvolving},
    {"vmpid", kEvolving},
    {"vmregs", kIsa, {1, 7, 0}},
};

}  // namespace

IdentifierInfo identifier_info(std::string_view name) {
  const auto at = std::ranges::lower_bound(kIdentifiers, name, {}, &IdentifierInfo::name);
  if (at != std::end(kIdentifiers) && at->name == name) return *at;
  return {name, kStable};
}

bool is_action(std::string_view name) {
  return dif::action_prototype(name) || dif::find_aggregating(name);
}

bool is_function_name(std::string_view name) {
  const auto known = dif::find_subroutine(name);
  return is_action(name) ||
         (known && static_cast<std::uint16_t>(known->id) < dif::kFirstPrivateSubroutine);
}

std::string similar_function(std::string_view name) {
  SimilarName similar(name);
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  similar.offer(text);
#define DIF_CODE_ACTION(number, text, least, most, value, bytes) similar.offer(text);
#define DIF_AGGREGATING(function, number, text, least, most, result) similar.offer(text);
#include "dif/program/actions.def"
#define DIF_SUBROUTINE(kind, id, text, result, least, most, a1, a2, a3, changes, call, reason) \
  if ((id) < dif::kFirstPrivateSubroutine && std::string_view(reason).empty()) similar.offer(text);
#include "dif/program/builtin.def"
  return similar.best();
}

void offer_variables(SimilarName& similar) {
#define DIF_BUILTIN(name, id, text, type) \
  if (!std::string_view(text).starts_with("__")) similar.offer(text);
#include "dif/program/builtin.def"
  for (const std::string_view array : {"args", "regs", "uregs"}) similar.offer(array);
}

std::optional<Version> parse_version(std::string_view text) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  std::size_t parts = 0;
  while (parts < version.size()) {
    const auto parsed = std::from_chars(at, end, version[parts]);
    if (parsed.ec != std::errc() || version[parts] > 0xfff) return std::nullopt;
    ++parts;
    at = parsed.ptr;
    if (at == end) break;
    if (*at++ != '.') return std::nullopt;
  }
  return at == end && parts >= 2 ? std::optional(version) : std::nullopt;
}

}  // namespace ringside::d
