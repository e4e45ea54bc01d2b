// -l: prints the probes that a program's descriptions match, or all.
#pragma once

#include "cli/output/sink.h"
#include "cli/program/environment.h"
#include "dif/program/program.h"
#include "providers/tracer/target.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// The layout for one machine, or for several, whose names are in a column of their own, `width`
/// wide.
struct ListLayout {
  std::size_t width = 0;  // 0: one
  bool verbose = false;
};

/// The header line of the whole list.
void list_header(const ListLayout& layout, Sink& sink);
/// Lists the target's probes; `program` is null for all probes. False if a description for this
/// machine matched nothing; a message said so.
Result<bool> list_probes(const dif::Program* program, const providers::Target& target,
                         TracerEnvironment& environment, Sink& sink, const ListLayout& layout);

}  // namespace ringside::cli
