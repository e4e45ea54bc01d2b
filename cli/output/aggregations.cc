// In this file, top to bottom: the value of an aggregate, keys, order, names of code, merging,
// rows.
#include "cli/output/aggregations.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstring>

#include "cli/output/distribution.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
__extension__ using Uint128 = unsigned __int128;

/// The largest integer whose square is at most `value`.
std::uint64_t integer_root(Uint128 value) {
  std::uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t tried = root | std::uint64_t{1} << bit;
    if (static_cast<Uint128>(tried) * tried <= value) root = tried;
  }
  return root;
}

/// sqrt(average(x**2) - average(x)**2) in whole numbers at each step, as dtrace documents it.
std::int64_t standard_deviation(const AggregateValue& value) {
  const auto words = value.words;
  if (words.size() != 4 || words[0] <= 0) return 0;
  const auto count = static_cast<std::uint64_t>(words[0]);
  const auto magnitude = [](std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    return number < 0 ? 0 - bits : bits;
  };
  const std::uint64_t normal = magnitude(value.normal);
  const Uint128 squares =
      Uint128{static_cast<std::uint64_t>(words[3])} << 64 | static_cast<std::uint64_t>(words[2]);
  const Uint128 average_of_squares = squares / normal / normal / count;
  const std::uint64_t average = magnitude(words[1]) / normal / count;
  const Uint128 square_of_average = static_cast<Uint128>(average) * average;
  if (average_of_squares <= square_of_average) return 0;
  return static_cast<std::int64_t>(integer_root(average_of_squares - square_of_average));
}

std::strong_ordering compare(long double a, long double b) {
  if (a == b) return std::strong_ordering::equal;
  return a < b ? std::strong_ordering::less : std::strong_ordering::greater;
}

std::strong_ordering compare_value(const AggregateValue& a, const AggregateValue& b) {
  if (is_distribution(a.definition->function)) {
    const auto order = compare(distribution_total(*a.definition, a.words),
                               distribution_total(*b.definition, b.words));
    if (order != 0) return order;
    return distribution_zeros(*a.definition, a.words) <=>
           distribution_zeros(*b.definition, b.words);
  }
  return scalar_value(a) <=> scalar_value(b);
}

/// dtrace sorts integers by their bits: a negative one comes after the others.
std::strong_ordering compare_key(const Value& a, const Value& b) {
  if (a.type.kind != dif::ValueKind::Integer) {
    if (a.type.kind == dif::ValueKind::String) return text_value(a.bytes) <=> text_value(b.bytes);
    return std::lexicographical_compare_three_way(a.bytes.begin(), a.bytes.end(), b.bytes.begin(),
                                                  b.bytes.end());
  }
  return unsigned_value(a.bytes) <=> unsigned_value(b.bytes);
}

/// Lexicographic from position `first` on, wrapping around. A position that there is not is 0.
template <class T, class Compare>
std::strong_ordering compare_from(const std::vector<T>& a, const std::vector<T>& b,
                                  std::size_t first, Compare compare) {
  const std::size_t size = std::min(a.size(), b.size());
  if (first >= size) first = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t at = (i + first) % size;
    if (const auto order = compare(a[at], b[at]); order != 0) return order;
  }
  return a.size() <=> b.size();
}

bool before(const Aggregations::Row& a, const Aggregations::Row& b, const Settings& settings) {
  const auto keys = [&] {
    return compare_from(a.keys, b.keys, settings.sort_key_position, compare_key);
  };
  const auto values = [&] {
    return compare_from(a.values, b.values, settings.sort_position, compare_value);
  };
  auto order = settings.sort_by_key ? keys() : values();
  if (order == 0) order = settings.sort_by_key ? values() : keys();
  if (order == 0) order = a.first_seen <=> b.first_seen;
  return settings.sort_reversed ? order > 0 : order < 0;
}

std::string key_string(Bytes key) {
  // SAFETY: characters may alias any bytes; the length stays inside the span.
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

bool is_function_name(dif::ValueKind kind) {
  return kind == dif::ValueKind::KernelSymbol || kind == dif::ValueKind::UserSymbol;
}

bool is_module_name(dif::ValueKind kind) {
  return kind == dif::ValueKind::KernelModule || kind == dif::ValueKind::UserModule;
}

}  // namespace

bool is_distribution(AggregateFunction function) {
  return dif::aggregating_info(function).result == dif::AggregatingInfo::Result::Buckets;
}

std::int64_t divided(std::int64_t a, std::int64_t b) {
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
  return a / b;
}

std::int64_t scalar_value(const AggregateValue& value) {
  const auto words = value.words;
  switch (value.definition->function) {
    case AggregateFunction::Avg:
      if (words.size() != 2 || words[0] == 0) return 0;
      return divided(divided(words[1], value.normal), words[0]);
    case AggregateFunction::Stddev: return standard_deviation(value);
    default:
      if (words.size() != 1) return 0;
      return divided(words[0], value.normal);
  }
}

std::vector<Value> key_values(const dif::Aggregation& definition, Bytes key) {
  std::vector<Value> values;
  for (const dif::ValueType& type : definition.keys) {
    std::size_t size = type.size;
    if (type.kind == dif::ValueKind::String) size = text_value(key).size() + 1;
    if (size > key.size()) break;
    const Bytes bytes = key.first(size);
    key = key.subspan(size);
    constexpr std::uint32_t kWord = sizeof dif::kKernelFrames;
    if (type.kind == dif::ValueKind::UserStack && word_at(bytes, 0) == dif::kKernelFrames) {
      values.push_back(
          {{dif::ValueKind::KernelStack, false, type.size - kWord}, bytes.subspan(kWord)});
    } else {
      values.push_back({type, bytes});
    }
  }
  return values;
}

Aggregations::Aggregations(const std::vector<dif::Aggregation>& definitions, const CodeNames* names)
    : names_(names) {
  for (const dif::Aggregation& definition : definitions) {
    Table& table = tables_.emplace_back();
    table.definition = &definition;
    table.nothing.resize(dif::aggregate_words(definition));
    table.names_code =
        names != nullptr &&
        std::any_of(definition.keys.begin(), definition.keys.end(), [](const dif::ValueType& type) {
          return is_function_name(type.kind) || is_module_name(type.kind);
        });
  }
}

GuestVirt Aggregations::address_of_name(const Value& value) {
  const CodeAddress code = code_address(value);
  const bool user = is_user_code(value.type.kind);
  const std::string text =
      user ? names_->describe_user(code.pid, code.address) : names_->describe(code.address);
  if (is_function_name(value.type.kind)) {
    return code.address.wrapping_sub(split_code_name(text).offset);
  }
  const std::string_view module = split_code_name(text).module;
  if (module.empty()) return code.address;
  return modules_.try_emplace(fmt::format("{} {} {}", user, code.pid, module), code.address)
      .first->second;
}

std::string Aggregations::named_key(const dif::Aggregation& definition, Bytes key) {
  std::string named = key_string(key);
  for (const Value& value : key_values(definition, key)) {
    if (!is_function_name(value.type.kind) && !is_module_name(value.type.kind)) continue;
    const std::uint64_t address = address_of_name(value).raw();
    if (value.bytes.size() < sizeof address) continue;
    // The address is the field's last word.
    const auto end = static_cast<std::size_t>(value.bytes.data() - key.data()) + value.bytes.size();
    std::memcpy(named.data() + end - sizeof address, &address, sizeof address);
  }
  return named;
}

std::string Aggregations::key_of(Table& table, Bytes key) {
  if (!table.names_code) return key_string(key);
  const auto [at, added] = table.named.try_emplace(key_string(key));
  if (added) at->second = named_key(*table.definition, key);
  return at->second;
}

void Aggregations::merge(std::span<const dif::AggregateEntry> changes) {
  for (const dif::AggregateEntry& change : changes) {
    if (change.aggregation >= tables_.size()) continue;
    Table& table = tables_[change.aggregation];
    if (change.words.size() != table.nothing.size()) continue;
    auto [at, added] = table.entries.try_emplace(key_of(table, change.key));
    Entry& entry = at->second;
    if (added) entry.first_seen = change.first_seen;
    if (added || entry.cleared) {
      entry.words = change.words;
      entry.cleared = false;
    } else {
      dif::aggregate_merge(*table.definition, entry.words, change.words);
    }
  }
}

void Aggregations::clear(std::uint32_t aggregation) {
  if (aggregation >= tables_.size()) return;
  for (auto& [key, entry] : tables_[aggregation].entries) {
    std::fill(entry.words.begin(), entry.words.end(), 0);
    entry.cleared = true;
  }
}

void Aggregations::trunc(std::uint32_t aggregation, std::optional<std::int64_t> keep) {
  if (aggregation >= tables_.size()) return;
  Table& table = tables_[aggregation];
  if (!keep || *keep == 0) {
    table.entries.clear();
    return;
  }
  Settings by_value;
  by_value.sort_reversed = *keep > 0;
  const std::uint64_t wanted =
      *keep > 0 ? static_cast<std::uint64_t>(*keep) : 0 - static_cast<std::uint64_t>(*keep);
  const std::vector<Row> sorted = rows(std::span(&aggregation, 1), by_value);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i >= wanted) table.entries.erase(std::string(sorted[i].key));
  }
}

void Aggregations::normalize(std::uint32_t aggregation, std::int64_t factor) {
  if (aggregation >= tables_.size()) return;
  for (auto& [key, entry] : tables_[aggregation].entries) entry.normal = factor;
}

bool Aggregations::empty(std::uint32_t aggregation) const {
  return aggregation >= tables_.size() || tables_[aggregation].entries.empty();
}

/// The row of a key found in column `column`; what the other columns have is nothing so far.
Aggregations::Row Aggregations::make_row(std::span<const std::uint32_t> aggregations,
                                         std::size_t column, const std::string& key,
                                         const Entry& entry) const {
  Row row;
  row.key = key;
  row.first_seen = entry.first_seen;
  row.keys = key_values(*tables_[aggregations[column]].definition,
                        std::as_bytes(std::span(key.data(), key.size())));
  row.values.reserve(aggregations.size());
  for (const std::uint32_t other : aggregations) {
    const Table& table = tables_[other];
    row.values.push_back({table.definition, table.nothing, 1});
  }
  return row;
}

std::vector<Aggregations::Row> Aggregations::rows(std::span<const std::uint32_t> aggregations,
                                                  const Settings& order) const {
  std::vector<Row> sorted;
  std::unordered_map<std::string_view, std::size_t> places;  // for joining several by key
  for (std::size_t column = 0; column < aggregations.size(); ++column) {
    if (aggregations[column] >= tables_.size()) return {};
    for (const auto& [key, entry] : tables_[aggregations[column]].entries) {
      std::size_t place = sorted.size();
      if (aggregations.size() > 1) place = places.try_emplace(key, place).first->second;
      if (place == sorted.size()) sorted.push_back(make_row(aggregations, column, key, entry));
      sorted[place].values[column].words = entry.words;
      sorted[place].values[column].normal = entry.normal;
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [&](const Row& a, const Row& b) { return before(a, b, order); });
  return sorted;
}

}  // namespace ringside::cli
