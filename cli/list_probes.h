// -l: prints the probes that a program's descriptions match, or all.
#pragma once

#include "cli/output/sink.h"
#include "cli/program/environment.h"
#include "dif/program/program.h"
#include "providers/tracer/target.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Of one or of several machines, whose names then stand in a column of their own, `width` wide.
struct ListLayout {
  std::size_t width = 0;  // 0: one
  bool verbose = false;
};

/// The header line of the whole list.
void list_header(const ListLayout& layout, Sink& sink);
/// Those of the target; `program` is null for all probes. False when a description that is for this
/// machine matched nothing, which was said.
Result<bool> list_probes(const dif::Program* program, const providers::Target& target,
                         TracerEnvironment& environment, Sink& sink, const ListLayout& layout);

}  // namespace ringside::cli
