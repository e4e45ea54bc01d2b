// The state that the parts of the parser share while they read one program: SourceCursor's place in
// the text, the names of types, the first error, and the tree that grows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "dif/d/syntax/parse.h"
#include "dif/d/syntax/source_cursor.h"

namespace ringside::d {

struct ParseState {
  CompileOptions& options;
  const TypeGraph& types;
  Tree& tree;
  std::unordered_set<std::string>& type_names;  // the program's own, with the word of a tag
  SourceCursor cursor;
  std::optional<Diagnostic> error;  // the first one wins

  /// Records why the parse ends.
  void stop(std::string_view tag, const Location& at, std::string text) {
    if (!error) error = Diagnostic{tag, std::move(text), at, false, {}, {}};
  }
  /// The same about the current token.
  void stop(std::string_view tag, std::string text) { stop(tag, cursor.token(), std::move(text)); }

  bool is_type_name(std::string_view name) const {
    return type_names.contains(std::string(name)) || types.find(name).has_value();
  }
  /// The same of a name with its scope, as D`name and vmlinux`name.
  bool is_scoped_type(std::string_view text) const {
    const std::size_t tick = text.rfind('`');
    return tick != 0 && tick != std::string_view::npos && is_type_name(text.substr(tick + 1));
  }
};

}  // namespace ringside::d
