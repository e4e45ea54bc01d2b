#include "cli/options/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/option_rows.h"

namespace ringside::cli {
namespace {

using View = std::string_view;

/// Those that a shell offers: not the ones that change nothing or are refused.
std::vector<OptionRow> offered() {
  return rows_where([](const OptionRow& row) {
    return !row.flag().empty() && row.group != Group::Compatibility;
  });
}

/// "auto kvm qemu", of auto|kvm|qemu; empty where the value is another.
std::string choices_of(View value) {
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);
  const bool words = std::ranges::all_of(value, [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || c == '|' || c == '-';
  });
  if (!words || value.find('|') == View::npos) return "";
  std::string choices(value);
  std::ranges::replace(choices, '|', ' ');
  return choices;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// A text in single quotes for zsh, whose own characters of a specification are marked.
std::string quoted_for_zsh(View text, View special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != View::npos) out += '\\';
    out += c;
  }
  return out;
}

/// How zsh completes a value of this kind.
std::string zsh_action(const OptionRow& row) {
  constexpr std::array<std::pair<View, View>, 6> kKinds{{{"FILE", "_files"},
                                                         {"DIR", "_files -/"},
                                                         {"IMAGE", "_ringside_images"},
                                                         {"TARGET", "_ringside_targets"},
                                                         {"PROVIDER", "_ringside_providers"},
                                                         {"PID", "_pids"}}};
  if (row.letter == 'x') return ":_ringside_x_options";
  if (const std::string choices = choices_of(row.value); !choices.empty()) {
    return fmt::format(":({})", choices);
  }
  for (const auto& [kind, action] : kKinds) {
    if (row.value.starts_with(kind)) return fmt::format(":{}", action);
  }
  return "";
}

}  // namespace

std::string completed_flags() {
  std::vector<std::string> words;
  for (const OptionRow& row : offered()) words.push_back(row.flag());
  return joined(words);
}

std::string completed_commands() {
  std::vector<std::string> words;
  for (const CommandRow& row : command_rows()) words.emplace_back(row.name);
  return joined(words);
}

std::string commands_with_targets() {
  std::vector<std::string> words;
  for (const CommandRow& row : command_rows()) {
    if (row.value.find("TARGET") != View::npos) words.emplace_back(row.name);
  }
  return fmt::format("{}", fmt::join(words, " | "));
}

std::string completed_x_names(bool with_value, View after) {
  std::vector<std::string> words;
  for (const OptionRow& row : option_rows()) {
    if (!row.name.empty() && row.needs_value() == with_value) {
      words.push_back(std::string(row.name) + std::string(after));
    }
  }
  std::ranges::sort(words);
  return joined(words);
}

// A case for each option whose value is neither a file nor completed by the template.
std::string bash_values() {
  std::string cases;
  std::string anything;
  for (const OptionRow& row : offered()) {
    const View value = row.value;
    std::string answer;
    if (const std::string choices = choices_of(value); !choices.empty()) {
      answer = fmt::format("compgen -W \"{}\"", choices);
    } else if (value == "PROVIDER") {
      answer = "compgen -W \"$_ringside_providers\"";
    } else if (value == "IMAGE") {
      answer = "compgen -W \"$(_ringside_images \"$1\")\"";
    } else if (value == "DIR") {
      answer = "compopt -o filenames; compgen -d";
    } else if (!value.empty() && row.letter != 'x' && !value.starts_with("FILE") &&
               !value.starts_with("TARGET")) {
      anything += (anything.empty() ? "" : " | ") + row.flag();
    }
    if (answer.empty()) continue;
    const bool is_folder = value == "DIR";
    cases +=
        fmt::format("    {}) {}COMPREPLY=($({} -- \"$word\")); return ;;\n", row.flag(),
                    is_folder ? "compopt -o filenames; " : "", is_folder ? "compgen -d" : answer);
  }
  return cases + fmt::format("    {}) return ;;", anything);
}

std::string zsh_options() {
  std::string lines;
  for (const OptionRow& row : offered()) {
    const View brief = row.help.substr(0, row.help.find(';'));
    std::string spec = fmt::format("{}{}[{}]", row.again == Again::Often ? "*" : "", row.flag(),
                                   quoted_for_zsh(brief, "[]"));
    if (!row.value.empty()) {
      spec += ':' + quoted_for_zsh(lower_case(row.value), ":") + zsh_action(row);
    }
    lines += fmt::format("{}  '{}' \\", lines.empty() ? "" : "\n", spec);
  }
  return lines;
}

}  // namespace ringside::cli
