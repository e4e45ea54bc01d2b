// Shared by the builders of actions: their tools, and dtrace's complaints about arguments.
#pragma once

#include "dif/bind/shape_table.h"
#include "dif/d/code/codegen.h"
#include "dif/d/resolve/resolve.h"
#include "dif/program/program.h"

namespace ringside::d {

/// All outlive the builders.
struct ActionTools {
  Resolver& resolver;
  Types& types;
  dif::Program& program;
  dif::ShapeTable& shapes;

  /// The shape of what `e` is worth, by name where it is the kernel's; empty as in ShapeTable.
  std::optional<std::uint32_t> shape_of(const Expr& e) const {
    const auto shape = shapes.add(e.type);
    if (shape) resolver.namer().name_shapes(e, *shape, program.shapes);
    return shape;
  }
};

/// The call has too few or too many arguments.
tl::unexpected<Diagnostic> argument_count(std::string_view tag, const Expr& call,
                                          std::string_view expected);
/// Argument `position`, from 0, has the wrong type.
tl::unexpected<Diagnostic> argument_type(std::string_view tag, const Expr& call,
                                         std::size_t position, std::string_view prototype,
                                         std::string_view passed);

}  // namespace ringside::d
