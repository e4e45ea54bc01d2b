// Chooses the D libraries for a program, and puts them in order. Used by compile.cc; reads no
// files.
#pragma once

#include <string_view>
#include <vector>

#include "dif/d/compile.h"
#include "dif/d/syntax/diagnostic.h"

namespace ringside::d {

/// Indices of the libraries whose `#pragma D depends_on` lines are all met, each after those that
/// it depends on. Complains about libraries that depend on each other in a circle.
Checked<std::vector<std::size_t>> library_order(const std::vector<LibrarySource>& libraries,
                                                Environment& environment);

/// The name of a library for depends_on: its file, without the folder.
std::string_view library_name(const LibrarySource& library);
/// The names of the libraries that it depends on itself.
std::vector<std::string_view> libraries_needed_by(const LibrarySource& library);

}  // namespace ringside::d
