// Pictures of a trace: folded stacks, flame graphs, speedscope's files, heat maps, files for
// Perfetto. A picture takes structured records (docs/output-schema.json), those of a trace (-O) as
// those of a file (`ringside draw`), and is text at the end. docs/pictures.md describes each. Does
// not: read files or write to descriptors.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::cli {

using Tree = nlohmann::ordered_json;

/// A record of a probe that has numbers and texts alone.
struct PlainRecord {
  struct Thread {
    std::uint32_t pid = 0, tid = 0;
    std::string_view execname;
  };
  struct Item {
    enum class Kind : std::uint8_t { Message, Integer, String, Exit };
    Kind kind = Kind::Message;
    dif::ValueType type{};   // of Integer and String
    std::uint64_t bits = 0;  // of Integer and Exit, extended by its sign
    std::string text{};      // of Message and String; valid UTF-8
  };
  std::uint64_t timestamp = 0;  // ns
  unsigned vcpu = 0;
  const dif::ProbeDescription& probe;
  std::string_view machine;
  std::optional<Thread> thread;
  std::span<const Item> items;
};

class Picture {
 public:
  virtual ~Picture() = default;

  /// Takes in one record. Invalid: it does not have the schema's shape.
  virtual Result<void> add(const Tree& record) = 0;
  /// Takes in one record without its tree. False: it was not taken, and add() needs the tree.
  virtual bool add_plain(const PlainRecord& /*record*/) { return false; }

  struct Drawn {
    /// The picture, or the rest of it: but for Perfetto valid UTF-8 without control characters.
    std::string text;
    std::vector<std::string> notes;  // lines for the user: what the picture leaves out
  };
  /// The next part of a picture that is made from its beginning to its end; draw() has the rest.
  virtual std::string take_text() { return {}; }
  /// NotFound: the records have nothing to draw; the line says which aggregation to make.
  virtual Result<Drawn> draw() = 0;
};

/// `format` is a picture.
std::unique_ptr<Picture> make_picture(OutputFormat format);

/// The flame graph of what `after` takes, coloured by how shares differ from those in `before`,
/// whose records have been added already.
class StackTable;
std::unique_ptr<Picture> make_difference(StackTable before);

/// Before a trace begins: NotFound where nothing of the program's can be in the picture.
Result<void> check_drawable(OutputFormat format, const dif::Program& program);

}  // namespace ringside::cli
