#include "cli/program/probe_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ringside::cli {

namespace {

/// As dtrace's "%17s ". A list has 100,000 rows, and fmt takes as long for them as it takes to find
/// a tenth of the probes.
void add_column(std::string& row, std::string_view text, std::size_t width) {
  if (text.size() < width) row.append(width - text.size(), ' ');
  row += text;
  row += ' ';
}

std::string row(std::string_view id, const dif::ProbeDescription& name) {
  std::string text;
  text.reserve(80);
  add_column(text, id, 5);
  add_column(text, name.provider, 10);
  add_column(text, name.module, 17);
  add_column(text, name.function, 33);
  text += name.name;
  text += '\n';
  return text;
}

}  // namespace

std::string probe_list_header() {
  return row("ID", {"PROVIDER", "MODULE", "FUNCTION", "NAME"});
}

std::string probe_list_line(const providers::Probe& probe) {
  return row(fmt::format_int(probe.id.value).c_str(), probe.name);
}

std::string probe_list_details(const dif::ProbeDescription& name,
                               const dif::ProviderAttributes& attributes,
                               const providers::ProbeArguments& arguments, const TypeGraph& types) {
  // Of the fields that the probe's name has.
  dif::Attributes description = dif::least(attributes.provider, attributes.name);
  if (!name.module.empty()) description = dif::least(description, attributes.module);
  if (!name.function.empty()) description = dif::least(description, attributes.function);
  std::string text = "\n\tArgument Types\n";
  auto add = [&](std::size_t n, std::string_view type, std::size_t native) {
    const auto& names = arguments.names;
    const std::string_view called = native < names.size() ? names[native] : std::string_view();
    const bool is_apart = !called.empty() && !type.ends_with('*');
    text += fmt::format("\t\targs[{}]: {}{}{}\n", n, type, is_apart ? " " : "", called);
  };
  for (std::size_t n = 0; n < arguments.translated.size(); ++n) {
    add(n, arguments.translated[n].type, arguments.translated[n].native);
  }
  for (std::size_t n = 0; n < arguments.types.size() && arguments.translated.empty(); ++n) {
    add(n, types.to_string(arguments.types[n]), n);
  }
  if (arguments.types.empty()) text += "\t\tNone\n";
  return text + '\n' + attribute_lines("Probe Description Attributes", description) + '\n' +
         attribute_lines("Argument Attributes", attributes.arguments) + '\n';
}

std::string probe_list_instruction(const std::string& text) {
  return text.empty() ? std::string() : fmt::format("\tInstruction\n\t\t{}\n\n", text);
}

namespace {

/// A reason without what is this one's own, its function's name and addresses, so that equal
/// reasons are equal.
std::string kind_of(const providers::Refusal& refusal) {
  std::string_view reason = refusal.reason;
  constexpr std::string_view kAt = "no probe can stand at ", kColon = ": ";
  const std::size_t colon = reason.find(kColon);
  if (reason.starts_with(kAt) && colon != reason.npos) reason.remove_prefix(colon + kColon.size());
  std::string kind;
  if (!refusal.name.function.empty() && reason.starts_with(refusal.name.function + " ")) {
    reason.remove_prefix(refusal.name.function.size());
    kind = "it";
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  while (!reason.empty()) {
    const std::size_t address = std::min(reason.find("0x"), reason.size());
    kind += reason.substr(0, address);
    if (address == reason.size()) break;
    kind += "0x...";
    reason.remove_prefix(std::min(reason.find_first_not_of(kDigits, address + 2), reason.size()));
  }
  return kind;
}

/// How often each reason stands in the list, most frequent first.
std::string refusal_summary(const std::vector<providers::Refusal>& refusals) {
  std::map<std::string, std::size_t> kinds;
  for (const providers::Refusal& refusal : refusals) ++kinds[kind_of(refusal)];
  std::vector<std::pair<std::string, std::size_t>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "\n\tHow many, by reason\n";
  for (const auto& [kind, count] : sorted) text += fmt::format("\t\t{:>8} {}\n", count, kind);
  return text;
}

}  // namespace

std::string refusal_list(const std::vector<providers::Refusal>& refusals) {
  if (refusals.empty()) return {};
  std::string text = "\n\tNot probes, each with its reason\n";
  for (const providers::Refusal& refusal : refusals) {
    text += fmt::format("\t\t{}: {}\n", refusal.name.to_string(), refusal.reason);
  }
  return text + refusal_summary(refusals) + '\n';
}

std::string attribute_lines(std::string_view heading, const dif::Attributes& attributes) {
  return fmt::format(
      "\t{}\n\t\tIdentifier Names: {}\n\t\tData Semantics:   {}\n\t\tDependency Class: {}\n",
      heading, dif::text(attributes.name), dif::text(attributes.data),
      dif::text(attributes.dependency));
}

std::string stability_report(std::string_view label, const dif::Attributes& description,
                             const dif::Attributes& statements) {
  return fmt::format("\nStability attributes for {}:\n\n{}\n{}\n", label,
                     attribute_lines("Minimum Probe Description Attributes", description),
                     attribute_lines("Minimum Statement Attributes", statements));
}

}  // namespace ringside::cli
