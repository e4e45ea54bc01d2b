// How long each phase of a run takes, for -x debug.
#pragma once

#include <chrono>
#include <string_view>

#include "cli/options/settings.h"

namespace ringside::cli {

using Clock = std::chrono::steady_clock;

/// Says on stderr how long ago `since` was, under -x debug: "compiled in 1.5 ms".
void report_time(const Settings& settings, std::string_view phase, Clock::time_point since);

}  // namespace ringside::cli
