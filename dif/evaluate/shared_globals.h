// The global variables, associative arrays and self-> variables of one program, and their locks.
// The engines of several machines that run one program share one SharedGlobals, so that globals
// belong to the program and not to a machine. Threads of different machines still have different
// self-> variables, because the machine is part of a thread's identity.
// Fire context: no; what it holds, yes.
#pragma once

#include <memory>
#include <span>

#include "dif/evaluate/shared_locks.h"
#include "dif/evaluate/variables.h"
#include "dif/program/options.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

struct SharedGlobals {
  SharedGlobals(const Program& program, const EngineOptions& options, unsigned vcpus)
      : locks(vcpus), variables(program, options, vcpus) {}
  SharedGlobals(std::span<const Program* const> bound, const EngineOptions& options, unsigned vcpus)
      : locks(vcpus), variables(bound, options, vcpus) {}

  SharedLocks locks;
  SharedVariables variables;
};

/// The share of one engine in them: from `first_vcpu` on, the vCPUs are its own.
struct GlobalsShare {
  std::shared_ptr<SharedGlobals> globals = nullptr;  // null: the engine makes its own
  unsigned first_vcpu = 0;
};

/// For several machines with `vcpus` in all. Unsupported where a global is of a kernel's type that
/// is not as large on all of them; the message names the variable.
Result<std::shared_ptr<SharedGlobals>> share_globals(std::span<const Program* const> bound,
                                                     const EngineOptions& options, unsigned vcpus);

}  // namespace ringside::dif
