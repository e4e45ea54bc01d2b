// The consumer's side of aggregations: merges the engine's changes, then clears, truncates,
// normalizes, joins by key and sorts for printing.
// Does not: print rows (output.h), draw bars (distribution.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/values.h"
#include "dif/engine/engine.h"

namespace ringside::cli {

/// The value that one key has collected; `words` as dif::AggregateEntry says.
struct AggregateValue {
  const dif::Aggregation* definition = nullptr;
  std::span<const std::int64_t> words;
  std::int64_t normal = 1;  // never 0
};

bool is_distribution(dif::AggregateFunction function);
/// The number that a value shows: normalized; 0 for distributions and for an average of nothing.
std::int64_t scalar_value(const AggregateValue& value);
/// a / b with every input defined: MIN / -1 is MIN. `b` is not 0.
std::int64_t divided(std::int64_t a, std::int64_t b);

/// Splits a key into its fields; what a short key does not hold is left out.
std::vector<Value> key_values(const dif::Aggregation& definition, Bytes key);

class Aggregations {
 public:
  /// Both must outlive this object. With `names`, keys of sym(), func(), mod() and similar actions
  /// that have the same name are one key, as in dtrace. Without it, each address is a key of its
  /// own.
  explicit Aggregations(const std::vector<dif::Aggregation>& definitions,
                        const CodeNames* names = nullptr);

  void merge(std::span<const dif::AggregateEntry> changes);
  /// Keeps the keys, forgets their values.
  void clear(std::uint32_t aggregation);
  /// Keeps the `keep` largest values, the smallest -keep when negative, nothing when empty.
  void trunc(std::uint32_t aggregation, std::optional<std::int64_t> keep);
  /// Divides the values that the keys of now show by `factor`, which is not 0. Keys that come later
  /// are not normalized, as in dtrace.
  void normalize(std::uint32_t aggregation, std::int64_t factor);

  /// One key with its value in each of the aggregations asked for. Spans live until the next
  /// change of this object.
  struct Row {
    std::string_view key;  // all its bytes
    std::vector<Value> keys;
    std::vector<AggregateValue> values;
    std::uint64_t first_seen = 0;
  };
  /// All keys that any of them has, sorted as dtrace does it under these settings.
  std::vector<Row> rows(std::span<const std::uint32_t> aggregations, const Settings& order) const;
  bool empty(std::uint32_t aggregation) const;

 private:
  struct Entry {
    std::uint64_t first_seen = 0;
    bool cleared = false;  // the next change replaces the words
    std::int64_t normal = 1;
    std::vector<std::int64_t> words;
  };
  struct Table {
    const dif::Aggregation* definition = nullptr;
    std::unordered_map<std::string, Entry> entries;      // by key bytes
    std::vector<std::int64_t> nothing;                   // the words of a key that is not here
    bool names_code = false;                             // a key's field is a symbol or a module
    std::unordered_map<std::string, std::string> named;  // of those: by key bytes, what they become
  };
  std::string key_of(Table& table, Bytes key);
  std::string named_key(const dif::Aggregation& definition, Bytes key);
  /// The address that stands for all of the symbol or module.
  GuestVirt address_of_name(const Value& value);
  Row make_row(std::span<const std::uint32_t> aggregations, std::size_t column,
               const std::string& key, const Entry& entry) const;

  std::vector<Table> tables_;
  const CodeNames* names_;
  std::unordered_map<std::string, GuestVirt> modules_;  // by process and name, first seen
};

}  // namespace ringside::cli
