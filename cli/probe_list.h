// Printing of probe lists for -l: probes with their ids, and with -v their stability and the types
// of their arguments.
#pragma once

#include <string>
#include <vector>

#include "providers/tracer/tracer.h"
#include "vmm/base/c_type.h"

namespace ringside::cli {

/// The header line of the list.
std::string probe_list_header();
/// One probe's line.
std::string probe_list_line(const providers::Probe& probe);
/// The lines that -v adds below a probe's line: stability and argument types, in dtrace's layout.
std::string probe_list_details(const dif::ProbeDescription& name,
                               const dif::ProviderAttributes& attributes,
                               const providers::ProbeArguments& arguments, const TypeGraph& types);

/// The lines that -v adds below those of a probe on one instruction: what it is. Empty for an empty
/// text.
std::string probe_list_instruction(const std::string& text);

/// The lines that -v adds below the probes: those that the guest's text has, but that cannot be
/// probed. One indented line each, without an id, so that none looks like a probe. Empty for none.
std::string refusal_list(const std::vector<providers::Refusal>& refusals);

}  // namespace ringside::cli
