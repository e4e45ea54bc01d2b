// "Did you mean": finds the known name that is nearest to an unknown one. Used where messages say
// that a name does not exist: options, commands, probes, names in D. Names may come from a guest;
// long ones are not compared.
// Fire context: no.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ringside {

/// How many letters must be inserted, removed, changed or swapped with a neighbour to turn one text
/// into the other. Upper and lower case are equal. Returns `most` + 1 if the distance is more than
/// `most`. (Damerau's distance in its restricted form: no letter is moved twice.)
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most);

class SimilarName {
 public:
  /// `typed`, which is not kept, must outlive this object.
  explicit SimilarName(std::string_view typed) : typed_(typed) {}

  void offer(std::string_view name);
  /// The nearest name of those offered; of several one that is as long, then the one that begins
  /// more like `typed`. Empty where none is near: more than a third of its letters are wrong.
  const std::string& best() const { return best_; }

 private:
  std::string_view typed_;
  std::string best_;
  std::size_t distance_ = 0, prefix_ = 0;  // of best_
};

/// The nearest of `names`, of which `projection` makes text.
template <class Range, class Projection>
std::string similar_name(std::string_view typed, const Range& names, Projection projection) {
  SimilarName similar(typed);
  for (const auto& name : names) similar.offer(projection(name));
  return similar.best();
}

/// "; did you mean NAME?", to follow a message; empty for an empty name. `sigil`: what D writes
/// before such a name.
std::string did_you_mean(std::string_view name, std::string_view sigil = "");

}  // namespace ringside
