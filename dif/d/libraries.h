// Chooses the D libraries for a program, and puts them in order. Used by compile.cc; reads no
// files.
#pragma once

#include <vector>

#include "dif/d/compile.h"
#include "dif/d/syntax/diagnostic.h"

namespace ringside::d {

/// Indices of the libraries whose `#pragma D depends_on` lines are all met, each after those that
/// it depends on. Complains about libraries that depend on each other in a circle.
Checked<std::vector<std::size_t>> library_order(const std::vector<LibrarySource>& libraries,
                                                Environment& environment);

}  // namespace ringside::d
