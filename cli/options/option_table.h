// dtrace's options by name: which sources may set each option, and how its value is read. The
// sources also say when: setopt() while tracing runs, a pragma before. -x, pragmas, saved programs
// and setopt() all go through this table (settings.cc).
#pragma once

#include <span>
#include <string_view>

#include "cli/options/settings.h"

namespace ringside::cli {

struct OptionRow {
  std::string_view name;
  unsigned sources = 0;  // OptionSources
  Result<void> (*set)(Settings&, std::string_view value) = nullptr;
};

/// An option of dtrace's that can mean nothing here.
struct MeaninglessOption {
  std::string_view name;
  std::string_view reason;  // for the user, with what to do instead where there is something
};

std::span<const OptionRow> option_rows();
std::span<const MeaninglessOption> meaningless_options();

}  // namespace ringside::cli
