// The probes that D's libraries define (docs/providers-in-d.md), for a target's tracer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dif/d/compile.h"
#include "providers/stable/defined_probes.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::cli {

/// Reads the definitions of these libraries for one kernel. Compile: a library is no D; the message
/// is the compiler's, with `error_tags` for its tag.
Result<std::shared_ptr<const providers::DefinedProbes>> read_defined_probes(
    std::shared_ptr<const std::vector<d::LibrarySource>> libraries,
    const guest_linux::Kernel& kernel, bool error_tags);

}  // namespace ringside::cli
