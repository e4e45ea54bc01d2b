// In this file, top to bottom: --help, the page in roff, templates.
#include "cli/options/option_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "cli/options/completions.h"
#include "cli/options/option_rows.h"

namespace ringside::cli {
namespace {

using View = std::string_view;

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}

/// Rows that follow each other with one text are one item, with all of their labels.
template <class Label, class Text>
std::vector<std::pair<std::string, std::string>> items(const std::vector<OptionRow>& rows,
                                                       Label label, Text text) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const OptionRow& row : rows) {
    const std::string says = text(row);
    if (says.empty()) continue;
    if (!list.empty() && list.back().second == says) {
      list.back().first += ", " + label(row);
    } else {
      list.emplace_back(label(row), says);
    }
  }
  return list;
}

// --help

constexpr std::size_t kIndent = 20, kColumns = 79;

/// Adds a line of `text`, broken at blanks. Its further lines begin at `indent`.
void add_broken(std::string& out, std::size_t column, std::size_t indent, View text) {
  while (!text.empty()) {
    std::size_t length = text.size();
    if (column + length > kColumns) {
      const std::size_t blank = text.rfind(' ', kColumns - column);
      length = blank == View::npos || blank == 0 ? std::min(text.find(' '), text.size()) : blank;
    }
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(length);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    column = indent;
    if (!text.empty()) out.append(indent, ' ');
  }
}

void add_item(std::string& out, View label, View text) {
  out += fmt::format("  {}", label);
  const bool fits = label.size() + 3 <= kIndent;
  if (fits) out.append(kIndent - 2 - label.size(), ' ');
  if (!fits) out += '\n';
  for (bool first = fits; !text.empty(); first = false) {
    const View line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!first) out.append(kIndent, ' ');
    // A line of two columns goes on in its second one.
    const std::size_t gap = line.find("  ");
    const std::size_t second = gap == View::npos ? 0 : line.find_first_not_of(' ', gap);
    add_broken(out, kIndent, kIndent + second, line);
  }
}

std::string help_label(const OptionRow& row) {
  if (row.letter >= '0' && row.letter <= '9') return row.flag() + std::string(row.value);
  const bool of_x = row.flag().empty();
  std::string flag = of_x ? fmt::format("-x {}", row.name) : row.flag();
  if (row.value.empty()) return flag;
  const bool joined = of_x && row.value.front() == '[';
  return flag + (joined ? "" : of_x ? "=" : " ") + std::string(row.value);
}

std::string help_of(Group group) {
  std::string text;
  const auto of_group = rows_where([&](const OptionRow& row) { return row.group == group; });
  for (const auto& [label, says] :
       items(of_group, help_label, [](const OptionRow& row) { return std::string(row.help); })) {
    add_item(text, label, says);
  }
  return text;
}

std::string help_of_commands() {
  std::string text;
  for (const CommandRow& row : command_rows()) {
    add_item(text, fmt::format("{}{}{}", row.name, row.value.empty() ? "" : " ", row.value),
             row.help);
  }
  return text;
}

// The page

/// A value in roff: words in capitals are italic and small, other words are bold.
std::string value_in_roff(View value) {
  constexpr View kPlain = "[]|{}/: =.";
  enum { Plain, Bold, Italic } now = Plain, next = Plain;
  std::string text;
  const auto change = [&] {
    if (next == now) return;
    if (now != Plain) text += "\\fR";
    if (next != Plain) text += next == Bold ? "\\fB" : "\\fI";
    now = next;
  };
  char before = ' ';
  for (const char c : value) {
    const bool is_letter = before == '-' && now == Bold;  // of an option
    next = is_capital(c) && !is_letter ? Italic : kPlain.find(c) != View::npos ? Plain : Bold;
    before = c;
    change();
    if (c == '-') text += '\\';
    text += next == Italic ? lower_case({&c, 1}) : std::string(1, c);
  }
  next = Plain;
  change();
  return text;
}

/// A text of options.def in roff: *bold*, <placeholder>, and hyphens of options that can be copied.
std::string text_in_roff(View source) {
  std::string text;
  bool bold = false;
  char before = ' ';
  for (const char c : source) {
    if (c == '*') {
      bold = !bold;
      text += bold ? "\\fB" : "\\fR";
    } else if (c == '<' || c == '>') {
      text += c == '<' ? "\\fI" : "\\fR";
    } else {
      if (c == '-' && (bold || before == ' ')) text += '\\';
      text += c;
    }
    before = c;
  }
  return text;
}

std::string page_label(const OptionRow& row) {
  std::string flag;
  for (const char c : row.flag()) flag += c == '-' ? "\\-" : std::string(1, c);
  if (row.letter >= '0' && row.letter <= '9') return fmt::format("\\fB{}{}\\fR", flag, row.value);
  return fmt::format("\\fB{}\\fR{}{}", flag, row.value.empty() ? "" : " ",
                     value_in_roff(row.value));
}

std::string manual_text(const OptionRow& row) {
  if (!row.manual.empty() || row.help.empty()) return std::string(row.manual);
  std::string text(row.help);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

template <class Label, class Text>
std::string in_page(const std::vector<OptionRow>& rows, Label label, Text text) {
  std::string page;
  for (const auto& [labels, says] : items(rows, label, text)) {
    page += fmt::format("{}.TP\n{}\n{}", page.empty() ? "" : "\n", labels, text_in_roff(says));
  }
  return page;
}

std::string page_of(Group group) {
  const auto of_group =
      rows_where([&](const OptionRow& row) { return row.group == group && !row.flag().empty(); });
  return in_page(of_group, page_label, manual_text);
}

std::string page_of_commands() {
  std::string page;
  for (const CommandRow& row : command_rows()) {
    page += fmt::format("{}.TP\n\\fB{}\\fR {}\n{}", page.empty() ? "" : "\n", row.name,
                        value_in_roff(row.value), text_in_roff(row.manual));
  }
  return page;
}

std::string synopsis_of_commands() {
  std::string lines;
  for (const CommandRow& row : command_rows()) {
    lines += fmt::format("{}\\fBringside {}\\fR {}", lines.empty() ? "" : "\n", row.name,
                         value_in_roff(row.value));
  }
  return lines;
}

std::string page_of_x(std::initializer_list<When> classes) {
  auto rows = rows_where([&](const OptionRow& row) {
    return !row.name.empty() && std::ranges::find(classes, row.when) != classes.end();
  });
  std::ranges::sort(rows, {}, &OptionRow::name);
  const auto label = [](const OptionRow& row) {
    const bool joined = row.value.empty() || row.value.starts_with("[=");
    return fmt::format("\\fB{}\\fR{}{}", row.name, joined ? "" : "=", value_in_roff(row.value));
  };
  return in_page(rows, label, [](const OptionRow& row) {
    return row.letter == 0 ? manual_text(row) : fmt::format("As *-{}*.", row.letter);
  });
}

/// "\fBa\fR, \fBb\fR", in the order of names.
std::string bold_list(std::vector<View> names) {
  std::ranges::sort(names);
  std::string list;
  for (const View name : names) list += fmt::format("{}\\fB{}\\fR", list.empty() ? "" : ", ", name);
  return list;
}

std::string names_of_ignored() {
  std::vector<View> names;
  for (const OptionRow& row : option_rows()) {
    if (row.when == When::Ignored || row.when == When::IgnoredFirst) names.push_back(row.name);
  }
  return bold_list(names);
}

std::string names_of_refused() {
  return bold_list({refused_names().begin(), refused_names().end()});
}

// Templates

std::optional<std::string> part(View key) {
  const std::array<std::pair<View, std::function<std::string()>>, 21> parts{{
      {"SYNOPSIS", synopsis_of_commands},
      {"COMMANDS", page_of_commands},
      {"PROGRAMS", [] { return page_of(Group::Programs); }},
      {"TASKS", [] { return page_of(Group::Tasks); }},
      {"HOW", [] { return page_of(Group::How); }},
      {"COMPATIBILITY", [] { return page_of(Group::Compatibility); }},
      {"MACHINE", [] { return page_of(Group::Machine); }},
      {"OWN_VMM", [] { return page_of(Group::OwnVmm); }},
      {"X_COMPILE",
       [] {
         return page_of_x({When::Compile, When::CompileFirst});
       }},
      {"X_RUN",
       [] {
         return page_of_x({When::Run, When::RunFirst});
       }},
      {"X_DYNAMIC", [] { return page_of_x({When::Dynamic}); }},
      {"X_IGNORED", names_of_ignored},
      {"X_REFUSED", names_of_refused},
      {"FLAGS", completed_flags},
      {"COMMAND_NAMES", completed_commands},
      {"TARGET_COMMANDS", commands_with_targets},
      {"X_FLAGS", [] { return completed_x_names(false, ""); }},
      {"X_VALUES", [] { return completed_x_names(true, ""); }},
      {"X_VALUES_WITH_SIGN", [] { return completed_x_names(true, "="); }},
      {"BASH_VALUES", bash_values},
      {"ZSH_OPTIONS", zsh_options},
  }};
  for (const auto& [name, make] : parts) {
    if (name == key) return make();
  }
  return std::nullopt;
}

/// The letters of options without a value, as dtrace's usage lists them.
std::string letters_without_value() {
  std::string letters;
  for (const OptionRow& row : option_rows()) {
    if (row.letter != 0 && !row.needs_value()) letters += row.letter;
  }
  std::ranges::sort(letters, {}, [](char c) {
    return std::pair(std::tolower(static_cast<unsigned char>(c)), is_capital(c));
  });
  return letters;
}

}  // namespace

std::string usage_text(View program) {
  return fmt::format(
      "Usage: {} [-32|-64] [-{}] [-b bufsz] [-c cmd] [-D name[=def]]\n"
      "\t[-I path] [-L path] [-o output] [-p pid] [-s script] [-U name]\n"
      "\t[-x opt[=val]] [-X a|c|s|t] [--image name | --kernel file | --attach target]\n"
      "\t[--help]\n"
      "\n"
      "\t[-P provider %]\n"
      "\t[-m [ provider: ] module %]\n"
      "\t[-f [[ provider: ] module: ] func %]\n"
      "\t[-n [[[ provider: ] module: ] func: ] name %]\n"
      "\t[-i probe-id %] [ args ... ]\n"
      "\n"
      "\twhere % is a predicate and an action in D, either of which may be missing\n",
      program, letters_without_value());
}

std::string help_text(View program) {
  std::string text =
      fmt::format("Usage: {0} [options] [script arguments]\n       {0} COMMAND ...\n", program);
  const auto add = [&](View heading, const std::string& part) {
    text += fmt::format("\n{}:\n{}", heading, part);
  };
  add("Commands; without one, a program is traced", help_of_commands());
  text += "A TARGET is what --attach takes.\n";
  add("Programs (each may be given several times; D may follow a description)",
      help_of(Group::Programs));
  add("Tasks", help_of(Group::Tasks));
  add("How", help_of(Group::How));
  add("For the sake of dtrace's scripts", help_of(Group::Compatibility));
  add("The machine (none: only probes that need no guest)", help_of(Group::Machine));
  add("With --machine kvm, our own VMM, a guest is traced from its first instruction;\n"
      "with -c or --after-boot once it has booted",
      help_of(Group::OwnVmm));
  return text;
}

std::string fill_page(View page) {
  std::string text;
  while (!page.empty()) {
    const std::size_t begin = page.find('@');
    const std::size_t end = begin == View::npos ? begin : page.find('@', begin + 1);
    if (end == View::npos) break;
    const View key = page.substr(begin + 1, end - begin - 1);
    const bool is_key =
        !key.empty() && std::ranges::all_of(key, [](char c) { return is_capital(c) || c == '_'; });
    text += page.substr(0, begin);
    if (!is_key) {
      // An @ of the page's own, such as an aggregation's.
      text += '@';
      page.remove_prefix(begin + 1);
      continue;
    }
    const auto made = part(key);
    if (!made) return "";
    text += *made;
    page.remove_prefix(end + 1);
  }
  return text += page;
}

}  // namespace ringside::cli
