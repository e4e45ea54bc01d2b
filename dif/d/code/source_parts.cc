#include "dif/d/code/source_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "dif/d/syntax/print_tree.h"

namespace ringside::d {
namespace {

constexpr unsigned kMostShownNodes = 32;  // of an expression that is shown
constexpr std::size_t kLongestText = 80;  // letters

/// Whether `e` may be printed: it is short, and the compiler has not made it. Counts its nodes.
bool is_plain(const Expr& e, unsigned& nodes) {
  if (++nodes > kMostShownNodes) return false;
  const bool has_type = e.kind == ExprKind::Cast || e.kind == ExprKind::SizeofType ||
                        e.kind == ExprKind::Offsetof || e.kind == ExprKind::Xlate;
  if (has_type && e.type_name == nullptr) return false;
  if (e.text != nullptr && is_hidden_name(*e.text)) return false;
  const auto plain = [&](const Expr* part) { return part == nullptr || is_plain(*part, nodes); };
  return plain(e.a) && plain(e.b) && plain(e.c) && std::ranges::all_of(e.list, plain);
}

/// Why the value of `e`, an address, may be 0; empty where nothing is known.
std::string why_absent(const Expr& e) {
  constexpr std::array<std::string_view, 5> kMayFail{"json", "strchr", "strrchr", "strstr",
                                                     "strtok"};
  if (e.kind == ExprKind::Cast || e.kind == ExprKind::Stringof) return why_absent(*e.a);
  if (e.kind != ExprKind::Call) return {};
  if (std::ranges::find(kMayFail, *e.text) == kMayFail.end()) return {};
  const Expr* const wanted = e.list.size() == 2 ? e.list[1] : nullptr;
  if (wanted == nullptr || wanted->kind != ExprKind::String) {
    return fmt::format("{}() found nothing", *e.text);
  }
  return fmt::format("{}() found no {}", *e.text, print_expression(*wanted));
}

/// The same of what `e` reads: itself, or what it is made of.
std::string why_part_absent(const Expr& e) {
  std::string why = why_absent(e);
  for (const Expr* part : {e.a, e.b, e.c}) {
    if (why.empty() && part != nullptr) why = why_absent(*part);
  }
  for (const Expr* part : e.list) {
    if (why.empty()) why = why_absent(*part);
  }
  return why;
}

}  // namespace

std::string shown_text(const Expr& e) {
  unsigned nodes = 0;
  if (!is_plain(e, nodes)) return {};
  std::string text = print_expression(e);
  if (text.size() <= kLongestText) return text;
  return text.substr(0, kLongestText - 3) + "...";
}

unsigned SourceParts::add(const Expr& e) {
  parts_.push_back(&e);
  return static_cast<unsigned>(parts_.size() - 1);
}

void SourceParts::describe(dif::SourceMap& map) const {
  for (dif::SourceMap::Part& part : map.parts) {
    const Expr& e = *parts_[static_cast<std::size_t>(part.line)];
    // A library's lines are not the program's.
    part.line = e.at.file == 0 ? e.at.source_line : 0;
    part.column = e.at.file == 0 ? e.at.column : 0;
    part.text = shown_text(e);
    part.absent = why_part_absent(e);
  }
}

}  // namespace ringside::d
