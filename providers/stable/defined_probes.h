// The probes that D libraries define, for one target: the definitions, and the way to compile their
// expressions. Made by the command line (cli/program/defined_probes.h), which knows the D compiler;
// used by StableProvider. Fire context: no.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dif/program/probe_definition.h"
#include "dif/verify/verify.h"
#include "vmm/base/c_type.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

struct DefinedProbes {
  std::vector<dif::ProbeDefinition> probes = {};
  /// Compiles a part of a definition of `library` for one kernel. The place passes arguments of
  /// these types; null: nobody knows what it passes. The program has one clause: its predicate is
  /// the condition, and its action n has the value n. Error (Unsupported): what this kernel lacks.
  std::function<Result<dif::VerifiedProgram>(const guest_linux::Kernel& kernel,
                                             const dif::DefinitionPart& part, std::size_t library,
                                             const std::optional<std::vector<TypeId>>& arguments)>
      compile = {};
};

}  // namespace ringside::providers
