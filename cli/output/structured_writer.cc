// In this file, top to bottom: terminals, JSON, markup and its escapes, XML, HTML, CSV, pictures,
// the choice.
#include "cli/output/structured_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "cli/pictures/pictures.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// A format's own way to spell a control character.
using Spell = std::string (*)(std::string_view character);

/// Writes a piece of a document, which is UTF-8. A terminal gets the control characters that the
/// format leaves alone in the format's own spelling, so that it is the same document.
void write_document(Sink& sink, std::string_view text, Spell spell) {
  if (!sink.escapes()) return sink.write_safe(text);
  std::string safe;
  while (!text.empty()) {
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(character_length(text), 1));
    const bool layout = character == "\n" || character == "\t" || text.starts_with("\r\n");
    safe += is_control(character) && !layout ? spell(character) : std::string(character);
    text.remove_prefix(character.size());
  }
  sink.write_safe(safe);
}

std::string spell_in_json(std::string_view character) {
  return fmt::format("\\u{:04x}", static_cast<unsigned char>(character.back()));
}

/// HTML takes numbers of C1 for something else.
std::string spell_in_markup(std::string_view) {
  return std::string(kReplacement);
}

std::string spell_in_csv(std::string_view character) {
  return terminal_text(character);
}

class JsonWriter final : public RecordWriter {
 public:
  JsonWriter(Sink& sink, bool lines) : sink_(sink), lines_(lines) {}

  void record(Tree&& tree) override {
    if (!lines_) write_document(sink_, std::exchange(began_, true) ? ",\n" : kHead, spell_in_json);
    write_document(sink_, tree.dump(-1, ' ', false, Tree::error_handler_t::replace), spell_in_json);
    if (lines_) write_document(sink_, "\n", spell_in_json);
  }
  Result<std::vector<std::string>> finish() override {
    if (lines_) return {};
    if (!began_) write_document(sink_, kHead, spell_in_json);
    write_document(sink_, "\n]}}\n", spell_in_json);
    return {};
  }

 private:
  static constexpr std::string_view kHead = "{\"dtrace\": {\"probes\": [\n";
  Sink& sink_;
  bool lines_;
  bool began_ = false;
};

/// XML 1.0 cannot hold control characters, U+FFFE and U+FFFF, not even escaped.
std::string markup_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto c = static_cast<unsigned char>(character[0]);
    const bool control = c < 0x20 && c != '\t' && c != '\n';
    if (length == 0 || control || c == 0x7f || character == "\xef\xbf\xbe" ||
        character == "\xef\xbf\xbf") {
      result += kReplacement;
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

std::string scalar_text(const Tree& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  return value.dump();
}

class XmlWriter final : public RecordWriter {
 public:
  explicit XmlWriter(Sink& sink) : sink_(sink) {}

  void record(Tree&& tree) override {
    begin();
    std::string text;
    element(text, "probes", tree, 1);
    write_document(sink_, text, spell_in_markup);
  }
  Result<std::vector<std::string>> finish() override {
    begin();
    write_document(sink_, "</dtrace>\n", spell_in_markup);
    return {};
  }

 private:
  void begin() {
    if (std::exchange(began_, true)) return;
    write_document(sink_, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dtrace>\n",
                   spell_in_markup);
  }
  /// Fields are named by us or after members of C structures; whatever else comes must not break
  /// the document.
  static std::string name_of(std::string_view field) {
    std::string name;
    for (const char c : field) {
      const auto byte = static_cast<unsigned char>(c);
      name += std::isalnum(byte) != 0 || c == '-' || c == '_' ? c : '_';
    }
    const bool good =
        !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_');
    return good ? name : "_" + name;
  }
  static void element(std::string& out, std::string_view field, const Tree& value,
                      std::size_t depth) {
    if (value.is_array()) {  // repeated elements
      for (const Tree& each : value) {
        element(out, each.is_array() ? "item" : field, each, depth);
      }
      return;
    }
    const std::string name = name_of(field);
    out.append(2 * depth, ' ').append("<").append(name).append(">");
    if (value.is_object()) {
      out += '\n';
      for (const auto& [key, each] : value.items()) element(out, key, each, depth + 1);
      out.append(2 * depth, ' ');
    } else {
      out += markup_text(scalar_text(value));
    }
    out.append("</").append(name).append(">\n");
  }

  Sink& sink_;
  bool began_ = false;
};

/// The fields that every record starts with; tables have a column for each.
constexpr std::array<std::string_view, 8> kOrigin{"timestamp", "machine", "cpu",      "id",
                                                  "provider",  "module",  "function", "name"};

bool is_origin(std::string_view field) {
  return std::find(kOrigin.begin(), kOrigin.end(), field) != kOrigin.end();
}

/// A table with a row a record; what it recorded as nested lists in the last column.
class HtmlWriter final : public RecordWriter {
 public:
  explicit HtmlWriter(Sink& sink) : sink_(sink) {}

  void record(Tree&& tree) override {
    begin();
    std::string text = "<tr>";
    for (const std::string_view field : kOrigin) {
      const auto found = tree.find(field);
      text += "<td>";
      if (found != tree.end()) text += markup_text(scalar_text(*found));
      text += "</td>";
    }
    text += "<td>";
    for (const auto& [key, value] : tree.items()) {
      if (is_origin(key)) continue;
      if (key != "output") text.append(markup_text(key)).append(": ");
      cell(text, value);
    }
    text += "</td></tr>\n";
    write_document(sink_, text, spell_in_markup);
  }
  Result<std::vector<std::string>> finish() override {
    begin();
    write_document(sink_, "</tbody>\n</table>\n</body>\n</html>\n", spell_in_markup);
    return {};
  }

 private:
  void begin() {
    if (std::exchange(began_, true)) return;
    std::string text =
        "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"><title>dtrace</title></head>\n"
        "<body>\n<table class=\"dtrace\">\n<thead><tr>";
    for (const std::string_view field : kOrigin) text.append("<th>").append(field).append("</th>");
    text += "<th>output</th></tr></thead>\n<tbody>\n";
    write_document(sink_, text, spell_in_markup);
  }
  static void cell(std::string& out, const Tree& value) {
    if (value.is_array()) {
      out += "<ol>";
      for (const Tree& each : value) {
        out += "<li>";
        cell(out, each);
        out += "</li>";
      }
      out += "</ol>";
    } else if (value.is_object()) {
      out += "<dl>";
      for (const auto& [key, each] : value.items()) {
        out.append("<dt>").append(markup_text(key)).append("</dt><dd>");
        cell(out, each);
        out += "</dd>";
      }
      out += "</dl>";
    } else {
      out += markup_text(scalar_text(value));
    }
  }

  Sink& sink_;
  bool began_ = false;
};

/// RFC 4180, a row for each scalar that a record holds: its place in the record, and its value.
class CsvWriter final : public RecordWriter {
 public:
  explicit CsvWriter(Sink& sink) : sink_(sink) {}

  void record(Tree&& tree) override {
    begin();
    std::string origin;
    for (const std::string_view field : kOrigin) {
      const auto found = tree.find(field);
      if (found != tree.end()) origin += csv_text(scalar_text(*found));
      origin += ',';
    }
    std::string text;
    for (const auto& [key, value] : tree.items()) {
      if (!is_origin(key)) rows(text, origin, key, value);
    }
    if (text.empty()) text = origin + ",\r\n";
    write_document(sink_, text, spell_in_csv);
  }
  Result<std::vector<std::string>> finish() override {
    begin();
    return {};
  }

 private:
  void begin() {
    if (std::exchange(began_, true)) return;
    std::string text;
    for (const std::string_view field : kOrigin) text.append(field).append(",");
    text += "field,value\r\n";
    write_document(sink_, text, spell_in_csv);
  }
  static std::string csv_text(std::string_view text) {
    std::string clean;
    for (const char c : valid_utf8(text)) {
      if (c == '\0') {
        clean += kReplacement;
      } else {
        clean += c;
      }
    }
    if (clean.find_first_of(",\"\r\n") == std::string::npos) return clean;
    std::string quoted = "\"";
    for (const char c : clean) {
      if (c == '"') quoted += '"';
      quoted += c;
    }
    return quoted + '"';
  }
  static void rows(std::string& out, const std::string& origin, const std::string& path,
                   const Tree& value) {
    if (value.is_structured()) {
      for (const auto& [key, each] : value.items())
        rows(out, origin, fmt::format("{}.{}", path, key), each);
      return;
    }
    out.append(origin).append(csv_text(path)).append(",");
    out.append(csv_text(scalar_text(value))).append("\r\n");
  }

  Sink& sink_;
  bool began_ = false;
};

class PictureWriter final : public RecordWriter {
 public:
  PictureWriter(OutputFormat format, Sink& sink) : sink_(sink), picture_(make_picture(format)) {}

  bool plain_record(const PlainRecord& record) override {
    if (taken_ && !picture_->add_plain(record)) return false;
    sink_.write_safe(picture_->take_text());
    return true;
  }
  void record(Tree&& tree) override {
    if (!taken_) return;
    taken_ = picture_->add(tree);
    sink_.write_safe(picture_->take_text());
  }
  Result<std::vector<std::string>> finish() override {
    TRY(taken_);
    Picture::Drawn drawn = TRY(picture_->draw());
    sink_.write_safe(drawn.text);  // see pictures.h
    return std::move(drawn.notes);
  }

 private:
  Sink& sink_;
  std::unique_ptr<Picture> picture_;
  Result<void> taken_;  // the first record that could not be
};

}  // namespace

std::string valid_utf8(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(text, is_ascii)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    result += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::unique_ptr<RecordWriter> make_record_writer(OutputFormat format, Sink& sink) {
  switch (format) {
    case OutputFormat::Xml: return std::make_unique<XmlWriter>(sink);
    case OutputFormat::Html: return std::make_unique<HtmlWriter>(sink);
    case OutputFormat::Csv: return std::make_unique<CsvWriter>(sink);
    case OutputFormat::JsonLines: return std::make_unique<JsonWriter>(sink, true);
    case OutputFormat::Folded:
    case OutputFormat::Flame:
    case OutputFormat::Speedscope:
    case OutputFormat::Heatmap:
    case OutputFormat::Perfetto: return std::make_unique<PictureWriter>(format, sink);
    case OutputFormat::Json:
    case OutputFormat::Text: break;
  }
  return std::make_unique<JsonWriter>(sink, false);
}

}  // namespace ringside::cli
