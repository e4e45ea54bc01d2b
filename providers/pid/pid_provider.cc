// In this file, top to bottom: names, what a description asks for.
#include "providers/pid/pid_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "disasm/decoder.h"
#include "vmm/base/printable.h"
#include "vmm/base/similar_name.h"
#include "vmm/linux/processes/demangle.h"

namespace ringside::providers {
namespace {

using guest_linux::FileFunction;
using enum dif::Stability;
using enum dif::DependencyClass;

/// Dynamic Tracing Guide, "pid Provider", Stability.
constexpr dif::ProviderAttributes kPidAttributes{
    .provider = {Evolving, Evolving, Isa},
    .module = {Private, Private, Unknown},
    .function = {Private, Private, Unknown},
    .name = {Evolving, Evolving, Isa},
    .arguments = {Private, Private, Unknown},
};

constexpr std::string_view kPidPrefix = "pid", kAllProcesses = "pid*";
constexpr std::uint64_t kLongestListed = 1 << 20;

/// At a function's first instruction: in registers, then behind the return address.
constexpr std::string_view kUserEntryArguments =
    "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9 8@8(%rsp) 8@16(%rsp) 8@24(%rsp) 8@32(%rsp)";

/// Where a function makes its frame, a push later.
constexpr std::string_view kFramedEntryArguments =
    "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9 8@16(%rsp) 8@24(%rsp) 8@32(%rsp) 8@40(%rsp)";

/// At that of a function of Go (its ABIInternal), as far as they fit registers.
constexpr std::string_view kGoEntryArguments =
    "8@%rax 8@%rbx 8@%rcx 8@%rdi 8@%rsi 8@%r8 8@%r9 8@%r10 8@%r11";

/// The offsets of the function's instructions from its start; Unsupported where it cannot be read.
Result<std::vector<std::uint32_t>> instructions_of(const ReadFile& read,
                                                   const FileFunction& function) {
  std::vector<std::byte> text(std::min(function.size, kLongestListed));
  text.resize(read(function.offset, text));
  std::vector<std::uint32_t> found;
  for (std::size_t at = 0; at < text.size();) {
    const auto one = disasm::decode(std::span<const std::byte>(text).subspan(at), GuestVirt(at));
    if (!one) break;
    found.push_back(static_cast<std::uint32_t>(at));
    at += one->length;
  }
  return found;
}

/// Of C++ and Rust, whose names are written in another way than they stand in the file.
std::string written_as(std::string_view wanted, const FileFunction& function) {
  const bool is_one = function.name.starts_with("_Z") || function.name.starts_with("_R");
  const std::string text = is_one ? guest_linux::demangle(function.name) : std::string();
  return text.find(wanted) != text.npos
             ? fmt::format("; did you mean {}? It is {}", function.name, printable(text))
             : std::string();
}

}  // namespace

PidProvider::PidProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                         UserPointTable& table, ProbePoints& points)
    : ProcessProvider(kPidPrefix, kPidAttributes, memory, kernel, table, points),
      entry_arguments_(parse_operands(kUserEntryArguments)),
      entry_plan_(entry_arguments_.plan()),
      framed_entry_arguments_(parse_operands(kFramedEntryArguments)),
      framed_entry_plan_(framed_entry_arguments_.plan()),
      go_entry_arguments_(parse_operands(kGoEntryArguments)),
      go_entry_plan_(go_entry_arguments_.plan()) {}

/// 0: all.
std::optional<std::int32_t> PidProvider::process_in(std::string_view provider) {
  if (provider == kAllProcesses) return 0;
  if (!provider.starts_with(kPidPrefix)) return std::nullopt;
  return number_of_process(provider.substr(kPidPrefix.size()));
}

bool PidProvider::has_name(std::string_view provider) const {
  return process_in(provider).has_value();
}

Result<void> PidProvider::look(const dif::ProbeDescription& names, const Trouble& trouble,
                               std::set<std::uint32_t>* published, const Module* only) {
  const auto process = process_in(names.provider);
  if (!process) {
    trouble(names, names.provider == "pid0"
                       ? "$target is 0: name a process of the guest by -p PID, or run one by -c"
                       : "a process is named by its number (pid123), and all processes by pid*");
    return {};
  }
  const auto modules = modules_of(*process, only);
  if (!modules) {
    trouble(names, fmt::format("the guest has no process {} with memory of its own", *process));
    return {};
  }
  const Pattern pattern{names, *process, trouble, published};
  bool any_module = false, any_function = false;
  for (const Module& module : *modules) {
    if (!pattern.wants(module)) continue;
    any_module = true;
    any_function |= TRY(look_at(pattern, module));
  }
  if (!any_module) {
    tell_missing(pattern, *modules);
  } else if (!any_function) {
    const std::string searched = where_searched(pattern, *modules);
    trouble(names, names.function.empty()
                       ? fmt::format("no symbols of it were found ({}){}", searched,
                                     way_out(pattern, *modules))
                       : fmt::format("no symbol names a function {} ({}){}", names.function,
                                     searched, way_out(pattern, *modules)));
  }
  return {};
}

void PidProvider::gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) {
  const auto is_edge = [](const dif::ProbeDescription& name) {
    return name.name == "entry" || name.name == "return";
  };
  sum_up_missing(pattern, is_edge, visit);
}

/// "libx.so: 120 functions by .dynsym in the page cache", and so on of some modules.
std::string PidProvider::where_searched(const Pattern& pattern,
                                        const std::vector<Module>& modules) {
  constexpr std::size_t kMostTold = 3;
  std::string text;
  std::size_t count = 0;
  for (const Module& module : modules) {
    const auto* const functions =
        pattern.wants(module) ? table().functions_of(module.inode) : nullptr;
    if (functions == nullptr || ++count > kMostTold) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", module.name, functions->searched());
  }
  if (count > kMostTold) text += fmt::format("; and {} more files", count - kMostTold);
  return text.empty() ? "its file cannot be read" : text;
}

/// To follow a message that no function has the name; empty: there is nothing to tell.
std::string PidProvider::way_out(const Pattern& pattern, const std::vector<Module>& modules) {
  const std::string& wanted = pattern.names.function;
  const bool is_name = !wanted.empty() && !dif::is_glob(wanted);
  const std::string changed = wanted + '.', picked = "__" + wanted + '_';
  SimilarName similar(wanted);
  bool is_whole = true, has_file = false, has_functions = false;
  for (const Module& module : modules) {
    const auto* const functions =
        pattern.wants(module) ? table().functions_of(module.inode) : nullptr;
    if (functions == nullptr) continue;
    is_whole = is_whole && functions->is_whole();
    has_file = true;
    has_functions = has_functions || !functions->all().empty();
    for (const FileFunction& each : functions->all()) {
      if (is_name && each.name.starts_with(changed)) {
        return fmt::format("; the compiler has made {} of it", each.name);
      }
      if (is_name && each.name.starts_with(picked)) {
        return fmt::format("; a resolver may pick one of {}*, as {}", picked, each.name);
      }
      if (!is_name) continue;
      if (std::string text = written_as(wanted, each); !text.empty()) return text;
      similar.offer(each.name);
    }
  }
  if (is_whole && has_file && !has_functions) {
    return "; --sysroot names a folder with a copy of the file that has symbols, or with its debug "
           "file";
  }
  if (is_whole) return did_you_mean(similar.best());
  return "; in the guest, 'cat FILE > /dev/null' reads what is not in memory, or --sysroot names a "
         "folder with a copy of the file";
}

/// A module.
void PidProvider::tell_missing(const Pattern& pattern, const std::vector<Module>& modules) {
  if (pattern.process == 0) {
    pattern.trouble(pattern.names, fmt::format("no process of the guest has a module {} mapped",
                                               pattern.names.module));
    return;
  }
  std::string loaded;
  for (const Module& module : modules) {
    const auto* const functions = table().functions_of(module.inode);
    if (functions != nullptr && !functions->all().empty()) loaded += ' ' + module.name;
  }
  pattern.trouble(pattern.names, fmt::format("process {} has no module {} mapped; it has:{}",
                                             pattern.process, pattern.names.module, loaded));
}

/// Whether it has a function that the pattern wants. Of several names of one function, a pattern
/// with metacharacters gets the first.
Result<bool> PidProvider::look_at(const Pattern& pattern, const Module& module) {
  const std::string& wanted = pattern.names.function;
  const auto* functions = functions_of(module);
  const auto has_it = [&wanted](const FileFunction& function) {
    return dif::field_matches(wanted, function.name);
  };
  const bool is_one = !wanted.empty() && !dif::is_glob(wanted);
  if (functions != nullptr && !(is_one && std::ranges::any_of(functions->all(), has_it))) {
    functions = functions_of(module, pattern.servers());
  }
  if (functions == nullptr) return false;
  std::optional<std::uint64_t> previous;
  for (const FileFunction& function : functions->all()) {
    if (!dif::field_matches(wanted, function.name)) continue;
    if (std::exchange(previous, function.offset) == function.offset) continue;
    TRY(publish(pattern, TRY(entries_of(pattern, module, function))));
  }
  return previous.has_value();
}

PidProvider::Place PidProvider::entry_place(const Module& module, const FileFunction& function) {
  const auto read = table().reader_of(module.inode);
  // A program of Go may have parts in C, whose names have no package.
  const bool is_of_go = table().functions_of(module.inode)->is_of_go() &&
                        function.name.find('.') != std::string_view::npos;
  if (is_of_go) return {.at = {module.inode, go_entry(read, function)}, .plan = &go_entry_plan_};
  const std::uint64_t entry = table().entry_of(module.inode, function);
  if (!table().examine(module.inode, entry)) {
    const auto framed = frame_entry(read, entry);
    if (framed) return {.at = {module.inode, *framed}, .plan = &framed_entry_plan_};
  }
  return {.at = {module.inode, entry}, .plan = &entry_plan_};
}

Result<std::vector<PidProvider::Entry>> PidProvider::entries_of(const Pattern& pattern,
                                                                const Module& module,
                                                                const FileFunction& function) {
  const auto wants = [&](std::string_view name) {
    return dif::field_matches(pattern.names.name, name);
  };
  const auto named = [&](std::string name, std::vector<Place> places) {
    return Entry{
        .name = {pattern.names.provider, module.name, std::string(function.name), std::move(name)},
        .process = pattern.process,
        .places = std::move(places)};
  };
  const auto read = table().reader_of(module.inode);
  std::vector<Entry> found;
  const FilePlace begins{module.inode, function.offset};
  if (wants("entry")) {
    found.push_back(named("entry", {entry_place(module, function)}));
    found.back().function = begins;
  }
  if (wants("return")) {
    std::vector<Place> places;
    const auto returns = user_returns(read, *table().functions_of(module.inode),
                                      table().pieces_of(module.inode), function);
    if (returns) {
      for (const UserReturn& one : *returns) {
        places.push_back(
            {.at = {module.inode, one.offset},
             .in_function = static_cast<std::uint32_t>(one.offset - function.offset),
             .plan = one.has_value ? &kFunctionReturnArguments : &kFunctionExitArguments,
             .condition = one.condition});
      }
    }
    Entry entry = named("return", std::move(places));
    entry.function = begins;
    if (!returns) pattern.trouble(entry.name, returns.error().message);
    // Of a function that never returns nothing is missed.
    if (returns && entry.places.empty() && pattern.published == nullptr)
      pattern.trouble(entry.name, "no return instruction is in it");
    if (!entry.places.empty()) found.push_back(std::move(entry));
  }
  if (pattern.names.name == "entry" || pattern.names.name == "return") return found;
  const std::size_t edges = found.size();
  for (const std::uint32_t at : TRY(instructions_of(read, function))) {
    std::string name = fmt::format("{:x}", at);
    if (wants(name)) {
      found.push_back(named(std::move(name),
                            {{.at = {module.inode, function.offset + at}, .in_function = at}}));
    }
  }
  const bool are_named = !dif::is_glob(pattern.names.name) && !pattern.names.function.empty() &&
                         !dif::is_glob(pattern.names.function);
  if (found.size() == edges && are_named) {
    pattern.trouble(
        {pattern.names.provider, module.name, std::string(function.name), pattern.names.name},
        "no instruction begins there; a probe's name is entry, return, or the distance of an "
        "instruction from the function's first byte, in hexadecimal (1c)");
  }
  return found;
}

}  // namespace ringside::providers
