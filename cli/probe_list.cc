#include "cli/probe_list.h"

#include <fmt/format.h>

namespace ringside::cli {

std::string probe_list_header() {
  return fmt::format("{:>5} {:>10} {:>17} {:>33} {}\n", "ID", "PROVIDER", "MODULE", "FUNCTION",
                     "NAME");
}

std::string probe_list_line(const providers::Probe& probe) {
  return fmt::format("{:>5} {:>10} {:>17} {:>33} {}\n", probe.id.value, probe.name.provider,
                     probe.name.module, probe.name.function, probe.name.name);
}

std::string probe_list_arguments(const providers::ProbeArguments& arguments,
                                 const TypeGraph& types) {
  std::string text = "\n\tArgument Types\n";
  if (!arguments.known) return text + "\t\tunknown (use arg0 to arg9)\n\n";
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
