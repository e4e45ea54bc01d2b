// First inputs for the fuzz targets: D programs, and what they compile to. Used by make_seeds and
// by seeds_test. Does not write files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace ringside::fuzz {

/// A few programs of ours, then every script below the folder `golden`.
std::vector<std::string> programs(const std::filesystem::path& golden);

/// The program as DOF; empty when it does not compile against the compiler tests' made-up kernel.
std::vector<std::byte> compiled(const std::string& source);

}  // namespace ringside::fuzz
