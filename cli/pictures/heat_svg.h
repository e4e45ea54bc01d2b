// Heat maps as one SVG without scripts: time to the right, values upwards, a cell the darker the
// more values it counts. Each cell's title has its range, time and count.
// Does not: collect distributions (heat_table.h).
#pragma once

#include <cstdint>
#include <string>

#include "cli/pictures/heat_table.h"

namespace ringside::cli {

inline constexpr std::size_t kMostMaps = 12;  // of a picture; those with the largest counts stay

struct HeatPicture {
  std::string svg;
  std::size_t maps = 0, left_out = 0;  // maps: that there are to draw
  bool single_column = false;          // every aggregation was printed once only
};

/// Draws a map for each key that has counted anything.
HeatPicture heat_svg(const HeatTable& table);

}  // namespace ringside::cli
