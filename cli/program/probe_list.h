// Texts about probes and programs for -l and -v, in dtrace's layout: probes with their ids, their
// stability and the types of their arguments; a program's stability.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dif/program/stability.h"
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

/// Under a heading: names, data and dependency class, a line each.
std::string attribute_lines(std::string_view heading, const dif::Attributes& attributes);

/// One program's report. `label` is what it is announced as, without quotes: "description BEGIN".
std::string stability_report(std::string_view label, const dif::Attributes& description,
                             const dif::Attributes& statements);

}  // namespace ringside::cli
