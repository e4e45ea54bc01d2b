#include "dif/d/syntax/control_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vmm/base/numbers.h"

namespace ringside::d {
namespace {

std::string_view first_word(std::string_view& text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const auto begin = std::find_if_not(text.begin(), text.end(), space);
  const auto end = std::find_if(begin, text.end(), space);
  const std::string_view word(begin, end);
  text = std::string_view(end, text.end());
  return word;
}

}  // namespace

bool ControlLines::malformed(std::string_view what) {
  state_.stop("D_PRAGMA_MALFORM", fmt::format("malformed {}", what));
  return false;
}

bool ControlLines::read(std::string_view line) {
  line.remove_prefix(line.find('#') + 1);
  if (line.starts_with('!')) return true;
  const std::string_view word = first_word(line);
  if (word.empty()) return true;
  if (word == "pragma") return pragma(line);
  if (const auto known = directive(word, line)) return *known;
  if (word[0] >= '0' && word[0] <= '9') {
    return line_marker(std::string_view(word.data(), line.data() + line.size()));
  }
  state_.stop("D_PRAGCTL_INVAL", fmt::format("invalid control directive: #{}", word));
  return false;
}

/// #line, #ident and #error, which may also follow #pragma D. Empty for another word.
std::optional<bool> ControlLines::directive(std::string_view word, std::string_view words) {
  if (word == "line") return line_marker(words);
  if (word == "ident") return first_word(words).starts_with('"') || malformed("#ident \"string\"");
  if (word != "error") return std::nullopt;
  const std::size_t begin = std::min(words.find_first_not_of(" \t"), words.size());
  state_.stop("D_PRAGERR", fmt::format("#error: {}", words.substr(begin)));
  return false;
}

bool ControlLines::line_marker(std::string_view words) {
  const auto line = parse_number<int>(first_word(words));
  if (!line || *line < 0 || *line > 1'000'000'000) return malformed("#line number [\"file\"]");
  state_.cursor.renumber(*line);
  return true;
}

bool ControlLines::pragma(std::string_view words) {
  if (first_word(words) != "D") return true;  // another tool's
  const std::string_view word = first_word(words);
  if (word == "option") return pragma_option(words);
  for (const std::string_view known : {"attributes", "binding", "depends_on"}) {
    if (word == known) return pragma_with_words(known, words);
  }
  if (const auto known = directive(word, words)) return *known;
  if (word.empty()) return malformed("#pragma D");
  state_.stop("D_PRAGMA_INVAL", fmt::format("invalid #pragma directive: #pragma D {}", word));
  return false;
}

bool ControlLines::pragma_option(std::string_view words) {
  const std::string_view setting = first_word(words);
  if (setting.empty() || setting[0] == '=' || !first_word(words).empty()) {
    return malformed("#pragma D option name[=value]");
  }
  const std::size_t equals = std::min(setting.find('='), setting.size());
  Tree::Option option{state_.cursor.token(), std::string(setting.substr(0, equals)),
                      std::string(setting.substr(std::min(equals + 1, setting.size())))};
  // Only what the program itself asks for counts.
  CompileOptions& options = state_.options;
  const bool sets = state_.cursor.token().file == 0 && options.set_option;
  const auto done = sets ? options.set_option(option.name, option.value, options) : Result<void>();
  if (!done) {
    const std::string& why = done.error().message;
    state_.stop(
        "D_PRAGMA_OPTSET",
        option.value.empty()
            ? fmt::format("failed to set option '{}': {}", option.name, why)
            : fmt::format("failed to set option '{}' to '{}': {}", option.name, option.value, why));
    return false;
  }
  state_.tree.options.push_back(std::move(option));
  return true;
}

bool ControlLines::pragma_with_words(std::string_view directive, std::string_view words) {
  PragmaNode node{.at = state_.cursor.token(), .directive = directive};
  for (std::string_view word = first_word(words); !word.empty(); word = first_word(words)) {
    node.words.emplace_back(word);
  }
  constexpr std::size_t kMaxWords = 4;
  if (node.words.size() < 2 || node.words.size() > kMaxWords) {
    return malformed(fmt::format("#pragma D {}", directive));
  }
  state_.tree.externals.emplace_back(state_.tree.arena.make(std::move(node)));
  return true;
}

}  // namespace ringside::d
