// In this file, top to bottom: names, the parts of records, one key, aggregations, the result.
#include "cli/pictures/stack_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63;  // addresses from here on

/// One line that is not empty. A ';' would part frames in folded stacks, where ':' is usual for it.
std::string one_line(std::string_view text) {
  std::string line = terminal_text(text, Breaks::Escaped);
  std::ranges::replace(line, ';', ':');
  if (line.find_first_not_of(' ') == std::string::npos) return "-";
  // Readers of folded stacks take a number after a blank for a count.
  const std::size_t blank = line.rfind(' ');
  if (blank != std::string::npos &&
      line.find_first_not_of("0123456789.", blank + 1) == std::string::npos) {
    std::ranges::replace(line, ' ', '_');
  }
  return line;
}

}  // namespace

const std::string* text_member(const Tree& tree, std::string_view name) {
  const auto found = tree.find(name);
  return found == tree.end() ? nullptr : found->get_ptr<const Tree::string_t*>();
}

namespace {

/// Without the offset, so that all addresses of a function are one frame.
std::string frame_text(const Tree& frame, const std::string& name) {
  const std::string* const module = text_member(frame, "module");
  const std::string* const symbol = text_member(frame, "symbol");
  if (symbol != nullptr) return module != nullptr ? *module + '`' + *symbol : *symbol;
  if (module != nullptr) return *module + "`[unknown]";
  if (name.starts_with("0x")) return "[unknown]";
  return name.substr(0, name.rfind("+0x"));
}

bool is_stack_key(const Tree& key) {
  return key.is_array();
}

}  // namespace

std::string key_text(const Tree& key) {
  if (is_stack_key(key)) return "(stack)";
  if (key.is_null()) return "-";
  if (const auto* const text = key.get_ptr<const Tree::string_t*>()) return one_line(*text);
  return one_line(key.dump(-1, ' ', false, Tree::error_handler_t::replace));
}

std::string machine_of(const Tree& record, const Tree& item) {
  const std::string* const machine = text_member(record, "machine");
  return machine == nullptr || item.contains("merged") ? std::string() : *machine;
}

const Tree* emptied_aggregation(const Tree& item) {
  for (const std::string_view action : {"clear", "trunc"}) {
    const auto found = item.find(action);
    if (found != item.end() && !item.contains("keep")) return &*found;
  }
  return nullptr;
}

tl::unexpected<Error> malformed_record(std::string_view why) {
  return fail(ErrorCode::Invalid, std::string(why));
}

Result<std::string> aggregation_name(const Tree& item) {
  const Tree* const emptied = emptied_aggregation(item);
  const auto named = item.find("aggregation-name");
  const Tree* const name = emptied != nullptr ? emptied : named == item.end() ? nullptr : &*named;
  if (name == nullptr || !name->is_string()) return malformed_record("an aggregation has no name");
  const auto& text = name->get_ref<const Tree::string_t&>();
  return text == "_" ? "@" : one_line('@' + text);
}

std::size_t StackTable::FramesHash::operator()(const Frames& frames) const {
  return std::accumulate(frames.begin(), frames.end(), std::size_t{0},
                         [](std::size_t hash, std::uint32_t frame) {
                           return (hash ^ frame) * 0x9e37'79b9'7f4a'7c15 + (hash >> 32);
                         });
}

std::uint32_t StackTable::intern(std::string text, FrameKind kind) {
  std::string id = static_cast<char>('0' + static_cast<int>(kind)) + text;
  const auto [at, added] =
      ids_.try_emplace(std::move(id), static_cast<std::uint32_t>(names_.size()));
  if (added) names_.push_back({std::move(text), kind});
  return at->second;
}

/// Root first: a record has the innermost frame first.
Result<void> StackTable::append_frames(const Tree& stack) {
  if (stack.size() > kMostFrames - std::min(kMostFrames, frames_.size())) {
    return malformed_record(fmt::format("a stack has more than {} frames", kMostFrames));
  }
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    if (!frame->is_object()) return malformed_record("a frame of a stack is no object");
    const std::string* const name = text_member(*frame, "name");
    const std::string* const address = text_member(*frame, "address");
    if (name == nullptr || address == nullptr) {
      return malformed_record("a frame of a stack lacks its name or address");
    }
    std::string_view digits = *address;
    digits.remove_prefix(std::min<std::size_t>(digits.starts_with("0x") ? 2 : 0, digits.size()));
    const auto at = take_number<std::uint64_t>(digits, 16);
    if (!at) return malformed_record("the address of a frame is no number");
    const FrameKind kind = *at >= kKernelHalf ? FrameKind::Kernel : FrameKind::User;
    const std::string raw = static_cast<char>('0' + static_cast<int>(kind)) + *name;
    auto known = raw_.find(raw);
    if (known == raw_.end()) {
      known = raw_.emplace(raw, intern(one_line(frame_text(*frame, *name)), kind)).first;
    }
    frames_.push_back(known->second);
  }
  return {};
}

/// Into frames_, root first: the parts before the stacks, the process's stack, the kernel's stack.
/// False: the key does not end in stacks.
Result<bool> StackTable::take_key(const Tree& keys) {
  frames_.clear();
  std::size_t first = keys.size();
  while (first > 0 && is_stack_key(keys[first - 1])) --first;
  if (first == keys.size()) return false;
  for (std::size_t i = 0; i < first; ++i) {
    frames_.push_back(intern(key_text(keys[i]), FrameKind::Key));
  }
  Frames user, kernel;
  for (; first < keys.size(); ++first) {
    const Frames root = std::move(frames_);
    frames_.clear();
    TRY(append_frames(keys[first]));
    const bool is_kernels = !frames_.empty() && names_[frames_.back()].kind == FrameKind::Kernel;
    Frames& half = is_kernels ? kernel : user;
    // ustack() of a kernel's thread is the kernel's stack again.
    if (frames_.size() > half.size()) half = std::move(frames_);
    frames_ = root;
  }
  frames_.insert(frames_.end(), user.begin(), user.end());
  frames_.insert(frames_.end(), kernel.begin(), kernel.end());
  if (frames_.empty()) frames_.push_back(intern("[no stack]", FrameKind::Key));
  return true;
}

Result<void> StackTable::take(Aggregation& aggregation, const std::string& name, const Tree& data) {
  aggregation.shown.clear();
  for (const Tree& entry : data) {
    const auto keys = entry.find("keys");
    if (!entry.is_object() || keys == entry.end() || !keys->is_array()) {
      return malformed_record("an entry of \"aggregation-data\" lacks its keys");
    }
    auto value = entry.find("count");
    if (value == entry.end()) value = entry.find("sum");
    const bool ends_in_stacks = TRY(take_key(*keys));
    if (value == entry.end() || !ends_in_stacks) {
      others_.insert(name);
      return {};
    }
    if (!value->is_number_integer()) return malformed_record("the value of a key is no integer");
    if (!value->is_number_unsigned() && value->get<std::int64_t>() < 0) {
      ++negatives_;
      continue;
    }
    std::uint64_t& sum = aggregation.shown[frames_];
    sum = saturated_sum(sum, value->get<std::uint64_t>());
  }
  return {};
}

Result<void> StackTable::add(const Tree& record) {
  if (const std::string* const machine = text_member(record, "machine")) machines_.insert(*machine);
  const auto output = record.find("output");
  if (output == record.end()) return {};
  if (!output->is_array()) return malformed_record("\"output\" is no array");
  for (const Tree& item : *output) {
    if (!item.is_object()) return malformed_record("an item of \"output\" is no object");
    const Tree* const emptied = emptied_aggregation(item);
    const auto data = item.find("aggregation-data");
    if (emptied == nullptr && data == item.end()) continue;
    const std::string name = TRY(aggregation_name(item));
    Aggregation& aggregation = aggregations_[{machine_of(record, item), name}];
    if (emptied == nullptr) {
      if (!data->is_array()) return malformed_record("\"aggregation-data\" is no array");
      TRY(take(aggregation, name, *data));
      continue;
    }
    for (const auto& [frames, count] : aggregation.shown) {
      std::uint64_t& sum = aggregation.before[frames];
      sum = saturated_sum(sum, count);
    }
    aggregation.shown.clear();
  }
  return {};
}

std::vector<StackCounts> StackTable::counts() const {
  std::vector<std::uint32_t> order(names_.size()), rank(names_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    return std::tie(names_[a].text, names_[a].kind) < std::tie(names_[b].text, names_[b].kind);
  });
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  const auto before = [&](const StackCounts::Sample& a, const StackCounts::Sample& b) {
    return std::ranges::lexicographical_compare(
        a.frames, b.frames, {}, [&](std::uint32_t frame) { return rank[frame]; },
        [&](std::uint32_t frame) { return rank[frame]; });
  };
  std::vector<StackCounts> all;
  for (const auto& [id, aggregation] : aggregations_) {
    Counts sum = aggregation.before;
    for (const auto& [frames, count] : aggregation.shown) {
      sum[frames] = saturated_sum(sum[frames], count);
    }
    StackCounts counts{id.first, id.second, {}, 0};
    for (const auto& [frames, count] : sum) {
      if (count == 0) continue;
      counts.samples.push_back({frames, count});
      counts.total = saturated_sum(counts.total, count);
    }
    if (counts.samples.empty()) continue;
    std::ranges::sort(counts.samples, before);
    all.push_back(std::move(counts));
  }
  return all;
}

}  // namespace ringside::cli
