#include "dif/d/resolve/stability_notes.h"

#include <fmt/format.h>

namespace ringside::d {

Checked<void> StabilityNotes::note(const dif::Attributes& attributes, std::string_view name,
                                   const Location& at) {
  least_ = dif::least(least_, attributes);
  if (!minimum_ || dif::at_least(attributes, *minimum_)) {
    return {};
  }
  return complain("D_ATTR_MIN", at,
                  fmt::format("attributes for {} ({}) are less than predefined minimum", name,
                              dif::to_string(attributes)));
}

Checked<void> StabilityNotes::note_function(std::string_view name, const Location& at) {
  if (identifiers_.is_hidden(name)) {
    return complain("D_FUNC_UNDEF", at, fmt::format("undefined function name: {}", name));
  }
  return note(identifier_info(name).attributes, name, at);
}

}  // namespace ringside::d
