// printf formats as D knows them: one parser for the compiler (which checks the arguments) and
// the consumer (which prints). Conversions and flags: Dynamic Tracing Guide, "Output Formatting".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::dif {

struct Conversion {
  std::string literal;    // text before the conversion, escapes resolved
  char kind = 0;          // the letter: d i u o x X p c C s S a A k e f g Y T ...; 0: literal only
  std::string modifiers;  // h, l, ll, L, w
  std::string flags;      // of "-+ #0'"
  bool takes_aggregation = false;  // '@'
  bool star_width = false, star_precision = false;
  std::optional<int> width, precision;
};

/// Splits a format whose C escapes were already resolved. %% becomes literal text.
Result<std::vector<Conversion>> parse_format(std::string_view format);

}  // namespace ringside::dif
