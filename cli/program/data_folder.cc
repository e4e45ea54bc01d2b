#include "cli/program/data_folder.h"

#include <filesystem>
#include <system_error>

namespace ringside::cli {

std::vector<std::string> data_folder_places(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  const fs::path folder = program.parent_path();
  return {(folder / name).lexically_normal().string(),
          (folder / "../share/ringside" / name).lexically_normal().string()};
}

std::string data_folder(std::string_view name) {
  std::error_code failure;
  for (const std::string& place : data_folder_places(name)) {
    if (std::filesystem::is_directory(place, failure)) return place;
  }
  return {};
}

}  // namespace ringside::cli
