// In this file, top to bottom: text helpers, descriptions of -P -m -f -i, loading, messages.
#include "cli/program/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/program/libraries.h"
#include "cli/program/preprocess.h"
#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kSpace = " \t\r\n\f\v";
constexpr std::size_t kMaxScript = 16 << 20;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// The probe descriptions at the start: everything before the predicate or the clause.
std::string_view description_part(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of("/{"), text.size()));
}

/// A description of -P, -m or -f as the four fields of -n, or five where it has a machine before
/// its own; empty when it has too many fields.
std::optional<std::string> widened(std::string_view description, ProgramSource::Kind kind) {
  const int position = kind == ProgramSource::Kind::Provider ? 0
                       : kind == ProgramSource::Kind::Module ? 1
                                                             : 2;
  const auto colons = static_cast<int>(std::count(description.begin(), description.end(), ':'));
  if (colons > position + 1 || description.empty()) return std::nullopt;
  const int missing = std::max(0, position - colons);
  return std::string(static_cast<std::size_t>(missing), ':') + std::string(description) +
         std::string(static_cast<std::size_t>(3 - position), ':');
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// The four fields of a description of -P, -m or -f; the error says what is wrong with it.
tl::expected<std::string, std::string> one_description(std::string_view text,
                                                       ProgramSource::Kind kind) {
  using Kind = ProgramSource::Kind;
  if (!is_number(text)) {
    if (const auto wide = widened(text, kind)) return *wide;
    if (text.empty()) return tl::make_unexpected("invalid probe description \"\": it is empty");
    return tl::make_unexpected(
        fmt::format("invalid probe description \"{}\": Overspecified probe description", text));
  }
  return tl::make_unexpected(fmt::format("probe identifier {} not permitted when specifying {}",
                                         text,
                                         kind == Kind::Provider ? "providers"
                                         : kind == Kind::Module ? "modules"
                                                                : "functions"));
}

/// The text of a program in -n's form.
Result<std::string> as_names(const ProgramSource& source, bool tags) {
  if (source.kind == ProgramSource::Kind::Name || source.kind == ProgramSource::Kind::Id) {
    return source.text;
  }
  std::string_view rest = description_part(source.text);
  const std::string_view body = std::string_view(source.text).substr(rest.size());
  std::string text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto one = one_description(trimmed(rest.substr(0, comma)), source.kind);
    if (!one) {
      const std::string_view whole = trimmed(description_part(source.text));
      return fail(ErrorCode::Compile,
                  tags ? fmt::format("invalid probe specifier {}: [D_PDESC_INVAL] {}", source.text,
                                     one.error())
                       : fmt::format("{} (in '{}')", one.error(), whole));
    }
    text += *one;
    if (comma == rest.size()) break;
    text += ',';
    rest.remove_prefix(comma + 1);
  }
  return text.append(1, ' ').append(body);
}

/// A description without a clause may only end the compiler's text; give it an empty clause. In a
/// script it is a mistake, which the compiler says, but where a predicate follows.
bool needs_clause(std::string_view text, bool is_script) {
  const std::string code = without_comments(text);
  if (is_script && code.find('/') == code.npos) return false;
  const std::string_view rest = trimmed(code);
  if (trimmed(rest.substr(rest.rfind('\n') + 1)).starts_with('#')) return false;  // a pragma
  // One that has begun is the compiler's to complain about.
  return !rest.empty() && rest.find('{') == rest.npos && rest.back() != '}' && rest.back() != ';';
}

Result<std::string> read_script(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to open script {}: {}", path, std::strerror(EISDIR)));
  }
  auto text = text_of(path);
  if (!text) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to open script {}: {}", path, std::strerror(errno)));
  }
  if (text->size() > kMaxScript) {
    return fail(ErrorCode::Limit, fmt::format("script {} is larger than 16 MiB", path));
  }
  return std::move(*text);
}

struct LineMarker {
  int line = 1;
  std::optional<std::string> file;
};

/// `# 3 "file" flags` as cpp writes it, or `#line 3 "file"`; empty when the line is neither, or
/// malformed, which the compiler will say.
std::optional<LineMarker> line_marker(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = trimmed(line.substr(1));
  if (line.starts_with("line") && line.find_first_of(kSpace) == 4) line = trimmed(line.substr(4));
  LineMarker marker;
  const auto number = take_number<int>(line);
  if (!number || *number < 0) return std::nullopt;
  marker.line = *number;
  if (line.empty()) return marker;
  if (kSpace.find(line[0]) == kSpace.npos) return std::nullopt;
  line = trimmed(line);
  if (!line.starts_with('"')) return std::nullopt;
  std::string file;
  std::size_t at = 1;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) ++at;
    file += line[at];
  }
  if (at >= line.size()) return std::nullopt;
  if (line.find_first_not_of(" \t0123456789", at + 1) != line.npos) return std::nullopt;
  marker.file = std::move(file);
  return marker;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string code(text);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '"' || code[i] == '\'') {
      const char quote = code[i];
      while (++i < code.size() && code[i] != quote && code[i] != '\n') i += code[i] == '\\';
    } else if (code.compare(i, 2, "/*") == 0) {
      const std::size_t end = std::min(code.find("*/", i + 2), code.size() - 2) + 2;
      for (; i < end; ++i) {
        if (code[i] != '\n') code[i] = ' ';
      }
      --i;
    }
  }
  return code;
}

void Sources::add(Program program, std::string_view text) {
  int line = 1 + static_cast<int>(std::count(text_.begin(), text_.end(), '\n'));
  program.first_line = line;
  const std::size_t index = programs_.size();
  stretches_.push_back({line, index, {}, 1});
  std::istringstream lines{std::string(text)}, code{without_comments(text)};
  const bool closed = text.ends_with('\n');
  std::string kept;
  for (std::string one, bare; std::getline(lines, one) && std::getline(code, bare); ++line) {
    if (const auto marker = line_marker(bare)) {
      std::string file = marker->file.value_or(stretches_.back().file);
      if (file == program.file) file.clear();
      stretches_.push_back({line + 1, index, std::move(file), marker->line});
      one.clear();
    }
    kept += one;
    if (closed || !lines.eof()) kept += '\n';
  }
  if (needs_clause(kept, program.kind == "script")) kept += " {}";
  text_ += kept + '\n';
  programs_.push_back(std::move(program));
}

Result<Sources> Sources::load(const std::vector<ProgramSource>& programs,
                              const PreprocessorSettings& preprocessor, bool tags) {
  Sources sources;
  for (const ProgramSource& source : programs) {
    const bool is_script = source.kind == ProgramSource::Kind::Script;
    std::string text;
    Program program;
    if (is_script) {
      text = TRY(read_script(source.text));
      // It is for the system and not for the preprocessor.
      const std::size_t start = std::min(text.find_first_not_of(kSpace), text.size());
      if (text.compare(start, 2, "#!") == 0) {
        text.erase(start, std::min(text.find('\n', start), text.size()) - start);
      }
      program = {"script", source.text, fmt::format("failed to compile script {}", source.text),
                 source.text};
    } else if (source.kind == ProgramSource::Kind::Text) {
      text = source.text;
      program = {"script", "program", "failed to compile the program", "program"};
    } else {
      text = TRY(as_names(source, tags));
      program = {"description", std::string(description_part(source.text)),
                 fmt::format("invalid probe specifier {}", source.text), "<command line>"};
    }
    if (preprocessor.wanted) {
      auto ready = preprocess(text, program.file, preprocessor);
      if (!ready) {
        return fail(ready.error().code, fmt::format("{} ({} '{}')", ready.error().message,
                                                    program.kind, trimmed(program.name)));
      }
      text = std::move(*ready);
    }
    sources.add(std::move(program), text);
  }
  return sources;
}

std::size_t Sources::program_of(int line) const {
  std::size_t program = 0;
  while (program + 1 < programs_.size() && programs_[program + 1].first_line <= line) ++program;
  return program;
}

std::string Sources::label(std::size_t program) const {
  return fmt::format("{} '{}'", programs_[program].kind, programs_[program].name);
}

std::string Sources::report_label(std::size_t program) const {
  return fmt::format("{} {}", programs_[program].kind, programs_[program].name);
}

Sources::FileLine Sources::file_line(int source_line, int line) const {
  const auto after = std::ranges::upper_bound(stretches_, source_line, {}, &Stretch::first_line);
  if (after == stretches_.begin()) return {{}, line};
  const Stretch& stretch = *std::prev(after);
  return {stretch.file, stretch.line + (line - stretch.first_line)};
}

std::string Sources::place(int line) const {
  const Program& program = programs_[program_of(line)];
  auto [file, number] = file_line(line, line);
  if (file.empty() && program.kind == "script") file = program.file;
  return file.empty() ? std::string() : fmt::format("{}:{}", file, number);
}

namespace {

/// dtrace's name for the part of a description that `before` ends in; empty for the description.
std::string_view region_after(std::string_view before) {
  int braces = 0;
  bool predicate = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const char c = before[i];
    if (c == '"' || c == '\'') {
      while (++i < before.size() && before[i] != c) i += before[i] == '\\';
    }
    if (c == '{') ++braces;
    if (c == '}') --braces;
    if (c == '/' && braces == 0) predicate = !predicate;
    if (c == '{' || c == '}') predicate = false;
  }
  return braces > 0 ? "action list" : predicate ? "predicate" : "";
}

}  // namespace

/// Of a diagnostic in a description that was given as one.
std::string_view Sources::region(const d::Diagnostic& diagnostic) const {
  if (diagnostic.is_parsers) return {};  // dtrace's parser does not say where it is
  const d::Location& at = diagnostic.at;
  const std::string_view text = text_;
  const auto offset_of = [&](int line) {
    std::size_t start = 0;
    for (int before = 1; before < line; ++before) start = text.find('\n', start) + 1;
    return start;
  };
  const std::size_t from = offset_of(programs_[program_of(at.source_line)].first_line);
  const std::size_t column =
      std::min<std::size_t>(static_cast<std::size_t>(at.column - 1), diagnostic.source_line.size());
  const std::size_t to = offset_of(at.source_line) + column;
  return region_after(without_comments(text.substr(from, to - from)));
}

/// "in action list: " for a place in a description that was given as one; "line 3: " elsewhere.
std::string Sources::dtrace_place(const d::Diagnostic& diagnostic) const {
  const d::Location& at = diagnostic.at;
  if (!diagnostic.library.empty()) {
    return fmt::format("\"{}\", line {}: ", diagnostic.library, at.line);
  }
  const auto [file, number] = file_line(at.source_line, at.line);
  if (!file.empty()) return fmt::format("\"{}\", line {}: ", file, number);
  if (programs_[program_of(at.source_line)].kind != "description") {
    return fmt::format("line {}: ", number);
  }
  const std::string_view found = region(diagnostic);
  return found.empty() ? std::string() : fmt::format("in {}: ", found);
}

/// "f.d:3", "in action list of 'BEGIN'", "in 'BEGIN'".
std::string Sources::short_place(const d::Diagnostic& diagnostic) const {
  constexpr std::size_t kLongest = 60;  // letters of a description
  const d::Location& at = diagnostic.at;
  if (!diagnostic.library.empty()) return fmt::format("{}:{}", diagnostic.library, at.line);
  const Program& program = programs_[program_of(at.source_line)];
  const auto [file, number] = file_line(at.source_line, at.line);
  if (!file.empty()) return fmt::format("{}:{}", file, number);
  if (program.kind != "description") return fmt::format("{}:{}", program.name, number);
  std::string_view name = trimmed(program.name);
  const bool is_long = name.size() > kLongest;
  if (is_long) name = name.substr(0, kLongest);
  const std::string_view found = region(diagnostic);
  return fmt::format("in {}{}'{}{}'", found, found.empty() ? "" : " of ", name,
                     is_long ? "..." : "");
}

std::string Sources::explain(const d::Diagnostic& diagnostic, bool tags) const {
  if (!tags) {
    return fmt::format("{} ({}){}", terminal_text(diagnostic.text),
                       terminal_text(short_place(diagnostic)), excerpt(diagnostic));
  }
  const std::size_t program =
      diagnostic.library.empty() ? program_of(diagnostic.at.source_line) : 0;
  return fmt::format("{}: [{}] {}{}{}", programs_[program].complaint, diagnostic.tag,
                     terminal_text(dtrace_place(diagnostic)), terminal_text(diagnostic.text),
                     excerpt(diagnostic));
}

}  // namespace ringside::cli
