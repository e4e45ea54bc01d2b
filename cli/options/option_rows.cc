#include "cli/options/option_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ringside::cli {
namespace {

constexpr CommandRow kCommandRows[] = {
#define COMMAND(name, value, set, help, manual) {name, value, help, manual},
#include "cli/options/options.def"
};

constexpr OptionRow kOptionRows[] = {
#define LINE_OPTION(letter, word, value, group, again, set, help, manual) \
  {"", letter, word, value, Group::group, Again::again, When::RunFirst, help, manual},
#define X_OPTION(name, letter, value, group, again, when, set, help, manual) \
  {name, letter, "", value, Group::group, Again::again, When::when, help, manual},
#include "cli/options/options.def"
};

constexpr std::string_view kRefusedNames[] = {
#define X_REFUSED(name, reason) name,
#include "cli/options/options.def"
};

}  // namespace

std::string OptionRow::flag() const {
  if (letter != 0) return fmt::format("-{}", letter);
  return word.empty() ? std::string() : fmt::format("--{}", word);
}

bool OptionRow::needs_value() const {
  if (value.empty() || value.front() != '[') return !value.empty();
  return value.find(']') + 1 != value.size();
}

std::span<const OptionRow> option_rows() {
  return kOptionRows;
}

std::span<const CommandRow> command_rows() {
  return kCommandRows;
}

std::span<const std::string_view> refused_names() {
  return kRefusedNames;
}

std::vector<OptionRow> rows_where(const std::function<bool(const OptionRow&)>& wanted) {
  std::vector<OptionRow> rows;
  std::ranges::copy_if(kOptionRows, std::back_inserter(rows), wanted);
  return rows;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace ringside::cli
