// -l: prints the probes that a program's descriptions match, or all.
#pragma once

#include "cli/output/sink.h"
#include "cli/program/machines_environment.h"
#include "cli/session/session_target.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Prints the probes of each target that the descriptions of `program` match, or all where it is
/// null. With several targets a column names the machine. `verbose`: -v. False if a description
/// matched nothing, or is for a machine that is not there; a message said so.
Result<bool> list_probes(const dif::Program* program, SessionTargets& targets,
                         const MachinesEnvironment& environment, Sink& sink, bool verbose);

}  // namespace ringside::cli
