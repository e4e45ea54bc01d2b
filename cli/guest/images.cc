#include "cli/guest/images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

namespace ringside::cli {
namespace {

namespace fs = std::filesystem;

/// The file of that name; empty when the folder has none.
std::string file_in(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored) ? (folder / name).string() : std::string();
}

std::optional<Image> image_in(const fs::path& folder) {
  Image image{file_in(folder, "vmlinuz"), file_in(folder, "initrd")};
  if (image.kernel.empty()) image.kernel = file_in(folder, "vmlinux");
  if (image.kernel.empty()) return std::nullopt;
  return image;
}

std::set<std::string> available(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    std::error_code failure;
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
         at.increment(failure)) {
      if (image_in(at->path())) names.insert(at->path().filename().string());
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> image_folders() {
  std::vector<std::string> folders;
  if (const char* chosen = std::getenv("RINGSIDE_IMAGES"); chosen != nullptr) {
    folders.emplace_back(chosen);
  }
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (!failure) folders.push_back((self.parent_path() / "images").string());
  return folders;
}

Result<Image> find_image(std::string_view name, const std::vector<std::string>& folders) {
  const bool plain = !name.empty() && name.find('/') == std::string_view::npos && name != "..";
  for (const std::string& folder : folders) {
    if (!plain) continue;
    if (auto image = image_in(fs::path(folder) / name)) return std::move(*image);
  }
  const std::set<std::string> names = available(folders);
  const std::string there =
      names.empty() ? "there are none yet" : fmt::format("there are {}", fmt::join(names, ", "));
  return fail(ErrorCode::NotFound,
              fmt::format("no image '{}': {}; images/build makes them", name, there));
}

}  // namespace ringside::cli
