// The parts of the shells' completions that list options (cli/completions/*.in).
#pragma once

#include <string>
#include <string_view>

namespace ringside::cli {

/// Letters and long options that a shell offers, parted by blanks.
std::string completed_flags();
std::string completed_commands();
/// Commands whose words are targets, for a shell's case: "why | clean".
std::string commands_with_targets();
/// Names of -x, those that need a value or the others, each with `after` behind it.
std::string completed_x_names(bool with_value, std::string_view after);
/// bash: cases for options that have a value of a known kind.
std::string bash_values();
/// zsh: the specifications of _arguments, one a line.
std::string zsh_options();

}  // namespace ringside::cli
