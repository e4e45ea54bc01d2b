// The report of -v on a program's stability, and with -l on a probe's, in dtrace's layout.
#pragma once

#include <string>
#include <string_view>

#include "dif/program/stability.h"

namespace ringside::cli {

/// Under a heading: names, data and dependency class, a line each.
std::string attribute_lines(std::string_view heading, const dif::Attributes& attributes);

/// One program's report. `label` is what it is announced as, without quotes: "description BEGIN".
std::string stability_report(std::string_view label, const dif::Attributes& description,
                             const dif::Attributes& statements);

}  // namespace ringside::cli
