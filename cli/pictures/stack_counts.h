// Aggregations whose key ends in stacks, collected from structured records
// (docs/output-schema.json) for folded stacks, flame graphs and speedscope. Stacks that differ only
// in offsets into functions become one. Used by the pictures (pictures.h).
// Does not: trust records. A saved one may come from anybody.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vmm/base/result.h"

namespace ringside::cli {

using Tree = nlohmann::ordered_json;

enum class FrameKind : std::uint8_t { Key, User, Kernel };  // Key: a part of the key before stacks

/// A frame as all pictures name it: one line, without control characters.
struct FrameName {
  std::string text;  // "vmlinux`vfs_read"; never empty
  FrameKind kind = FrameKind::Key;
};

/// One aggregation of one machine.
struct StackCounts {
  struct Sample {
    std::vector<std::uint32_t> frames;  // into StackTable::names(), root first
    std::uint64_t count = 0;
  };
  std::string machine;          // empty: all machines together, or none has a name
  std::string name;             // of the aggregation, with '@'
  std::vector<Sample> samples;  // by the names of their frames, in order; no two are the same
  std::uint64_t total = 0;      // of the counts; the largest number if it does not fit
};

/// A member that is text; null if there is none, or it is something else.
const std::string* text_member(const Tree& tree, std::string_view name);

/// A key's value in one line: numbers as they are, texts with escapes for control characters,
/// stacks as "(stack)"; "-" for nothing. `key` is one of the schema's "keys".
std::string key_text(const Tree& key);

/// The machine that an item of a record's "output" is about; empty if it is about all.
std::string machine_of(const Tree& record, const Tree& item);

/// The aggregation that an action has emptied: by clear(), or by trunc() without a number. Null if
/// the item is nothing like that.
const Tree* emptied_aggregation(const Tree& item);

/// The error of a record that does not have the schema's shape.
tl::unexpected<Error> malformed_record(std::string_view why);

/// The name of the aggregation that an item with "aggregation-data", or one that empties, is about:
/// "@a" in one line. Invalid: it has none.
Result<std::string> aggregation_name(const Tree& item);

class StackTable {
 public:
  static constexpr std::size_t kMostFrames = 8192;  // of a sample

  /// Takes in one record. What an aggregation shows last is what counts; if clear() or trunc()
  /// empties it, what it showed before is added to what it shows after. Invalid: not in the
  /// schema's shape.
  Result<void> add(const Tree& record);

  /// By machine and name; none is without samples.
  std::vector<StackCounts> counts() const;
  const std::vector<FrameName>& names() const { return names_; }
  /// Whether records name more than one machine.
  bool several_machines() const { return machines_.size() > 1; }
  /// Keys whose value is below 0, which no picture can show.
  std::uint64_t negatives() const { return negatives_; }
  /// Aggregations that hold something else than counts of stacks: "@a".
  const std::set<std::string>& others() const { return others_; }

 private:
  using Frames = std::vector<std::uint32_t>;
  struct FramesHash {
    std::size_t operator()(const Frames& frames) const;
  };
  using Counts = std::unordered_map<Frames, std::uint64_t, FramesHash>;
  struct Aggregation {
    Counts before;  // what was emptied
    Counts shown;   // what it has shown since
  };

  Result<void> take(Aggregation& aggregation, const std::string& name, const Tree& data);
  Result<bool> take_key(const Tree& keys);
  Result<void> append_frames(const Tree& stack);
  std::uint32_t intern(std::string text, FrameKind kind);

  std::map<std::pair<std::string, std::string>, Aggregation> aggregations_;  // by machine and name
  std::vector<FrameName> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;  // by kind and text
  std::unordered_map<std::string, std::uint32_t> raw_;  // by the frame's own name, of kind and text
  std::set<std::string> machines_, others_;
  std::uint64_t negatives_ = 0;
  Frames frames_;  // of the key that is being taken
};

/// a + b, or the largest number.
constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

}  // namespace ringside::cli
