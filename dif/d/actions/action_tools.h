// Shared by the builders of actions: their tools, dtrace's complaints about arguments, and the
// values of stack(), ustack(), sym() and the like, which may stand wherever a value is recorded.
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

/// Whether `e` is stack(), ustack(), sym() or the like. It may be a statement, a key or an argument
/// of printf().
bool is_code_call(const Expr& e);

/// Stacks and addresses of code are recorded as numbers; names are looked up when they are printed.
class CodeValues {
 public:
  explicit CodeValues(const ActionTools& tools) : tools_(tools) {}

  /// The object of such a call.
  Checked<dif::Difo> value(Expr& call);
  /// The call as a statement: a Trace.
  Checked<dif::Action> trace(Expr& call);

 private:
  Checked<std::uint32_t> frames(const Expr& call, std::uint32_t otherwise);

  ActionTools tools_;
};

}  // namespace ringside::d
