// D files that the compiler reads before a program (libraries), and the folders of files that come
// with ringside.
// Does not: parse them, or decide which can be used (the compiler does).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/options/settings.h"
#include "dif/d/compile.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// Who reads the libraries: a program, or the tracer, which publishes the probes that they define.
enum class LibraryReader : std::uint8_t { Program, Tracer };

/// All *.d of the system's folder (-x syslibdir, else `own_folder`; none with -x nolibs), then of
/// each -L folder; by name within a folder. A program needs none of the system's provider_*.d,
/// which define probes and nothing else: to parse them would take as long as all the others. A -L
/// folder that cannot be read is an error.
Result<std::vector<d::LibrarySource>> load_libraries(const Settings& settings,
                                                     const std::string& own_folder,
                                                     LibraryReader reader);

/// A line for the user if load_libraries() found no system libraries, and the user neither declined
/// them (-x nolibs) nor named others. It has the folders that were searched, and how to name the
/// right one. Otherwise empty.
std::string missing_libraries(const Settings& settings, const std::string& own_folder,
                              const std::vector<std::string>& places);

/// The files that end in .d, in no order; `failure` is set if not all could be found.
std::vector<std::filesystem::path> d_files(const std::string& folder, std::error_code& failure);

/// All of a file; empty, with errno, when it cannot be read.
std::optional<std::string> text_of(const std::filesystem::path& path);

/// The folder `name` (lib, examples) beside the program, or in share/ringside of the tree that it
/// is installed in. Empty when neither is there.
std::string data_folder(std::string_view name);

/// Where data_folder() looks, in that order; empty where the program cannot tell where it lies.
std::vector<std::string> data_folder_places(std::string_view name);

}  // namespace ringside::cli
