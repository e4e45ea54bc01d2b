#include "cli/program/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringside::cli {
namespace {

namespace fs = std::filesystem;

Result<void> load_folder(const std::string& folder, std::vector<d::LibrarySource>& libraries) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) return {};  // dtrace passes over it, too
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    if (at->path().extension() == ".d") files.push_back(at->path());
  }
  if (failure) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to open library folder {}: {}", folder, failure.message()));
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file.is_open() || file.bad()) {
      return fail(ErrorCode::NotFound, fmt::format("failed to read library {}", path.string()));
    }
    libraries.push_back({path.string(), text.str()});
  }
  return {};
}

}  // namespace

std::string own_library_folder() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  const fs::path folder = program.parent_path();
  for (const fs::path& candidate : {folder / "lib", folder / "../share/ringside/lib"}) {
    if (fs::is_directory(candidate, failure)) return candidate.lexically_normal().string();
  }
  return {};
}

Result<std::vector<d::LibrarySource>> load_libraries(const Settings& settings,
                                                     const std::string& own_folder) {
  std::vector<d::LibrarySource> libraries;
  const std::string& system =
      settings.system_library_folder.empty() ? own_folder : settings.system_library_folder;
  if (!settings.no_libraries && !system.empty()) TRY(load_folder(system, libraries));
  for (const std::string& folder : settings.library_folders) TRY(load_folder(folder, libraries));
  return libraries;
}

}  // namespace ringside::cli
