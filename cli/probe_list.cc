#include "cli/probe_list.h"

#include <fmt/format.h>

#include "cli/stability_report.h"

namespace ringside::cli {

std::string probe_list_header() {
  return fmt::format("{:>5} {:>10} {:>17} {:>33} {}\n", "ID", "PROVIDER", "MODULE", "FUNCTION",
                     "NAME");
}

std::string probe_list_line(const providers::Probe& probe) {
  return fmt::format("{:>5} {:>10} {:>17} {:>33} {}\n", probe.id.value, probe.name.provider,
                     probe.name.module, probe.name.function, probe.name.name);
}

std::string probe_list_details(const dif::ProbeDescription& name,
                               const dif::ProviderAttributes& attributes,
                               const providers::ProbeArguments& arguments, const TypeGraph& types) {
  // Of the fields that the probe's name has.
  dif::Attributes description = dif::least(attributes.provider, attributes.name);
  if (!name.module.empty()) description = dif::least(description, attributes.module);
  if (!name.function.empty()) description = dif::least(description, attributes.function);
  std::string text = '\n' + attribute_lines("Probe Description Attributes", description) + '\n' +
                     attribute_lines("Argument Attributes", attributes.arguments) +
                     "\n\tArgument Types\n";
  for (std::size_t i = 0; i < arguments.types.size(); ++i) {
    text += fmt::format("\t\targs[{}]: {}\n", i, types.to_string(arguments.types[i]));
  }
  if (arguments.types.empty()) text += "\t\tNone\n";
  return text + '\n';
}

std::string refusal_list(const std::vector<providers::Refusal>& refusals) {
  if (refusals.empty()) return {};
  std::string text = "\n\tNot probes, each with its reason\n";
  for (const providers::Refusal& refusal : refusals) {
    text += fmt::format("\t\t{}: {}\n", refusal.name.to_string(), refusal.reason);
  }
  return text + '\n';
}

}  // namespace ringside::cli
