// printf() and printa() formats at print time: a parsed format and values to text.
// Used by output.cc. Does not: check argument types; the compiler did. Values that do not fit their
// conversion all the same print as something harmless.
// Fire context: no.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/aggregations.h"
#include "cli/values.h"
#include "dif/format.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Names a guest address as dtrace prints code: mod`name+0x10, or the number.
using Describe = std::function<std::string(GuestVirt)>;

class Format {
 public:
  /// The error names the conversion that is wrong or not supported yet.
  static Result<Format> parse(std::string_view text);

  /// `values` are the arguments of printf() or the keys of printa(); `aggregates` what the
  /// conversions with '@' show, one after the other (the last one again when there are too few).
  std::string print(std::span<const Value> values, std::span<const AggregateValue> aggregates,
                    const Describe& describe) const;

 private:
  std::vector<dif::Conversion> conversions_;
};

}  // namespace ringside::cli
