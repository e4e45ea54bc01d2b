// Diagnoses a health report: why the guest probably hangs, the likeliest cause first. It only
// applies rules to the facts of the report.
// Used by examine(). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

/// Never empty.
std::vector<Cause> diagnose(const HealthReport& report);

/// "3.2 s", "120 ms".
std::string duration_text(std::uint64_t nanoseconds);

}  // namespace ringside::guest_linux
