#include "cli/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/messages/messages.h"
#include "cli/program/libraries.h"
#include "vmm/base/similar_name.h"

namespace ringside::cli {
namespace {

namespace fs = std::filesystem;

/// The purpose in the line " * NAME.d - what it shows."; empty when there is none.
std::string purpose_of(const std::string& script, const std::string& name) {
  const std::string start = fmt::format(" * {}.d - ", name);
  const std::size_t at = script.find(start);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + start.size();
  std::string purpose = script.substr(begin, script.find('\n', begin) - begin);
  if (purpose.ends_with('.')) purpose.pop_back();
  return purpose;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const fs::path& file : d_files(folder, failure)) names.push_back(file.stem());
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::string> list_examples(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  if (names.empty()) {
    return fail(
        ErrorCode::NotFound,
        "examples: the scripts are not where they are installed to: share/ringside/examples "
        "beside the program's bin");
  }
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string text;
  for (const std::string& name : names) {
    const auto script = text_of(fs::path(folder) / (name + ".d"));
    text += fmt::format("{:<{}}  {}\n", name, width, purpose_of(script.value_or(""), name));
  }
  return text + fmt::format(
                    "\nringside examples NAME shows one; to run it: ringside --attach "
                    "TARGET -s {}/NAME.d\n",
                    folder);
}

Result<std::string> show_example(const std::string& folder, const std::string& name) {
  const std::string stem = name.ends_with(".d") ? name.substr(0, name.size() - 2) : name;
  const std::vector<std::string> names = names_in(folder);
  if (!std::ranges::binary_search(names, stem)) {
    const std::string nearest = similar_name(stem, names, std::identity());
    return fail(ErrorCode::NotFound, fmt::format("examples: no script of the name '{}'{}", name,
                                                 nearest.empty() ? "; ringside examples lists them"
                                                                 : did_you_mean(nearest)));
  }
  const fs::path path = fs::path(folder) / stem;
  std::string text = text_of(path.string() + ".d").value_or("");
  if (const auto sample = text_of(path.string() + ".txt"))
    text += "\n/* Sample output:\n\n" + *sample + "*/\n";
  return text;
}

int print_examples(const std::string& name) {
  const std::string folder = data_folder("examples");
  const auto text = name.empty() ? list_examples(folder) : show_example(folder, name);
  if (!text) {
    say(text.error().message);
    return kExitFailure;
  }
  const bool written = std::fputs(text->c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? kExitOk : kExitFailure;
}

}  // namespace ringside::cli
