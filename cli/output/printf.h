// printf() and printa() formats at print time: makes text of a parsed format and its values.
// Used by output.cc. Does not: check argument types; the compiler did. A value that still does not
// fit its conversion prints as something harmless.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/aggregations.h"
#include "cli/output/distribution.h"
#include "cli/output/sink.h"
#include "cli/output/values.h"
#include "dif/program/format.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class Format {
 public:
  static Result<Format> parse(std::string_view text);

  /// Appends to `out`. `values` are the arguments of printf() or the keys of printa();
  /// `aggregates` what the conversions with '@' show, one after the other (the last one again when
  /// there are too few), their bars in `bars`. With `own` the text is for a terminal: what values
  /// have of control characters is escaped, and where the program's own words stand is noted.
  void print(std::string& out, std::span<const Value> values,
             std::span<const AggregateValue> aggregates, const CodeNames& names, BarStyle bars = {},
             OwnParts* own = nullptr) const;

 private:
  /// Most conversions are these, without flags, width or precision.
  enum class Fast : std::uint8_t { None, Decimal, Unsigned, Hexadecimal, String };
  struct Step {
    dif::Conversion conversion;
    Fast fast = Fast::None;
  };
  static Fast fast_form(const dif::Conversion& conversion);
  static void print_fast(std::string& out, Fast fast, const Value& value);

  std::vector<Step> steps_;
};

}  // namespace ringside::cli
