#include "vmm/linux/processes/perf_map.h"

#include <algorithm>
#include <vector>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kAtOnce = 1 << 20;
constexpr std::size_t kOverhead = 96;  // of a node and its string
constexpr int kHexadecimal = 16;

/// Takes the text up to a blank off its front.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

}  // namespace

/// A line of another form is no line. What it replaces goes.
void PerfMap::take(std::string_view line) {
  const std::string_view start = take_word(line), size = take_word(line);
  const auto address = parse_number<std::uint64_t>(start, kHexadecimal);
  const auto bytes = parse_number<std::uint64_t>(size, kHexadecimal);
  if (!address || !bytes || *bytes == 0 || line.empty()) return;
  const auto end = *address + std::min(*bytes, UINT64_MAX - *address);
  auto first = code_.lower_bound(*address);
  if (first != code_.begin()) {
    auto& [before, code] = *std::prev(first);
    code.size = std::min(code.size, *address - before);
  }
  while (first != code_.end() && first->first < end) {
    bytes_ -= first->second.name.size() + kOverhead;
    first = code_.erase(first);
  }
  if (code_.size() == kMostNames) return;
  std::string name = printable(line.substr(0, kLongestName));
  bytes_ += name.size() + kOverhead;
  code_.emplace_hint(first, *address, Code{*bytes, std::move(name)});
}

void PerfMap::read_more(const FileBytes& file) {
  if (file.size() < done_) *this = {};
  const std::uint64_t end = std::min(file.size(), kMostBytes);
  std::vector<char> buffer;
  while (done_ < end) {
    buffer.resize(std::min<std::uint64_t>(kAtOnce, end - done_));
    const std::size_t there = file.read(done_, std::as_writable_bytes(std::span(buffer)));
    std::string_view text(buffer.data(), there);
    const std::size_t lines = text.rfind('\n');
    if (lines == text.npos) return;
    done_ += lines + 1;
    for (text = text.substr(0, lines + 1); !text.empty();) {
      const std::string_view line = text.substr(0, text.find('\n'));
      take(line);
      text.remove_prefix(line.size() + 1);
    }
  }
}

std::optional<PerfMap::Found> PerfMap::at(std::uint64_t address) const {
  const auto above = code_.upper_bound(address);
  if (above == code_.begin()) return std::nullopt;
  const auto& [start, code] = *std::prev(above);
  if (address - start >= code.size) return std::nullopt;
  return Found{code.name, address - start};
}

}  // namespace ringside::guest_linux
