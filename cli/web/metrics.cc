// In this file, top to bottom: labels, one aggregation, families of samples, the whole.
#include "cli/web/metrics.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace ringside::cli {
namespace {

using Json = nlohmann::json;

/// A label's value: any text.
std::string quoted_label(std::string_view text) {
  std::string label = "\"";
  for (const char c : text) {
    if (c == '\n') {
      label += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') label += '\\';
    label += c;
  }
  return label + '"';
}

/// Samples by family: all of one have to stand together.
class Families {
 public:
  void add(const std::string& family, std::string_view type, std::string_view help,
           const std::string& sample) {
    auto [at, is_new] = families_.try_emplace(family);
    if (is_new) at->second = fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", family, type, help);
    at->second += sample + '\n';
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, samples] : families_) all += samples;
    return all + "# EOF\n";
  }

 private:
  std::map<std::string, std::string> families_;
};

/// False for keys that are no labels: stacks.
bool add_key_labels(std::string& labels, const Json& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].is_structured()) return false;
    const std::string text = keys[i].is_string() ? keys[i].get<std::string>() : keys[i].dump();
    labels += fmt::format(",key{}={}", i + 1, quoted_label(text));
  }
  return true;
}

/// The last value of the range at `i`. Ranges of quantize() are named after the value next to zero.
std::int64_t end_of_range(const Json& buckets, std::size_t i, bool is_quantize) {
  const auto name = buckets[i].value("value", std::int64_t{0});
  if (is_quantize && name < 0) return name;
  return buckets[i + 1].value("value", std::int64_t{0}) - 1;
}

/// Of each range of values the count of all up to its end, as histograms have them.
void add_histogram(Families& families, const std::string& labels, const Json& buckets,
                   bool is_quantize) {
  constexpr const char* kFamily = "ringside_distribution";
  constexpr std::string_view kHelp = "Distributions of the programs that run.";
  std::int64_t count = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    count += buckets[i].value("count", std::int64_t{0});
    if (i + 1 == buckets.size()) break;
    families.add(kFamily, "histogram", kHelp,
                 fmt::format("{}_bucket{{{},le=\"{}.0\"}} {}", kFamily, labels,
                             end_of_range(buckets, i, is_quantize), count));
  }
  families.add(kFamily, "histogram", kHelp,
               fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}", kFamily, labels, count));
}

void add_entry(Families& families, std::string labels, std::string_view function,
               const Json& entry) {
  if (!add_key_labels(labels, entry.value("keys", Json::array()))) return;
  const auto buckets = entry.find("buckets");
  if (buckets != entry.end() && buckets->is_array())
    return add_histogram(families, labels, *buckets, function == "quantize");
  const auto value = entry.find(function);
  if (value == entry.end() || !value->is_number()) return;
  families.add("ringside_aggregation", "gauge", "Aggregations of the programs that run.",
               fmt::format("ringside_aggregation{{{}}} {}", labels, value->dump()));
}

void add_aggregations(Families& families, unsigned program, const std::string& text) {
  const Json record = Json::parse(text, nullptr, false);
  if (!record.is_object()) return;
  const std::string machine = record.value("machine", "");
  for (const Json& item : record.value("output", Json::array())) {
    const std::string function = item.value("aggregation-function", "");
    const std::string labels =
        fmt::format("program=\"{}\",machine={},aggregation={}", program, quoted_label(machine),
                    quoted_label(item.value("aggregation-name", "")));
    for (const Json& entry : item.value("aggregation-data", Json::array()))
      add_entry(families, labels, function, entry);
  }
}

void add_counter(Families& families, const std::string& family, std::string_view help,
                 const std::string& labels, std::uint64_t value) {
  families.add(family, "counter", help, fmt::format("{}_total{{{}}} {}", family, labels, value));
}

}  // namespace

std::string open_metrics(std::span<const ProgramMetrics> programs,
                         std::span<const MachineMetrics> machines) {
  Families families;
  for (const ProgramMetrics& each : programs) {
    const std::string labels = fmt::format("program=\"{}\"", each.number);
    add_counter(families, "ringside_records", "Records that the program has made.", labels,
                each.records);
    add_counter(families, "ringside_records_not_shown", "Records that its page was not sent.",
                labels, each.left_out);
    for (const std::string& record : each.aggregations)
      add_aggregations(families, each.number, record);
  }
  for (const MachineMetrics& each : machines) {
    const std::string labels =
        fmt::format("program=\"{}\",machine={}", each.program, quoted_label(each.machine));
    add_counter(families, "ringside_firings", "Firings of probes.", labels, each.firings);
    add_counter(families, "ringside_missed_traps",
                "Traps that fired nothing, as nobody answered in time.", labels, each.missed);
    add_counter(families, "ringside_drops", "Records and keys for which there was no room.", labels,
                each.drops);
  }
  return families.text();
}

}  // namespace ringside::cli
