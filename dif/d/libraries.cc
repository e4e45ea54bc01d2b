#include "dif/d/libraries.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringside::d {
namespace {

struct Dependency {
  std::string_view what, name;
  int line = 1;
};

/// The first words of one line, as many as depends_on takes.
std::array<std::string_view, 5> words_of(std::string_view line) {
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    word = line.substr(begin, end - begin);
    line.remove_prefix(end);
  }
  return words;
}

/// Found without parsing, because a library can only be parsed after those that it depends on.
std::vector<Dependency> dependencies_of(std::string_view text) {
  std::vector<Dependency> result;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t sign = line.find_first_not_of(" \t\r\f\v");
    if (sign == std::string_view::npos || line[sign] != '#') continue;
    const auto [pragma, d, directive, what, name] = words_of(line.substr(sign + 1));
    if (pragma == "pragma" && d == "D" && directive == "depends_on") {
      result.push_back({what, name, number});
    }
  }
  return result;
}

class Sorter {
 public:
  Sorter(const std::vector<LibrarySource>& libraries, Environment& environment)
      : libraries_(libraries), environment_(environment), states_(libraries.size()) {}

  Checked<bool> add(std::size_t index, int depth = 0) {
    State& state = states_[index];
    if (state != State::New) return state == State::In;
    if (depth > kMaxDepth) return false;
    state = State::Open;
    bool met = true;
    for (const Dependency& need : dependencies_of(libraries_[index].text)) {
      if (need.what == "provider") met = met && environment_.has_provider(need.name);
      if (need.what == "module") met = met && environment_.has_module(need.name);
      if (need.what == "library") met = TRY(add_library(index, need, depth)) && met;
    }
    states_[index] = met ? State::In : State::Out;
    if (met) order_.push_back(index);
    return met;
  }

  std::vector<std::size_t> take() { return std::move(order_); }

 private:
  enum class State : std::uint8_t { New, Open, In, Out };
  static constexpr int kMaxDepth = 200;

  static Location place(std::size_t library, const Dependency& need) {
    Location at;
    at.line = at.source_line = need.line;
    at.file = static_cast<int>(library) + 1;
    return at;
  }

  Checked<bool> add_library(std::size_t from, const Dependency& need, int depth) {
    const auto found = std::ranges::find(libraries_, need.name, library_name);
    if (found == libraries_.end()) {
      return complain("D_PRAGMA_DEPEND", place(from, need),
                      fmt::format("invalid library dependency: there is no library {}", need.name));
    }
    const auto index = static_cast<std::size_t>(found - libraries_.begin());
    if (states_[index] == State::Open) {
      return complain("D_PRAGMA_DEPEND", place(from, need),
                      fmt::format("libraries depend on each other: {} and {}",
                                  libraries_[from].name, need.name));
    }
    return add(index, depth + 1);
  }

  const std::vector<LibrarySource>& libraries_;
  Environment& environment_;
  std::vector<State> states_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::string_view library_name(const LibrarySource& library) {
  return std::string_view(library.name).substr(library.name.find_last_of('/') + 1);
}

std::vector<std::string_view> libraries_needed_by(const LibrarySource& library) {
  std::vector<std::string_view> names;
  for (const Dependency& need : dependencies_of(library.text)) {
    if (need.what == "library") names.push_back(need.name);
  }
  return names;
}

Checked<std::vector<std::size_t>> library_order(const std::vector<LibrarySource>& libraries,
                                                Environment& environment) {
  Sorter sorter(libraries, environment);
  for (std::size_t i = 0; i < libraries.size(); ++i) TRY(sorter.add(i));
  return sorter.take();
}

}  // namespace ringside::d
