#include "cli/program/d_files.h"

#include <fstream>
#include <sstream>

namespace ringside::cli {

namespace fs = std::filesystem;

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

}  // namespace ringside::cli
