// Pictures of a trace's aggregations: folded stacks, flame graphs, speedscope's files, heat maps. A
// picture takes structured records (docs/output-schema.json), those of a trace (-O) as those of a
// file (`ringside draw`), and is text at the end. docs/pictures.md describes each.
// Does not: read files or write to descriptors.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::cli {

using Tree = nlohmann::ordered_json;

class Picture {
 public:
  virtual ~Picture() = default;

  /// Takes in one record. Invalid: it does not have the schema's shape.
  virtual Result<void> add(const Tree& record) = 0;

  struct Drawn {
    std::string text;                // the whole picture: valid UTF-8 without control characters
    std::vector<std::string> notes;  // lines for the user: what the picture leaves out
  };
  /// NotFound: the records have nothing to draw; the line says which aggregation to make.
  virtual Result<Drawn> draw() = 0;
};

/// `format` is a picture.
std::unique_ptr<Picture> make_picture(OutputFormat format);

/// The flame graph of what `after` takes, coloured by how shares differ from those in `before`,
/// whose records have been added already.
class StackTable;
std::unique_ptr<Picture> make_difference(StackTable before);

/// Before a trace begins: NotFound where none of a program's aggregations can be in the picture.
Result<void> check_drawable(OutputFormat format, std::span<const dif::Aggregation> aggregations);

}  // namespace ringside::cli
