// D libraries: the *.d files that the compiler reads before a program.
// Does not: parse them, or decide which can be used (the compiler does).
#pragma once

#include <string>
#include <vector>

#include "cli/options/settings.h"
#include "dif/d/compile.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Where ours lie when nobody says otherwise: lib beside the program, or share/ringside/lib of the
/// tree that it is installed in. Empty when neither is there.
std::string own_library_folder();

/// All *.d of the system's folder (-x syslibdir, else `own_folder`; none with -x nolibs), then of
/// each -L folder; by name within a folder. A -L folder that cannot be read is an error.
Result<std::vector<d::LibrarySource>> load_libraries(const Settings& settings,
                                                     const std::string& own_folder);

}  // namespace ringside::cli
