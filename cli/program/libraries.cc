#include "cli/program/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "dif/d/libraries.h"

namespace ringside::cli {
namespace {

namespace fs = std::filesystem;

Result<void> load_folder(const std::string& folder, std::vector<d::LibrarySource>& libraries) {
  std::error_code failure;
  if (!fs::exists(folder, failure)) return {};  // dtrace passes over it, too
  std::vector<fs::path> files = d_files(folder, failure);
  if (failure) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to open library folder {}: {}", folder, failure.message()));
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    auto text = text_of(path);
    if (!text) {
      return fail(ErrorCode::NotFound, fmt::format("failed to read library {}", path.string()));
    }
    libraries.push_back({path.string(), std::move(*text)});
  }
  return {};
}

}  // namespace

Result<std::vector<d::LibrarySource>> load_libraries(const Settings& settings,
                                                     const std::string& own_folder,
                                                     LibraryReader reader) {
  std::vector<d::LibrarySource> libraries;
  const std::string& system =
      settings.system_library_folder.empty() ? own_folder : settings.system_library_folder;
  if (!settings.no_libraries && !system.empty()) TRY(load_folder(system, libraries));
  if (reader == LibraryReader::Program) {
    std::erase_if(libraries, [](const d::LibrarySource& library) {
      return d::library_name(library).starts_with("provider_");
    });
  }
  for (const std::string& folder : settings.library_folders) TRY(load_folder(folder, libraries));
  return libraries;
}

std::string missing_libraries(const Settings& settings, const std::string& own_folder,
                              const std::vector<std::string>& places) {
  if (settings.no_libraries || !own_folder.empty() || !settings.system_library_folder.empty() ||
      !settings.library_folders.empty()) {
    return {};
  }
  return fmt::format(
      "its D libraries are not found, so most of D's types, constants and args[] are missing: "
      "there "
      "is no folder {}; name theirs by -L DIR, keep the program beside its folder lib, or install "
      "it "
      "(bin/ringside, share/ringside/lib); -x nolibs does without",
      fmt::join(places, " nor "));
}

std::vector<fs::path> d_files(const std::string& folder, std::error_code& failure) {
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    if (at->path().extension() == ".d") files.push_back(at->path());
  }
  return files;
}

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  // An empty file makes the insertion "fail"; only the input's own state tells trouble.
  if (!file.is_open() || file.bad()) return std::nullopt;
  return text.str();
}

std::vector<std::string> data_folder_places(std::string_view name) {
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
    if (fs::is_directory(place, failure)) return place;
  }
  return {};
}

}  // namespace ringside::cli
