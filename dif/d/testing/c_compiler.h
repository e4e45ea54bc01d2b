// The answers of this machine's C compiler, for tests that compare D with C.
// Does not: know D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringside::d {

/// Compiles a C program, where overflow wraps and without warnings, runs it, and returns the
/// numbers that it prints, in order; empty when there is no compiler. `flags`: more of the
/// compiler's.
std::vector<std::int64_t> run_c(const std::string& source, const std::string& flags = {});

/// The number in an environment variable, else `otherwise`.
std::size_t setting(const char* name, std::size_t otherwise);

}  // namespace ringside::d
