// Lists the D files of a folder, and reads one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace ringside::cli {

/// The files that end in .d, in no order; `failure` is set if not all could be found.
std::vector<std::filesystem::path> d_files(const std::string& folder, std::error_code& failure);

/// All of a file; empty, with errno, when it cannot be read.
std::optional<std::string> text_of(const std::filesystem::path& path);

}  // namespace ringside::cli
