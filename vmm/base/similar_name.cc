#include "vmm/base/similar_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

namespace ringside {
namespace {

constexpr std::size_t kLongest = 128;  // longer names are not compared

char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

/// A name with more mistakes than this is another name.
std::size_t most_mistakes(std::size_t a, std::size_t b) {
  const std::size_t longer = std::max(a, b), shorter = std::min(a, b);
  if (shorter <= 1) return 0;
  if (longer - shorter <= 1) return std::max<std::size_t>(longer / 3, 1);
  return (longer + 2) / 3;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > most || a.size() > kLongest || b.size() > kLongest) return most + 1;
  using Row = std::array<std::size_t, kLongest + 1>;
  Row rows[3];
  Row *before = &rows[0], *last = &rows[1], *row = &rows[2];  // of i - 2, i - 1 and i
  for (std::size_t j = 0; j <= b.size(); ++j) (*last)[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t least = (*row)[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      std::size_t cost = std::min({(*last)[j] + 1, (*row)[j - 1] + 1, (*last)[j - 1] + !same});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) cost = std::min(cost, (*before)[j - 2] + 1);
      (*row)[j] = cost;
      least = std::min(least, cost);
    }
    if (least > most) return most + 1;
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min((*last)[b.size()], most + 1);
}

void SimilarName::offer(std::string_view name) {
  if (name == typed_ || name.empty()) return;
  const std::size_t most = most_mistakes(typed_.size(), name.size());
  const std::size_t distance = edit_distance(typed_, name, most);
  // Not a word that has nothing of the other one but its length: "ab" for "xy".
  if (distance > most || distance >= std::max(typed_.size(), name.size())) return;
  const auto [typed, offered] = std::ranges::mismatch(typed_, name);
  const auto prefix = static_cast<std::size_t>(offered - name.begin());
  // Less is nearer.
  const auto rank = [&](std::size_t mistakes, std::size_t same_letters,
                        std::string_view candidate) {
    return std::tuple(mistakes, candidate.size() != typed_.size(), typed_.size() - same_letters,
                      candidate);
  };
  if (!best_.empty() && rank(distance, prefix, name) >= rank(distance_, prefix_, best_)) return;
  best_ = name;
  distance_ = distance;
  prefix_ = prefix;
}

std::string did_you_mean(std::string_view name, std::string_view sigil) {
  return name.empty() ? std::string() : "; did you mean " + std::string(sigil).append(name) + "?";
}

}  // namespace ringside
