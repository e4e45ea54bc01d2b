// Definitions that stand for many probes: a place with a glob is each function that it matches, and
// an argument list that ends with `...` has the function's own parameters behind. Used by
// defined_probes.cc alone.
#pragma once

#include <vector>

#include "dif/program/probe_definition.h"
#include "vmm/linux/kernel.h"

namespace ringside::cli {

/// One definition for each function of this kernel, in the order of their names. Functions without
/// a known prototype, and those that never_in excludes, have none. Others stay as they are.
std::vector<dif::ProbeDefinition> expand_families(std::vector<dif::ProbeDefinition> definitions,
                                                  const guest_linux::Kernel& kernel);

}  // namespace ringside::cli
