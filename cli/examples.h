// `ringside examples`: the scripts that come with the program. A script is NAME.d and begins with a
// comment whose first line is "NAME.d - what it shows."; NAME.txt beside it has sample output.
#pragma once

#include <string>

#include "vmm/base/result.h"

namespace ringside::cli {

/// A line for each script of a folder, by name, and a word on how to run one.
/// NotFound: the folder cannot be read, or has none.
Result<std::string> list_examples(const std::string& folder);

/// A script, and its sample output where there is one. NotFound: none of this name.
Result<std::string> show_example(const std::string& folder, const std::string& name);

/// Prints the list when `name` is empty, else the script; the exit status.
int print_examples(const std::string& name);

}  // namespace ringside::cli
