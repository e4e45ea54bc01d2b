#include "cli/messages/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/messages/progress.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

struct DropWords {
  std::string_view tag;
  std::string_view before;  // between the number and "drop(s)"
  std::string_view noun;
  std::string_view after;
  bool per_cpu = false;
};

DropWords words_of(dif::DropKind kind) {
  using dif::DropKind;
  switch (kind) {
    case DropKind::Principal: return {"PRINCIPAL", "", "drop", "", true};
    case DropKind::Aggregation: return {"AGGREGATION", "aggregation ", "drop", "", true};
    case DropKind::Dynamic: return {"DYNAMIC", "dynamic variable ", "drop", ""};
    case DropKind::DynamicRinse:
      return {"DYNRINSE", "dynamic variable ", "drop", " with non-empty rinsing list"};
    case DropKind::DynamicDirty:
      return {"DYNDIRTY", "dynamic variable ", "drop", " with non-empty dirty list"};
    case DropKind::Speculation: return {"SPEC", "speculative ", "drop", ""};
    case DropKind::SpeculationUnavailable:
      return {"SPECUNAVAIL", "failed ", "speculation", " (no speculative buffer available)"};
    case DropKind::StackString:
      return {"STKSTROVERFLOW", "jstack()/ustack() string table ", "overflow", ""};
    case DropKind::DoubleError: return {"DBLERROR", "", "error", " in ERROR probe enabling"};
  }
  return {"UNKNOWN", "", "drop", ""};
}

std::string& path_storage() {
  static std::string path = "ringside";
  return path;
}

thread_local const MessageReceiver* receiver_of_thread = nullptr;

bool names_address(FaultKind kind) {
  return kind == FaultKind::BadAddress || kind == FaultKind::BadAlignment ||
         kind == FaultKind::BadStack;
}

/// How many numbers of a report's action belong to `action`: one for each argument, at least one.
/// A count() has one of its own after its keys, as it has in DTrace.
std::size_t numbers_of(const dif::Action& action, const dif::Program& program) {
  const bool counts =
      action.kind == dif::ActionKind::Aggregate &&
      program.aggregations[action.aggregations[0]].function == dif::AggregateFunction::Count;
  return std::max<std::size_t>(action.arguments.size() + (counts ? 1 : 0), 1);
}

/// Where the code comes from that a report is about: arguments are counted from 1; 0 is the
/// predicate. Null where there is none.
const dif::SourceMap* source_of(const dif::FaultReport& report, const dif::Program& program,
                                const dif::Clause& clause) {
  if (report.action == 0) return clause.predicate ? &clause.predicate->source : nullptr;
  std::size_t number = report.action;
  for (const dif::Action& action : clause.actions) {
    const std::size_t count = numbers_of(action, program);
    if (number > count) {
      number -= count;
      continue;
    }
    const bool has_code =
        number <= action.arguments.size() && !action.arguments[number - 1].source.parts.empty();
    return has_code ? &action.arguments[number - 1].source : &action.source;
  }
  return nullptr;
}

/// The reason of a fault as far as it is known; empty where nothing is.
std::string hint_of(const Fault& fault, const dif::SourceMap::Part& part,
                    std::uint32_t string_size) {
  constexpr std::uint64_t kPage = 4096, kUserEnd = std::uint64_t{1} << 47;
  if (fault.kind == FaultKind::NoScratch) return "-x scratchsize=SIZE gives more";
  if (fault.kind != FaultKind::BadAddress) return {};
  if (fault.address < kPage) {
    if (part.absent.empty()) return "a null pointer";
    return part.absent.starts_with("json()")
               ? fmt::format("{} (text is cut at strsize={})", part.absent, string_size)
               : part.absent;
  }
  if (fault.address >= kUserEnd) return {};
  return part.text.starts_with("copyin")
             ? "the process has nothing there, or the page is not in memory"
             : "an address of user memory, which copyinstr() and copyin() read";
}

}  // namespace

void set_program_name(std::string_view path) {
  if (!path.empty() && !path.ends_with('/')) path_storage() = path;
}

const std::string& program_path() {
  return path_storage();
}

std::string program_name() {
  const std::string& path = path_storage();
  return path.substr(path.find_last_of('/') + 1);
}

void say(std::string_view text) {
  if (receiver_of_thread != nullptr) return (*receiver_of_thread)(text);
  Progress::of_stderr().write(fmt::format("{}: {}\n", program_name(), terminal_text(text)));
}

void show_progress(std::string what) {
  if (receiver_of_thread != nullptr) return;
  Progress& progress = Progress::of_stderr();
  what.empty() ? progress.clear() : progress.show(std::move(what));
}

MessagesTo::MessagesTo(const MessageReceiver& receiver)
    : before_(std::exchange(receiver_of_thread, &receiver)) {}

MessagesTo::~MessagesTo() {
  receiver_of_thread = before_;
}

bool is_per_cpu(dif::DropKind kind) {
  return words_of(kind).per_cpu;
}

std::string drop_text(dif::DropKind kind, std::uint64_t count, unsigned cpu, bool tagged) {
  const DropWords words = words_of(kind);
  std::string text = tagged ? fmt::format("[DTRACEDROP_{}] ", words.tag) : std::string();
  text += fmt::format("{} {}{}{}{}", count, words.before, words.noun, count == 1 ? "" : "s",
                      words.after);
  if (words.per_cpu) text += fmt::format(" on CPU {}", cpu);
  return text;
}

std::string fault_message(const dif::FaultReport& report, dif::ProbeId probe,
                          const dif::ProbeDescription& name) {
  std::string text = fmt::format("error on enabled probe ID {} (ID {}: {}): {}", report.ecb.value,
                                 probe.value, name.to_string(), fault_text(report.fault.kind));
  if (names_address(report.fault.kind)) text += fmt::format(" (0x{:x})", report.fault.address);
  text += report.action == 0 ? std::string(" in predicate")
                             : fmt::format(" in action #{}", report.action);
  if (report.fault.pc != dif::kNoPc) text += fmt::format(" at DIF offset {}", report.fault.pc);
  return text;
}

std::string fault_cause(const dif::FaultReport& report, const dif::Program& program,
                        const dif::Clause& clause,
                        const std::function<std::string(int line)>& place,
                        std::uint32_t string_size) {
  const dif::SourceMap* const source = source_of(report, program, clause);
  if (source == nullptr) return {};
  // Outside of DIF it is the use of the object's value that failed.
  const bool inside = report.fault.pc != dif::kNoPc;
  const std::uint32_t instruction =
      inside ? report.fault.pc / static_cast<std::uint32_t>(sizeof(std::uint32_t)) : UINT32_MAX;
  const dif::SourceMap::Part* const part = source->at(instruction);
  if (part == nullptr) return {};
  std::string text;
  const auto add = [&text](const std::string& what) {
    if (!what.empty()) text += ": " + what;
  };
  if (part->line != 0 && place) add(place(part->line));
  add(hint_of(report.fault, *part, string_size));
  add(part->text);
  return text;
}

}  // namespace ringside::cli
