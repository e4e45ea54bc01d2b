#include "cli/options/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/options/option_table.h"

namespace ringside::cli {

std::string language_version_text() {
  const auto [major, minor, micro] = kLanguageVersion;
  return micro == 0 ? fmt::format("{}.{}", major, minor)
                    : fmt::format("{}.{}.{}", major, minor, micro);
}

std::optional<OutputFormat> parse_output_format(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, OutputFormat>, 6> kNames{{
      {"text", OutputFormat::Text},
      {"json", OutputFormat::Json},
      {"jsonl", OutputFormat::JsonLines},
      {"xml", OutputFormat::Xml},
      {"html", OutputFormat::Html},
      {"csv", OutputFormat::Csv},
  }};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

namespace {

/// What has done its work when a program's own options are read.
bool used_before_program(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames{"bootargs", "channel", "cppargs",   "cpphdrs",
                                                    "cpppath",  "define",  "incdir",    "ldpath",
                                                    "libdir",   "stdc",    "syslibdir", "undef"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          SettingPhase phase) {
  const auto rows = option_rows();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const OptionRow& candidate) { return candidate.name == name; });
  if (row == rows.end()) {
    for (const MeaninglessOption& option : meaningless_options()) {
      if (option.name == name) return fail(ErrorCode::Unsupported, std::string(option.reason));
    }
    return fail(ErrorCode::Usage, "Invalid option name");
  }
  if (phase == SettingPhase::Running && !row->dynamic) {
    return fail(ErrorCode::Unsupported, "Operation illegal when tracing is active");
  }
  if (phase == SettingPhase::Program && used_before_program(name)) {
    return fail(ErrorCode::Unsupported, "Option cannot be used from within a D program");
  }
  return row->set(settings, value);
}

Result<void> apply_option_argument(Settings& settings, std::string_view argument) {
  const std::size_t equals = std::min(argument.find('='), argument.size());
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
  auto done = apply_option(settings, name, value, SettingPhase::Start);
  if (done) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("failed to set -x {}: {}", name, done.error().message));
}

}  // namespace ringside::cli
