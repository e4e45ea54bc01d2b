// printf() and its kin: a format, its conversions, and an argument of a fitting type for each.
// Conversions: Dynamic Tracing Guide, "Output Formatting".
#pragma once

#include <vector>

#include "dif/d/actions/action_tools.h"
#include "dif/program/format.h"

namespace ringside::d {

/// The conversions of the format `text` of `function`. Complains unless it is a string constant.
Checked<std::vector<dif::Conversion>> conversions_of(const Expr& text, std::string_view function);

/// The functions that actions.def names as formats.NAME.
class FormatActions {
 public:
  explicit FormatActions(const ActionTools& tools) : tools_(tools), code_(tools) {}

  Checked<dif::Action> formatted(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> freopen(Expr& call, dif::ActionKind kind);

 private:
  Checked<void> dynamic_width(dif::Action& action, const Expr& call, std::size_t position,
                              std::size_t number, char kind);
  Checked<dif::Difo> convert(const Expr& call, Expr& argument, const dif::Conversion& conversion,
                             std::size_t position, std::size_t number);
  bool fits(const Expr& argument, const dif::Conversion& conversion) const;
  void describe(dif::Action& action, const Expr& call);

  ActionTools tools_;
  CodeValues code_;
};

}  // namespace ringside::d
