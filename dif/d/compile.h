// The D compiler's entry point: compiles source text, with the probes, types and symbols around it,
// to a dif::Program. Grammar and semantics: the published Dynamic Tracing Guide, illumos's dialect.
// Touches no guest and no files.
#pragma once

#include <string>
#include <string_view>

#include "dif/d/resolve/environment.h"
#include "dif/d/syntax/compile_options.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::d {

struct Compiled {
  dif::Program program;
  std::string desugared;  // its clauses as D, without if, else and loops
};

/// Compiles one program. The program refers to parts of the kernel by name (kernel_names), so it
/// runs on every kernel in which bind() (dif/bind/bind.h) finds them. Types without a name are its
/// `needs`.
Result<Compiled, Diagnostic> compile(std::string_view source, const CompileOptions& options,
                                     Environment& environment);

}  // namespace ringside::d
