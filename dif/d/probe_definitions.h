// Probes that D libraries define on top of others: `provider NAME { probe name(...) = place ...;
// };` (docs/providers-in-d.md has the syntax). Reads the definitions, and compiles the expressions
// of one for one kernel, as a clause of an ordinary program. Used by cli/program/defined_probes.h.
// Touches no guest and no files.
#pragma once

#include <string>
#include <vector>

#include "dif/d/compile.h"
#include "dif/program/probe_definition.h"

namespace ringside::d {

/// All definitions of these libraries, in their order. Libraries that do not fit the kernel are
/// left out. The diagnostic is complete, as compile()'s.
Result<std::vector<dif::ProbeDefinition>, Diagnostic> read_probe_definitions(
    const std::vector<LibrarySource>& libraries, Environment& environment);

/// A program of one clause, whose predicate is the condition and whose action n records value n.
/// `environment` knows one probe, `place:::`, which passes what the place has. Expressions can use
/// the declarations of `library` and of those that it depends on.
Result<dif::Program, Diagnostic> compile_definition_part(
    const dif::DefinitionPart& part, const std::vector<LibrarySource>& libraries,
    std::size_t library, Environment& environment);

}  // namespace ringside::d
