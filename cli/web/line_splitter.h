// Parts a stream into lines without keeping long ones. Used for the output of a page's programs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ringside::cli {

class LineSplitter {
 public:
  /// A whole line without its newline; of one that is longer than `most`, its length alone.
  using Take = std::function<void(std::string_view line, std::size_t length)>;

  LineSplitter(std::size_t most, Take take) : most_(most), take_(std::move(take)) {}

  void add(std::string_view text) {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos;
         text.remove_prefix(end + 1)) {
      keep(text.substr(0, end));
      take_(length_ > most_ ? std::string_view() : std::string_view(line_), length_);
      line_.clear();
      length_ = 0;
    }
    keep(text);
  }
  /// Whether a line has begun and not ended.
  bool is_inside() const { return length_ != 0; }

 private:
  void keep(std::string_view text) {
    length_ += text.size();
    if (length_ <= most_) line_ += text;
  }

  std::size_t most_;
  Take take_;
  std::string line_;
  std::size_t length_ = 0;
};

}  // namespace ringside::cli
