// -l: prints the probes that a program's descriptions match, or all.
#pragma once

#include "cli/output/sink.h"
#include "cli/program/environment.h"
#include "dif/program/program.h"
#include "providers/tracer.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// `program` is null for all probes. False when a description matched nothing, which was said.
Result<bool> list_probes(const dif::Program* program, providers::Tracer& tracer,
                         TracerEnvironment& environment, Sink& sink, bool verbose);

}  // namespace ringside::cli
