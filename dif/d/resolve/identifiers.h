// D's built-in names: their stability as it is documented, and the version of D that brought them.
// Used by the resolver for -x version, -x amin and clauses' attributes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "dif/program/stability.h"
#include "vmm/base/similar_name.h"

namespace ringside::d {

using Version = std::array<unsigned, 3>;

struct IdentifierInfo {
  std::string_view name;
  dif::Attributes attributes;
  Version since{1, 0, 0};
};

/// The stability and version of a built-in variable, subroutine or action; Stable/Stable/Common and
/// 1.0 for most.
IdentifierInfo identifier_info(std::string_view name);

/// The name of what stands in a clause and gives no value: an action or an aggregating function.
bool is_action(std::string_view name);
/// That, or the name of a subroutine of dtrace: no name for a variable.
bool is_function_name(std::string_view name);

/// The function of D that is nearest to an unknown name; empty if none is near.
std::string similar_function(std::string_view name);
void offer_variables(SimilarName& similar);

/// "1.2" or "1.2.3"; empty when it is none.
std::optional<Version> parse_version(std::string_view text);

/// The stability of the kernel's own types and symbols, and of names without a promise.
inline constexpr dif::Attributes kPrivate{dif::Stability::Private, dif::Stability::Private,
                                          dif::DependencyClass::Unknown};

}  // namespace ringside::d
