// In this file, top to bottom: style, the maps to draw, their scales, labels, one map, the legend,
// the document.
#include "cli/pictures/heat_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "cli/pictures/svg.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

using HeatSeries = HeatAggregation::Series;

constexpr double kHeatWidth = 1200, kHeatMargin = 14, kHeatGap = 26;
constexpr double kMapTitle = 24, kMapLegend = 40,
                 kMapAxis = 22;                        // heights: of a map's title, below it
constexpr double kHighestRow = 16, kRowsHeight = 256;  // of a row; of the rows of a map, about
constexpr std::size_t kMostMapRows = 128, kMostMapColumns = 400;  // more are drawn together
constexpr std::size_t kHeatShades = 8;
constexpr double kNsPerSecond = 1e9;

constexpr std::string_view kHeatStyle = R"(
.plot { fill: #f1f1ee; }
.h0 { fill: #d3e3f3; } .h1 { fill: #b5d0ea; } .h2 { fill: #8fb8de; } .h3 { fill: #689dcf; }
.h4 { fill: #4582bd; } .h5 { fill: #2c68a6; } .h6 { fill: #194e87; } .h7 { fill: #0b3563; }
.cell:hover { stroke: #d9634f; stroke-width: 1; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
@media (prefers-color-scheme: dark) {
  .plot { fill: #26272a; }
  .h0 { fill: #23364d; } .h1 { fill: #29486b; } .h2 { fill: #305d8d; } .h3 { fill: #3e77ae; }
  .h4 { fill: #5a93c8; } .h5 { fill: #80b0dc; } .h6 { fill: #abcded; } .h7 { fill: #dcecfb; }
}
)";

/// The rows and columns that the maps of an aggregation share.
struct MapScale {
  const HeatAggregation* aggregation = nullptr;
  std::vector<std::int64_t> buckets;  // their values, ascending, without those outside all data
  std::size_t rows_together = 1, columns_together = 1;
  std::uint64_t most = 1;  // counted by one cell as it is drawn

  std::size_t rows() const { return (buckets.size() + rows_together - 1) / rows_together; }
  double row_height() const {
    return std::clamp(kRowsHeight / static_cast<double>(rows()), 2.0, kHighestRow);
  }
  double height() const { return row_height() * static_cast<double>(rows()); }
};

struct HeatSeriesMap {
  std::string title;
  const HeatSeries* series = nullptr;
  std::size_t scale = 0;
};

/// DrawnCells as they are drawn: counts by row and column.
using DrawnCells = std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>;

DrawnCells drawn_cells(const MapScale& scale, const HeatSeries& series) {
  DrawnCells cells;
  for (const auto& cell : series.cells) {
    const auto at = std::ranges::lower_bound(scale.buckets, cell.bucket) - scale.buckets.begin();
    std::uint64_t& count = cells[{static_cast<std::size_t>(at) / scale.rows_together,
                                  cell.column / scale.columns_together}];
    count = saturated_sum(count, cell.count);
  }
  return cells;
}

MapScale scale_of(const HeatAggregation& aggregation) {
  MapScale scale;
  scale.aggregation = &aggregation;
  std::int64_t least = INT64_MAX, largest = INT64_MIN;
  for (const auto& [key, series] : aggregation.series) {
    for (const auto& cell : series.cells) {
      least = std::min(least, cell.bucket);
      largest = std::max(largest, cell.bucket);
    }
  }
  for (const auto& [bucket, end] : aggregation.ends) {
    if (bucket >= least && bucket <= largest) scale.buckets.push_back(bucket);
  }
  // The last bucket of all has none after it.
  if (scale.buckets.empty() || scale.buckets.back() != largest) scale.buckets.push_back(largest);
  scale.rows_together = (scale.buckets.size() + kMostMapRows - 1) / kMostMapRows;
  scale.columns_together =
      std::max<std::size_t>((aggregation.times.size() + kMostMapColumns - 1) / kMostMapColumns, 1);
  for (const auto& [key, series] : aggregation.series) {
    for (const auto& [at, count] : drawn_cells(scale, series)) {
      scale.most = std::max(scale.most, count);
    }
  }
  return scale;
}

std::string grouped(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  std::string text = value < 0 ? "-" : "";
  append_grouped(text, value < 0 ? 0 - bits : bits);
  return text;
}

/// The first and the last value that a row counts, as text; an open end as "< 0".
std::string range_text(const MapScale& scale, std::size_t row) {
  const HeatAggregation& from = *scale.aggregation;
  const std::size_t first = row * scale.rows_together;
  const std::size_t last = std::min(first + scale.rows_together, scale.buckets.size()) - 1;
  const std::int64_t lowest = scale.buckets[first], highest = scale.buckets[last];
  if (const auto open = from.open.find(lowest); open != from.open.end() && first == last) {
    return open->second;
  }
  const bool mirrored = from.is_quantize && lowest < 0;
  std::int64_t begin = lowest, end = INT64_MAX;
  if (mirrored && (__builtin_mul_overflow(lowest, 2, &begin) || ++begin == INT64_MIN + 1)) {
    begin = INT64_MIN;
  }
  if (from.is_quantize && highest < 0) {
    end = highest;
  } else if (const auto next = from.ends.find(highest); next != from.ends.end()) {
    end = next->second - 1;
  }
  return begin == end ? grouped(begin) : grouped(begin) + " .. " + grouped(end);
}

/// The label at a row: the value that its lowest bucket is named by.
std::string row_label(const MapScale& scale, std::size_t row) {
  const std::int64_t value = scale.buckets[row * scale.rows_together];
  const auto open = scale.aggregation->open.find(value);
  return open != scale.aggregation->open.end() ? open->second : grouped(value);
}

/// A round number of seconds that divides a time into `most` parts at most.
double time_step(double seconds, double most) {
  const double least = std::max(seconds / most, 1e-9);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * 0.999) return factor * power;
  }
  return 10 * power;
}

class HeatDocument {
 public:
  explicit HeatDocument(const HeatTable& table);
  HeatPicture draw();

 private:
  double seconds(std::uint64_t time) const {
    return time < begin_ ? 0 : static_cast<double>(time - begin_) / kNsPerSecond;
  }
  double x_of(double time, double left, double width) const { return left + time / whole_ * width; }
  /// Where a column begins and ends, in seconds.
  std::pair<double, double> times_of(const MapScale& scale, std::size_t column) const;
  void find_times();
  void append_map(const HeatSeriesMap& map, double left, double top, double width);
  void append_rows(const MapScale& scale, double left, double top);
  void append_axis(double left, double y, double width);
  void append_cell(const MapScale& scale, std::pair<std::size_t, std::size_t> at,
                   std::uint64_t count, double left, double top, double width);
  void append_legend(const MapScale& scale, double top);
  void append_text(std::string_view style, double x, double y, std::string_view text);
  double label_width() const;

  HeatPicture picture_;
  std::vector<MapScale> scales_;
  std::vector<std::string> titles_;  // by scale
  std::vector<HeatSeriesMap> maps_;  // by scale, in order
  std::uint64_t begin_ = UINT64_MAX, end_ = 0;
  double whole_ = 1;  // seconds from begin_ to end_
  std::string body_;
};

HeatDocument::HeatDocument(const HeatTable& table) {
  for (const auto& [id, aggregation] : table.aggregations()) {
    std::vector<HeatSeriesMap> maps;
    for (const auto& [key, series] : aggregation.series) {
      if (!series.cells.empty()) maps.push_back({key, &series, scales_.size()});
    }
    if (maps.empty()) continue;
    maps_.insert(maps_.end(), maps.begin(), maps.end());
    scales_.push_back(scale_of(aggregation));
    titles_.push_back(table.several_machines() && !id.first.empty() ? id.second + ", " + id.first
                                                                    : id.second);
  }
  picture_.maps = maps_.size();
  if (maps_.size() > kMostMaps) {
    std::ranges::stable_sort(maps_, std::greater(),
                             [](const HeatSeriesMap& map) { return map.series->total; });
    maps_.resize(kMostMaps);
    picture_.left_out = picture_.maps - kMostMaps;
  }
  std::ranges::stable_sort(maps_, [](const HeatSeriesMap& a, const HeatSeriesMap& b) {
    return std::pair(a.scale, b.series->total) < std::pair(b.scale, a.series->total);
  });
  find_times();
}

/// The first column of an aggregation is taken to be as long as its second one.
void HeatDocument::find_times() {
  picture_.single_column = !scales_.empty();
  for (const MapScale& scale : scales_) {
    const auto& times = scale.aggregation->times;
    const std::uint64_t length = times.size() > 1 ? times[1] - times[0] : 0;
    begin_ = std::min(begin_, times.front() - std::min(length, times.front()));
    end_ = std::max(end_, times.back());
    picture_.single_column = picture_.single_column && times.size() == 1;
  }
  if (end_ <= begin_) begin_ = end_ - std::min<std::uint64_t>(end_, 1'000'000'000);
  whole_ = std::max(seconds(end_), 1e-9);
}

std::pair<double, double> HeatDocument::times_of(const MapScale& scale, std::size_t column) const {
  const auto& times = scale.aggregation->times;
  const std::size_t first = column * scale.columns_together;
  const std::size_t last = std::min(first + scale.columns_together, times.size()) - 1;
  const std::uint64_t length = times.size() > 1 ? times[1] - times[0] : times[0];
  const std::uint64_t begin = first > 0 ? times[first - 1] : times[0] - std::min(length, times[0]);
  return {seconds(begin), seconds(times[last])};
}

void HeatDocument::append_text(std::string_view style, double x, double y, std::string_view text) {
  fmt::format_to(std::back_inserter(body_), "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">", style,
                 x, y);
  append_escaped(body_, text);
  body_ += "</text>\n";
}

double HeatDocument::label_width() const {
  std::size_t longest = 4;
  for (const MapScale& scale : scales_) {
    for (std::size_t row = 0; row < scale.rows(); ++row) {
      longest = std::max(longest, characters_in(row_label(scale, row)));
    }
  }
  return static_cast<double>(std::min<std::size_t>(longest, 22)) * kCharacterWidth + 8;
}

void HeatDocument::append_rows(const MapScale& scale, double left, double top) {
  const double row_height = scale.row_height();
  const auto apart = static_cast<std::size_t>(std::ceil(kHighestRow / row_height));
  for (std::size_t row = 0; row < scale.rows(); row += apart) {
    const double bottom = top + scale.height() - static_cast<double>(row) * row_height;
    append_text("quiet end", left - 6, bottom - std::max(row_height / 2, 2.0) + 4,
                shortened(row_label(scale, row), 22));
  }
}

void HeatDocument::append_axis(double left, double y, double width) {
  const double step = time_step(whole_, width / 90);
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  for (double time = 0; time <= whole_ * 1.0001; time += step) {
    append_text("quiet middle", x_of(time, left, width), y + 16,
                fmt::format("{:.{}f} s", time, std::min(decimals, 9)));
  }
}

void HeatDocument::append_cell(const MapScale& scale, std::pair<std::size_t, std::size_t> at,
                               std::uint64_t count, double left, double top, double width) {
  const auto [begin, end] = times_of(scale, at.second);
  const double height = scale.row_height();
  const double x = x_of(begin, left, width), wide = x_of(end, left, width) - x;
  const double y = top + scale.height() - static_cast<double>(at.first + 1) * height;
  const double part = scale.most == 1 ? 1
                                      : std::log(static_cast<double>(count)) /
                                            std::log(static_cast<double>(scale.most));
  const auto shade = std::min(kHeatShades - 1, static_cast<std::size_t>(part * kHeatShades));
  fmt::format_to(std::back_inserter(body_), "<rect class=\"cell h{}\" x=\"", shade);
  append_pixels(body_, x);
  body_ += "\" y=\"";
  append_pixels(body_, y);
  body_ += "\" width=\"";
  append_pixels(body_, wide > 3 ? wide - 0.6 : wide);
  body_ += "\" height=\"";
  append_pixels(body_, height > 4 ? height - 0.6 : height);
  body_ += "\"><title>";
  append_escaped(body_, range_text(scale, at.first));
  if (picture_.single_column) {
    body_ += "\nall of the trace\n";
  } else {
    fmt::format_to(std::back_inserter(body_), "\n{:.3f} .. {:.3f} s\n", begin, end);
  }
  append_grouped(body_, count);
  body_ += "</title></rect>\n";
}

void HeatDocument::append_map(const HeatSeriesMap& map, double left, double top, double width) {
  const MapScale& scale = scales_[map.scale];
  std::string total;
  append_grouped(total, map.series->total);
  const auto room = static_cast<std::size_t>(std::max(0.0, width / kCharacterWidth - 30));
  append_text("", left, top + 14,
              fmt::format("{}{}{} values", shortened(map.title, room),
                          map.title.empty() ? "" : ": ", total));
  fmt::format_to(
      std::back_inserter(body_),
      "<rect class=\"plot\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", left,
      top + kMapTitle, width, scale.height());
  append_rows(scale, left, top + kMapTitle);
  for (const auto& [at, count] : drawn_cells(scale, *map.series)) {
    append_cell(scale, at, count, left, top + kMapTitle, width);
  }
  if (!picture_.single_column) append_axis(left, top + kMapTitle + scale.height(), width);
}

/// The least count of each shade that a count can have.
void HeatDocument::append_legend(const MapScale& scale, double top) {
  double x = kHeatMargin;
  append_text("quiet", x, top, "values in a cell, from:");
  x += 24 * kCharacterWidth;
  for (std::size_t shade = scale.most == 1 ? kHeatShades - 1 : 0; shade < kHeatShades; ++shade) {
    const double power = std::pow(static_cast<double>(scale.most),
                                  static_cast<double>(shade) / static_cast<double>(kHeatShades));
    const double next = std::pow(static_cast<double>(scale.most),
                                 static_cast<double>(shade + 1) / static_cast<double>(kHeatShades));
    const auto least = static_cast<std::uint64_t>(std::ceil(power - 1e-9));
    if (shade + 1 < kHeatShades && static_cast<double>(least) >= next) continue;  // no whole number
    std::string number;
    append_grouped(number, scale.most == 1 ? 1 : least);
    fmt::format_to(std::back_inserter(body_),
                   "<rect class=\"h{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\"/>\n",
                   shade, x, top - 11);
    append_text("quiet", x + 18, top, number);
    x += 18 + (static_cast<double>(number.size()) + 2) * kCharacterWidth;
  }
}

HeatPicture HeatDocument::draw() {
  const double labels = label_width();
  double top = kHeatMargin;
  for (std::size_t n = 0; n < scales_.size(); ++n) {
    const auto first = std::ranges::find(maps_, n, &HeatSeriesMap::scale);
    const auto count =
        static_cast<std::size_t>(std::ranges::count(maps_, n, &HeatSeriesMap::scale));
    if (count == 0) continue;
    append_text("title", kHeatMargin, top + 14, titles_[n]);
    append_legend(scales_[n], top + 36);
    top += kMapLegend + 6;
    const std::size_t across = count > 1 ? 2 : 1;
    const double cell = (kHeatWidth - 2 * kHeatMargin) / static_cast<double>(across);
    for (std::size_t i = 0; i < count; ++i) {
      append_map(*(first + static_cast<std::ptrdiff_t>(i)),
                 kHeatMargin + labels + cell * static_cast<double>(i % across), top,
                 cell - labels - 2 * kHeatMargin);
      if (i % across == across - 1 || i + 1 == count) {
        top += kMapTitle + scales_[n].height() + kMapAxis + 8;
      }
    }
    top += kHeatGap;
  }
  if (picture_.left_out != 0) {
    append_text("quiet", kHeatMargin, top,
                fmt::format("{} of {} maps are drawn: those with the most values", kMostMaps,
                            picture_.maps));
    top += kHeatGap;
  }
  begin_svg(picture_.svg, kHeatWidth, top, titles_.empty() ? "" : titles_.front(), kHeatStyle);
  picture_.svg += body_;
  picture_.svg += "</svg>\n";
  return std::move(picture_);
}

}  // namespace

HeatPicture heat_svg(const HeatTable& table) {
  return HeatDocument(table).draw();
}

}  // namespace ringside::cli
