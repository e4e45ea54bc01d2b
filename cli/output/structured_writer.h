// Writes structured records as JSON (one document, or one line for each record), XML, HTML or CSV,
// or draws a picture of them. A record is a tree of named fields, lists and scalars, in order.
// Does not: know what records mean. Any string makes a valid document: bytes that are not UTF-8,
// and characters that a format cannot hold, become U+FFFD.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "cli/output/sink.h"
#include "cli/pictures/pictures.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  /// Takes in a record without its tree, which takes several times as long to make. False: it was
  /// not taken, and record() has to be called with the tree.
  virtual bool plain_record(const PlainRecord& /*record*/) { return false; }
  virtual void record(Tree&& tree) = 0;
  /// Closes the document, also one without records. Returns lines for the user on what it lacks.
  /// NotFound: the records have nothing to draw.
  virtual Result<std::vector<std::string>> finish() = 0;
};

/// `format` is not Text.
std::unique_ptr<RecordWriter> make_record_writer(OutputFormat format, Sink& sink);

/// Valid UTF-8, its NULs kept.
std::string valid_utf8(std::string_view text);

}  // namespace ringside::cli
