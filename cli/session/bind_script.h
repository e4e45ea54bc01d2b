// Binds a compiled script to targets. For each target it fills in what the script names of the
// kernel, verifies the result, makes the engine and its buffers, and enables the probes. Does not:
// arm them.
#pragma once

#include <vector>

#include "cli/options/settings.h"
#include "cli/session/script.h"
#include "cli/session/session_target.h"
#include "dif/verify/verify.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// The script for this target's kernel, fit to run. The error names what this kernel lacks.
Result<dif::VerifiedProgram> bound_program(const Script& script, const SessionTargets& targets,
                                           SessionTarget& entry);
/// The same for each of them, in their order.
Result<std::vector<dif::VerifiedProgram>> bound_programs(const Script& script,
                                                         SessionTargets& targets);

/// Gives each target its program, its engine with buffers of the settings' sizes, and, where there
/// are several, the D variables that they share. Refuses destructive actions that are not allowed.
Result<void> bind_targets(const Script& script, std::vector<dif::VerifiedProgram> programs,
                          SessionTargets& targets, const Settings& settings);

/// Enables every probe that the targets' programs describe, and announces how many they are.
/// Refuses what a machine cannot do now, not at the first firing.
Result<void> enable_targets(const Script& script, SessionTargets& targets,
                            const Settings& settings);

}  // namespace ringside::cli
