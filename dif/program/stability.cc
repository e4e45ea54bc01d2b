#include "dif/program/stability.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace ringside::dif {
namespace {

constexpr std::array<std::string_view, 8> kStabilities{
    "Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"};
constexpr std::array<std::string_view, 6> kClasses{"Unknown", "CPU", "Platform",
                                                   "Group",   "ISA", "Common"};

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& words, std::string_view word) {
  for (std::size_t i = 0; i < N; ++i) {
    if (same_word(words[i], word)) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

Attributes least(const Attributes& a, const Attributes& b) {
  return {std::min(a.name, b.name), std::min(a.data, b.data), std::min(a.dependency, b.dependency)};
}

bool at_least(const Attributes& attributes, const Attributes& floor) {
  return least(attributes, floor) == floor;
}

std::string_view text(Stability stability) {
  return kStabilities[static_cast<std::size_t>(stability)];
}

std::string_view text(DependencyClass dependency) {
  return kClasses[static_cast<std::size_t>(dependency)];
}

std::string to_string(const Attributes& attributes) {
  return fmt::format("{}/{}/{}", text(attributes.name), text(attributes.data),
                     text(attributes.dependency));
}

std::optional<Attributes> parse_attributes(std::string_view text) {
  const std::size_t first = text.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = text.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto name = find<Stability>(kStabilities, text.substr(0, first));
  const auto data = find<Stability>(kStabilities, text.substr(first + 1, second - first - 1));
  const auto dependency = find<DependencyClass>(kClasses, text.substr(second + 1));
  if (!name || !data || !dependency) return std::nullopt;
  return Attributes{*name, *data, *dependency};
}

}  // namespace ringside::dif
