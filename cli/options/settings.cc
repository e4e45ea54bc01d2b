#include "cli/options/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "cli/options/option_table.h"
#include "vmm/base/similar_name.h"

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

Result<void> apply_option(Settings& settings, std::string_view name, std::string_view value,
                          OptionSource source) {
  const auto rows = option_rows();
  const auto row = std::ranges::find(rows, name, &OptionRow::name);
  if (row == rows.end()) {
    for (const MeaninglessOption& option : meaningless_options()) {
      if (option.name == name) return fail(ErrorCode::Unsupported, std::string(option.reason));
    }
    return fail(ErrorCode::Usage,
                "Invalid option name" +
                    did_you_mean(similar_name(name, rows, std::mem_fn(&OptionRow::name))));
  }
  if ((row->sources & static_cast<unsigned>(source)) == 0) {
    return fail(ErrorCode::Unsupported, source == OptionSource::Setopt
                                            ? "Operation illegal when tracing is active"
                                            : "Option cannot be used from within a D program");
  }
  return row->set(settings, value);
}

Result<void> apply_option_argument(Settings& settings, std::string_view argument) {
  const std::size_t equals = std::min(argument.find('='), argument.size());
  const std::string_view name = argument.substr(0, equals);
  const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
  auto done = apply_option(settings, name, value, OptionSource::CommandLine);
  if (done) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("failed to set -x {}: {}", name, done.error().message));
}

}  // namespace ringside::cli
