// Parses source text to a syntax tree, and descriptions of probes. Used by compile.cc and
// probe_definitions.cc. Of types it knows only the names that the grammar needs.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/compile_options.h"
#include "dif/program/probe_description.h"

namespace ringside::d {

/// Nesting beyond this is refused: the phases recurse over the tree.
inline constexpr int kMaxDepth = 500;

/// Adds what `source` says to `tree`; of a source with an error, what comes before it. `file` as in
/// Location. `type_names` are the typedefs of what was parsed before; parse() adds its own. Only
/// the program itself (file 0) must use all of its macro arguments.
Checked<void> parse(std::string_view source, int file, CompileOptions& options,
                    const TypeGraph& types, std::unordered_set<std::string>& type_names,
                    Tree& tree);

/// Splits a description at its colons and aligns the fields as the specifier says. A fifth one,
/// before dtrace's four, says on which machines.
Checked<dif::ProbeDescription> parse_description(const ProbePattern& pattern,
                                                 CompileOptions::Specifier specifier);

}  // namespace ringside::d
