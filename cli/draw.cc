#include "cli/draw.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include "cli/messages/messages.h"
#include "cli/output/sink.h"
#include "cli/pictures/stack_counts.h"
#include "dif/program/action_kind.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kLongestRecord = std::size_t{1} << 30;  // bytes
constexpr std::size_t kDeepestRecord = 10;                    // of objects and arrays in a record
constexpr std::size_t kMostValueMembers = 20'000;             // of structures in a record

/// The members that pictures look at, besides those named after actions and aggregating functions.
/// Others are not even stored, so that a hostile record has no object of many members, but for
/// those of a structure's value.
constexpr std::array<std::string_view, 32> kDrawnMembers{"timestamp",
                                                         "machine",
                                                         "name",
                                                         "output",
                                                         "aggregation-data",
                                                         "aggregation-name",
                                                         "aggregation-function",
                                                         "merged",
                                                         "keep",
                                                         "keys",
                                                         "buckets",
                                                         "value",
                                                         "range",
                                                         "address",
                                                         "module",
                                                         "symbol",
                                                         "provider",
                                                         "cpu",
                                                         "function",
                                                         "pid",
                                                         "tid",
                                                         "execname",
                                                         "error",
                                                         "msg",
                                                         "message",
                                                         "stack-frames",
                                                         "ustack-frames",
                                                         "aggregation-percentiles",
                                                         "percentiles",
                                                         "percentile",
                                                         "low",
                                                         "high"};

/// Decides which members of a record are stored.
class MemberFilter {
 public:
  bool keeps(int depth, const std::string& name) {
    constexpr int kItemDepth = 3;  // of the names in an item of a record's output
    if (depth <= kItemDepth) in_value_ = depth == kItemDepth && name == "value";
    if (depth > kItemDepth && in_value_) return ++value_members_ <= kMostValueMembers;
    return std::ranges::find(kDrawnMembers, name) != kDrawnMembers.end() ||
           dif::action_prototype(name) || dif::find_aggregating(name);
  }
  bool has_too_many() const { return value_members_ > kMostValueMembers; }

 private:
  bool in_value_ = false;
  std::size_t value_members_ = 0;
};

/// getline() with a bound. False at the end of the input.
Result<bool> read_line(std::istream& input, std::string& line) {
  constexpr std::size_t kPiece = 1 << 20;
  line.clear();
  std::string piece(kPiece, '\0');
  for (;;) {
    input.getline(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<std::size_t>(input.gcount());
    if (input.bad()) return fail(ErrorCode::Io, std::strerror(errno));
    const bool whole = !input.fail();
    // A line's end is counted, but not stored.
    line.append(piece, 0, whole && !input.eof() ? got - 1 : got);
    if (line.size() > kLongestRecord) {
      return fail(ErrorCode::Limit, fmt::format("it is longer than {} bytes", kLongestRecord));
    }
    if (whole) return true;
    if (input.eof()) return !line.empty();
    input.clear();  // the piece was full
  }
}

Result<Tree> parse_record(const std::string& line) {
  bool too_deep = false;
  MemberFilter filter;
  const auto keep = [&](int depth, Tree::parse_event_t event, Tree& parsed) {
    too_deep = too_deep || depth > static_cast<int>(kDeepestRecord);
    if (too_deep) return false;
    if (event != Tree::parse_event_t::key) return true;
    return filter.keeps(depth, parsed.get_ref<const Tree::string_t&>());
  };
  Tree record = Tree::parse(line, keep, false);
  if (too_deep) return fail(ErrorCode::Invalid, "it nests too deep for a record of -O jsonl");
  if (filter.has_too_many()) {
    return fail(ErrorCode::Limit,
                fmt::format("the structures in it have more than {} members", kMostValueMembers));
  }
  if (record.is_discarded()) {
    return fail(ErrorCode::Invalid, "it is no JSON: cut off, damaged, or no output of -O jsonl");
  }
  const bool is_record = record.is_object() && record.contains("timestamp") &&
                         record.contains("provider") && record.contains("name");
  if (!is_record) return fail(ErrorCode::Invalid, "it is no record of -O jsonl");
  return record;
}

/// The number of lost records or keys that a record tells of.
std::uint64_t drops_in(const Tree& record) {
  const auto count = record.find("count");
  const bool counts = record["provider"] == "dtrace" && record["name"] == "DROP" &&
                      count != record.end() && count->is_number_unsigned();
  return counts ? count->get<std::uint64_t>() : 0;
}

Result<std::uint64_t> read_file(const std::string& path,
                                const std::function<Result<void>(const Tree& record)>& take) {
  std::ifstream file(path);
  if (!file) {
    return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  return read_records(file, path, take);
}

Result<std::unique_ptr<Picture>> picture_of(const CommandLine& line) {
  if (line.before_file.empty()) return make_picture(line.settings.format);
  StackTable before;
  TRY(read_file(line.before_file, [&](const Tree& record) { return before.add(record); }));
  if (before.counts().empty()) {
    return fail(ErrorCode::NotFound, line.before_file + " has no stacks to compare with");
  }
  return make_difference(std::move(before));
}

Result<void> draw(const CommandLine& line) {
  const auto picture = TRY(picture_of(line));
  std::string text;
  const auto take = [&](const Tree& record) -> Result<void> {
    TRY(picture->add(record));
    text += picture->take_text();
    return {};
  };
  const std::string name = line.arguments.empty() ? "standard input" : line.arguments.front();
  const std::uint64_t drops =
      TRY(line.arguments.empty() ? read_records(std::cin, name, take) : read_file(name, take));
  auto drawn = picture->draw();
  if (!drawn) return fail(drawn.error().code, name + ": " + drawn.error().message);
  Sink sink(STDOUT_FILENO);
  if (!line.output_file.empty()) {
    sink = TRY(is_drawn_whole(line.settings.format) ? Sink::fill(line.output_file)
                                                    : Sink::append_to(line.output_file));
  }
  if (line.settings.format == OutputFormat::Perfetto) TRY(sink.check_takes_bytes());
  sink.write_safe(text);
  sink.write_safe(drawn->text);
  if (!sink.flush() && !sink.problem().empty()) {
    return fail(ErrorCode::Io, "cannot write output: " + sink.problem());
  }
  for (const std::string& note : drawn->notes) say(note);
  if (drops != 0)
    say(fmt::format("{}: the trace had {} drops, which the picture lacks", name, drops));
  return {};
}

}  // namespace

Result<std::uint64_t> read_records(std::istream& input, const std::string& name,
                                   const std::function<Result<void>(const Tree& record)>& take) {
  std::string line;
  std::uint64_t drops = 0;
  const auto read_one = [&]() -> Result<bool> {
    if (!TRY(read_line(input, line))) return false;
    if (line.empty()) return true;
    const Tree record = TRY(parse_record(line));
    TRY(take(record));
    drops = saturated_sum(drops, drops_in(record));
    return true;
  };
  for (std::uint64_t number = 1;; ++number) {
    const auto more = read_one();
    if (!more) {
      return fail(more.error().code,
                  fmt::format("{}: line {}: {}", name, number, more.error().message));
    }
    if (!*more) return drops;
  }
}

int run_draw(const CommandLine& line) {
  const auto done = draw(line);
  if (done) return kExitOk;
  say("draw: " + done.error().message);
  return kExitFailure;
}

}  // namespace ringside::cli
