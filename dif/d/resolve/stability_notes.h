// The stability of the names that a clause uses.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/stability.h"

namespace ringside::d {

class StabilityNotes {
 public:
  /// `minimum`: the attributes that -x amin asks for. The identifiers tell which functions there
  /// are.
  StabilityNotes(const IdentifierTable& identifiers, std::optional<dif::Attributes> minimum)
      : identifiers_(identifiers), minimum_(minimum) {}

  /// A name is used. D_ATTR_MIN where its attributes are below the minimum.
  Checked<void> note(const dif::Attributes& attributes, std::string_view name, const Location& at);
  /// An action, aggregating function or subroutine is used. D_FUNC_UNDEF where the program asks for
  /// a D without it.
  Checked<void> note_function(std::string_view name, const Location& at);

  /// The least of the attributes that were noted since the last call.
  dif::Attributes take() { return std::exchange(least_, dif::Attributes{}); }
  /// For expressions that are only looked at: the names in them do not count.
  dif::Attributes save() const { return least_; }
  void restore(const dif::Attributes& saved) { least_ = saved; }

 private:
  const IdentifierTable& identifiers_;
  std::optional<dif::Attributes> minimum_;
  dif::Attributes least_;
};

}  // namespace ringside::d
