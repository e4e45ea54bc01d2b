// Binds a compiled script to targets. For each target it fills in what the script names of the
// kernel, verifies the result, makes the engine and its buffers, and enables the probes. Does not:
// arm them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "cli/options/settings.h"
#include "cli/session/script.h"
#include "cli/session/session_target.h"
#include "dif/engine/buffer_plan.h"
#include "dif/program/probe_description.h"
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

/// maxrate and maxslow. A machine that somebody else runs has a limit unless the user sets another
/// one; in one of our own nobody is hurt, and counts are exact.
Result<void> limit_traps(SessionTargets& targets, const CommandLine& line);

/// Finds functions with only one of the two probes that a script asks for: the entry or the return.
/// No probe can stand at the other end, so an arrow of -F has no counterpart.
class UnpairedProbes {
 public:
  /// A probe that the script gets; each once.
  void add(const dif::ProbeDescription& probe);

  struct Found {
    std::size_t count = 0;
    dif::ProbeDescription first{};  // the probe that is missing
  };
  /// The functions that lack a probe which one of the script's descriptions asks for.
  Found find(std::span<const dif::ProbeDescription> asked) const;

 private:
  struct Ends {
    std::size_t entries = 0, returns = 0;  // functions of one name are several
  };
  std::map<std::tuple<std::string, std::string, std::string>, Ends> functions_;
};

/// "buffer size lowered to 128m".
std::string lowered_text(const dif::LoweredBuffer& buffer);

}  // namespace ringside::cli
