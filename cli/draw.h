// `ringside draw`: a picture of a saved -O jsonl, by the same code as -O makes it during a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

#include "cli/options/options.h"
#include "cli/pictures/pictures.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Gives each line of `input` to `take`, a record each. The error names the line: "NAME: line 3:
/// ...". Invalid: a line is no record. Limit: a line is too long. Returns how many firings the
/// trace had dropped.
Result<std::uint64_t> read_records(std::istream& input, const std::string& name,
                                   const std::function<Result<void>(const Tree& record)>& take);

/// The command's exit status; prints its error.
int run_draw(const CommandLine& line);

}  // namespace ringside::cli
