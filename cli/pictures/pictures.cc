// In this file, top to bottom: which aggregations can be drawn, folded stacks, flame graphs,
// speedscope's files, heat maps, the choice. Perfetto's: perfetto_records.h.
#include "cli/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cli/pictures/flame_svg.h"
#include "cli/pictures/heat_svg.h"
#include "cli/pictures/heat_table.h"
#include "cli/pictures/perfetto_records.h"
#include "cli/pictures/stack_counts.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kMakeStacks =
    "a count() or sum() whose key ends in stack() or ustack(): @[execname, ustack(), stack()] = "
    "count()";
constexpr std::string_view kMakeDistribution =
    "a quantize(), lquantize() or llquantize(), printed at each tick: @[execname] = "
    "quantize(arg1); tick-1s { printa(@); }";

/// "@a, @b"
std::string list_of(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

tl::unexpected<Error> nothing_to_draw(const std::set<std::string>& others, std::string_view make) {
  return fail(ErrorCode::NotFound,
              fmt::format("there is nothing to draw{}; a picture needs {}",
                          others.empty() ? "" : " in " + list_of(others), make));
}

class StackPicture : public Picture {
 public:
  Result<void> add(const Tree& record) override { return table_.add(record); }
  Result<Drawn> draw() override {
    const std::vector<StackCounts> all = table_.counts();
    if (all.empty()) return nothing_to_draw(table_.others(), kMakeStacks);
    Drawn drawn{text_of(all), {}};
    if (table_.negatives() != 0) {
      drawn.notes.push_back(
          fmt::format("{} keys with a value below 0 are not in the picture", table_.negatives()));
    }
    return drawn;
  }

 protected:
  virtual std::string text_of(const std::vector<StackCounts>& all) = 0;

  /// "@a, web1"
  std::string title_of(const StackCounts& counts) const {
    return table_.several_machines() && !counts.machine.empty()
               ? counts.name + ", " + counts.machine
               : counts.name;
  }

  StackTable table_;
};

/// A line for each stack: "root;caller;callee 12".
class FoldedStacks final : public StackPicture {
  std::string text_of(const std::vector<StackCounts>& all) override {
    const bool several = std::ranges::any_of(
        all, [&](const StackCounts& counts) { return counts.name != all.front().name; });
    std::string text;
    for (const StackCounts& counts : all) {
      std::string root;
      if (table_.several_machines() && !counts.machine.empty()) {
        root += key_text(counts.machine) + ';';
      }
      if (several) root += counts.name + ';';
      for (const auto& sample : counts.samples) {
        text += root;
        for (const std::uint32_t frame : sample.frames)
          text.append(table_.names()[frame].text) += ';';
        text.back() = ' ';
        fmt::format_to(std::back_inserter(text), "{}\n", sample.count);
      }
    }
    return text;
  }
};

class FlamePicture final : public StackPicture {
  std::string text_of(const std::vector<StackCounts>& all) override {
    std::vector<FlameGraph> graphs;
    graphs.reserve(all.size());
    for (const StackCounts& counts : all) graphs.push_back({title_of(counts), counts.samples, {}});
    return flame_svg(graphs, table_.names());
  }
};

/// Two runs of one program: the aggregations are joined by machine and name, the stacks by the
/// names of their frames.
class FlameDifference final : public StackPicture {
 public:
  explicit FlameDifference(StackTable before) : before_(std::move(before)) {}

 private:
  std::string text_of(const std::vector<StackCounts>& all) override {
    names_ = table_.names();
    const std::vector<std::uint32_t> ids = ids_of_earlier_names();
    const std::vector<StackCounts> earlier = before_.counts();
    std::vector<FlameGraph> graphs;
    for (const StackCounts& counts : all) {
      // A machine may have another name in each run, where there is but one.
      const auto same = std::ranges::find_if(earlier, [&](const StackCounts& each) {
        const bool machine = each.machine == counts.machine ||
                             !(before_.several_machines() || table_.several_machines());
        return each.name == counts.name && machine;
      });
      graphs.push_back(same == earlier.end() ? join(counts, {}, ids) : join(counts, *same, ids));
    }
    return flame_svg(graphs, names_);
  }

  /// By the earlier run's number of a name, the number that it has in names_.
  std::vector<std::uint32_t> ids_of_earlier_names() {
    const auto id_of = [](const FrameName& name) {
      return static_cast<char>('0' + static_cast<int>(name.kind)) + name.text;
    };
    std::unordered_map<std::string, std::uint32_t> known;
    for (std::uint32_t i = 0; i < names_.size(); ++i) known.emplace(id_of(names_[i]), i);
    std::vector<std::uint32_t> ids;
    for (const FrameName& name : before_.names()) {
      const auto [at, added] =
          known.emplace(id_of(name), static_cast<std::uint32_t>(names_.size()));
      if (added) names_.push_back(name);
      ids.push_back(at->second);
    }
    return ids;
  }

  bool comes_before(const std::vector<std::uint32_t>& a,
                    const std::vector<std::uint32_t>& b) const {
    return std::ranges::lexicographical_compare(a, b, [this](std::uint32_t x, std::uint32_t y) {
      return std::tie(names_[x].text, names_[x].kind) < std::tie(names_[y].text, names_[y].kind);
    });
  }

  FlameGraph join(const StackCounts& after, const StackCounts& before,
                  const std::vector<std::uint32_t>& ids) const {
    FlameGraph graph{title_of(after), {}, {}};
    auto now = after.samples.begin();
    auto then = before.samples.begin();
    const auto earlier_frames = [&] {
      std::vector<std::uint32_t> frames;
      for (const std::uint32_t frame : then->frames) frames.push_back(ids[frame]);
      return frames;
    };
    while (now != after.samples.end() || then != before.samples.end()) {
      std::vector<std::uint32_t> old;
      if (then != before.samples.end()) old = earlier_frames();
      const bool has_now = now != after.samples.end() &&
                           (then == before.samples.end() || !comes_before(old, now->frames));
      const bool has_then = then != before.samples.end() &&
                            (now == after.samples.end() || !comes_before(now->frames, old));
      StackCounts::Sample sample{std::move(old), 0};
      if (has_now) sample = *now;
      graph.samples.push_back(std::move(sample));
      graph.before.push_back(has_then ? then->count : 0);
      if (has_now) ++now;
      if (has_then) ++then;
    }
    return graph;
  }

  StackTable before_;
  std::vector<FrameName> names_;  // of both runs
};

/// The file format of speedscope: a profile for each aggregation, each stack a sample with its
/// count as weight.
class SpeedscopeFile final : public StackPicture {
  std::string text_of(const std::vector<StackCounts>& all) override {
    Tree frames = Tree::array();
    for (const FrameName& name : table_.names()) frames.push_back({{"name", name.text}});
    Tree profiles = Tree::array();
    for (const StackCounts& counts : all) {
      Tree samples = Tree::array(), weights = Tree::array();
      for (const auto& sample : counts.samples) {
        samples.push_back(sample.frames);
        weights.push_back(sample.count);
      }
      profiles.push_back({{"type", "sampled"},
                          {"name", title_of(counts)},
                          {"unit", "none"},
                          {"startValue", 0},
                          {"endValue", counts.total},
                          {"samples", std::move(samples)},
                          {"weights", std::move(weights)}});
    }
    const Tree file{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                    {"exporter", "ringside"},
                    {"name", title_of(all.front())},
                    {"activeProfileIndex", 0},
                    {"shared", {{"frames", std::move(frames)}}},
                    {"profiles", std::move(profiles)}};
    return file.dump(-1, ' ', false, Tree::error_handler_t::replace) + '\n';
  }
};

class HeatMap final : public Picture {
 public:
  Result<void> add(const Tree& record) override { return table_.add(record); }
  Result<Drawn> draw() override {
    HeatPicture picture = heat_svg(table_);
    if (picture.maps == 0) return nothing_to_draw(table_.others(), kMakeDistribution);
    Drawn drawn{std::move(picture.svg), {}};
    if (picture.left_out != 0) {
      drawn.notes.push_back(
          fmt::format("{} of {} maps are not in the picture: those with the "
                      "fewest values",
                      picture.left_out, picture.maps));
    }
    if (picture.single_column) {
      drawn.notes.emplace_back(
          "the heat map has one column, as nothing was printed twice; for more, print at each "
          "tick: tick-1s { printa(@); }");
    }
    return drawn;
  }

 private:
  HeatTable table_;
};

bool ends_in_stack(const dif::Aggregation& aggregation) {
  using dif::AggregateFunction;
  const bool adds_up = aggregation.function == AggregateFunction::Count ||
                       aggregation.function == AggregateFunction::Sum;
  return adds_up && !aggregation.keys.empty() && dif::is_stack(aggregation.keys.back().kind);
}

bool has_buckets(const dif::Aggregation& aggregation) {
  return dif::aggregating_info(aggregation.function).result ==
         dif::AggregatingInfo::Result::Buckets;
}

}  // namespace

std::unique_ptr<Picture> make_picture(OutputFormat format) {
  switch (format) {
    case OutputFormat::Flame: return std::make_unique<FlamePicture>();
    case OutputFormat::Speedscope: return std::make_unique<SpeedscopeFile>();
    case OutputFormat::Heatmap: return std::make_unique<HeatMap>();
    case OutputFormat::Perfetto: return make_perfetto_picture();
    default: return std::make_unique<FoldedStacks>();
  }
}

std::unique_ptr<Picture> make_difference(StackTable before) {
  return std::make_unique<FlameDifference>(std::move(before));
}

Result<void> check_drawable(OutputFormat format, const dif::Program& program) {
  if (!is_picture(format)) return {};
  if (format == OutputFormat::Perfetto) return check_perfetto(program);
  const bool heat = format == OutputFormat::Heatmap;
  if (std::ranges::any_of(program.aggregations, heat ? has_buckets : ends_in_stack)) return {};
  return fail(ErrorCode::NotFound,
              fmt::format("the program has nothing to draw; a picture needs {}",
                          heat ? kMakeDistribution : kMakeStacks));
}

}  // namespace ringside::cli
