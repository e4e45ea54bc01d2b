// A trace's structured records (docs/output-schema.json) as a file for Perfetto's UI
// (perfetto_trace.h): slices, instants, and counters of aggregations.
// Does not: trust records. A saved one may come from anybody.
#pragma once

#include <memory>

#include "cli/pictures/pictures.h"

namespace ringside::cli {

std::unique_ptr<Picture> make_perfetto_picture();

/// NotFound: no clause of the program records anything, and it has no aggregations.
Result<void> check_perfetto(const dif::Program& program);

}  // namespace ringside::cli
