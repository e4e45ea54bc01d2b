// Finds the folders of files that come with ringside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringside::cli {

/// The folder `name` (lib, examples) beside the program, or in share/ringside of the tree that it
/// is installed in. Empty when neither is there.
std::string data_folder(std::string_view name);

/// Where data_folder() looks, in that order; empty where the program cannot tell where it lies.
std::vector<std::string> data_folder_places(std::string_view name);

}  // namespace ringside::cli
