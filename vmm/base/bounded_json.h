// Parses JSON from a hostile peer, with a limit for nested levels. nlohmann::json copies and
// compares a value by recursion. So half a million brackets, a megabyte of text, would use up a
// thread's stack.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ringside {

/// QEMU's deepest answers and our own files have fewer than 20.
inline constexpr int kMostJsonLevels = 100;

/// The value of `text`; is_discarded() where that is no JSON, or one within another more than
/// kMostJsonLevels times. Json: nlohmann's json or ordered_json.
template <class Json = nlohmann::json>
Json parse_bounded(std::string_view text) {
  bool too_deep = false;
  const auto keep = [&too_deep](int depth, typename Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMostJsonLevels;
    return !too_deep;
  };
  Json value = Json::parse(text, keep, /*allow_exceptions=*/false);
  return too_deep ? Json(Json::value_t::discarded) : value;
}

}  // namespace ringside
