#include "cli/program/libraries.h"

#include <dlfcn.h>
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

/// libringside, where this code is in it; else empty.
static fs::path own_library() {
  static const char here = 0;
  Dl_info info{};
  std::error_code failure;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  fs::path file = fs::canonical(info.dli_fname, failure);
  return file.filename().string().starts_with("libringside.") ? file : fs::path();
}

std::vector<std::string> data_folder_places(std::string_view name) {
  const fs::path library = own_library();
  std::error_code failure;
  const fs::path file = library.empty() ? fs::read_symlink("/proc/self/exe", failure) : library;
  if (failure) return {};
  // In the build folder the library is one folder below the command; installed, it is in PREFIX/lib
  // or PREFIX/lib/ARCHITECTURE, and the command in PREFIX/bin.
  const std::vector<std::string_view> ways =
      library.empty()
          ? std::vector<std::string_view>{".", "../share/ringside"}
          : std::vector<std::string_view>{"..", "../share/ringside", "../../share/ringside"};
  std::vector<std::string> places;
  places.reserve(ways.size());
  for (const std::string_view way : ways) {
    places.push_back((file.parent_path() / way / name).lexically_normal().string());
  }
  return places;
}

std::string data_folder(std::string_view name) {
  std::error_code failure;
  for (const std::string& place : data_folder_places(name)) {
    if (fs::is_directory(place, failure)) return place;
  }
  return {};
}

}  // namespace ringside::cli
