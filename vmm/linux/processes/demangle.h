// Names of C++, Rust and the like as their programmers wrote them.
// Hostile input: the names are a guest's. Used where names of its processes are printed.
#pragma once

#include <string>
#include <string_view>

namespace ringside::guest_linux {

/// The name itself where no language's compiler made it, or where one of the two has more than
/// 1,024 characters.
std::string demangle(std::string_view name);

}  // namespace ringside::guest_linux
