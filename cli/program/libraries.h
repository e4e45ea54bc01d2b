// D libraries: the *.d files that the compiler reads before a program.
// Does not: parse them, or decide which can be used (the compiler does).
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "dif/d/compile.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// All *.d of the system's folder (-x syslibdir, else `own_folder`; none with -x nolibs), then of
/// each -L folder; by name within a folder. A -L folder that cannot be read is an error.
Result<std::vector<d::LibrarySource>> load_libraries(const Settings& settings,
                                                     const std::string& own_folder);

/// A line for the user if load_libraries() found no system libraries, and the user neither declined
/// them (-x nolibs) nor named others. It has the folders that were searched, and how to name the
/// right one. Otherwise empty.
std::string missing_libraries(const Settings& settings, const std::string& own_folder,
                              const std::vector<std::string>& places);

}  // namespace ringside::cli
