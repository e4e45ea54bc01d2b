// Source text to syntax tree. Used by compile.cc; knows names of types only as far as the grammar
// needs them.
// Fire context: no.
#pragma once

#include <memory>
#include <string_view>

#include "dif/d/ast.h"
#include "dif/d/compile.h"

namespace ringside::d {

/// Nesting beyond this is refused: the phases recurse over the tree.
inline constexpr int kMaxDepth = 500;

Checked<std::unique_ptr<Tree>> parse(std::string_view source, const CompileOptions& options,
                                     const TypeGraph& types);

}  // namespace ringside::d
