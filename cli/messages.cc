#include "cli/messages.h"

#include <fmt/format.h>

#include <cstdio>

#include "vmm/base/utf8.h"

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
    case DropKind::SpeculationBusy:
      return {"SPECBUSY", "failed ", "speculation", " (available buffer(s) still busy)"};
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

bool names_address(FaultKind kind) {
  return kind == FaultKind::BadAddress || kind == FaultKind::BadAlignment ||
         kind == FaultKind::BadStack;
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
  const std::string line = fmt::format("{}: {}\n", program_name(), terminal_text(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
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

}  // namespace ringside::cli
