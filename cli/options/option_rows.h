// The rows of options.def as text: what --help, the page ringside(1) and the shells' completions
// are made of. Does not: know the functions that set the options.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringside::cli {

enum class Group : std::uint8_t { None, Programs, Tasks, How, Compatibility, Machine, OwnVmm };
enum class Again : std::uint8_t { Once, Often };
/// An option of -x by when it may be set; settings.cc says by whom.
enum class When : std::uint8_t {
  Compile,
  CompileFirst,
  Run,
  RunFirst,
  Dynamic,
  Ignored,
  IgnoredFirst
};

/// The columns are explained in options.def.
struct OptionRow {
  std::string_view name;  // "": none of -x
  char letter;
  std::string_view word, value;
  Group group;
  Again again;
  When when;
  std::string_view help, manual;

  /// "-o" or "--image"; empty for one of -x alone.
  std::string flag() const;
  /// Whether the value may not be missing.
  bool needs_value() const;
};

struct CommandRow {
  std::string_view name, value, help, manual;
};

std::span<const OptionRow> option_rows();
std::span<const CommandRow> command_rows();
/// Names of -x that are refused.
std::span<const std::string_view> refused_names();

std::vector<OptionRow> rows_where(const std::function<bool(const OptionRow&)>& wanted);
std::string lower_case(std::string_view text);

}  // namespace ringside::cli
