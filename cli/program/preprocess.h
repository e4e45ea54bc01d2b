// -C: runs the system's C preprocessor over a D program, with dtrace's own definitions.
// Does not: understand line markers; they stay in the text (sources.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// The arguments for cpp. Definitions as dtrace(1) lists them: __SUNW_D, __SUNW_D_VERSION, and
/// `system`_`release` of this host ("Linux", "6.1.0-13-amd64"); those of the machine and of Unix
/// are cpp's own.
std::vector<std::string> preprocessor_arguments(const PreprocessorSettings& settings,
                                                std::string_view folder, std::string_view system,
                                                std::string_view release);

/// `text` preprocessed. `file` is what messages call it; "..." includes are looked for beside it.
/// cpp's own complaints go to stderr; the error is one line.
Result<std::string> preprocess(std::string_view text, const std::string& file,
                               const PreprocessorSettings& settings);

}  // namespace ringside::cli
