// What the builders of actions have in common: what they work with, and dtrace's complaints about
// arguments.
#pragma once

#include "dif/d/code/codegen.h"
#include "dif/d/resolve/resolve.h"
#include "dif/d/resolve/shapes.h"
#include "dif/program/program.h"

namespace ringside::d {

/// All outlive the builders.
struct ActionTools {
  Resolver& resolver;
  Types& types;
  dif::Program& program;
  ShapeTable& shapes;
};

/// The call has too few or too many arguments.
tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected);
/// Argument `position`, from 0, has the wrong type.
tl::unexpected<Diagnostic> argument_type(std::string_view tag, const Expr& call,
                                         std::size_t position, std::string_view prototype,
                                         std::string_view passed);

}  // namespace ringside::d
