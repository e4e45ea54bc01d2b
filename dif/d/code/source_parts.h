// Notes which expression each instruction of a DIF object comes from, and the text of those
// expressions, for messages about faults. Used by the code generator.
#pragma once

#include <string>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/program/program.h"

namespace ringside::d {

/// An expression in D, for a message; empty where it would be long, or the compiler has made it.
std::string shown_text(const Expr& e);

class SourceParts {
 public:
  /// The number of an expression; the tree must outlive describe().
  unsigned add(const Expr& e);
  /// Gives the parts of `map`, whose lines are such numbers, their lines and texts.
  void describe(dif::SourceMap& map) const;

 private:
  std::vector<const Expr*> parts_;
};

}  // namespace ringside::d
