// The texts about the command line, made from options.def: --help, dtrace's line of usage, and the
// parts of the page ringside(1) and of the shells' completions. make_pages.cc writes the last two
// when ringside is built.
// Does not: parse options (options.h), or need anything else of ringside.
#pragma once

#include <string>
#include <string_view>

namespace ringside::cli {

/// The answer to a call without any word. `program` is the name that ringside was called by.
std::string usage_text(std::string_view program);
/// The text of --help, 80 columns wide.
std::string help_text(std::string_view program);

/// A page or a completion from its template: each @KEY@ in it is replaced by the part of that name.
/// Empty where the template has a key that there is not.
std::string fill_page(std::string_view page);

}  // namespace ringside::cli
