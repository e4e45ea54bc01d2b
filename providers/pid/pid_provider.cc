// In this file, top to bottom: names, modules, what a description asks for, enabling, what is said
// of a probe.
#include "providers/pid/pid_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "disasm/decoder.h"
#include "providers/context/linux_context.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/layout.h"
#include "vmm/page_walk.h"

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

constexpr std::string_view kPidPrefix = "pid", kAllProcesses = "pid*", kPidProgram = "a.out";
constexpr std::size_t kMostWalked = 1 << 16, kMostModules = 1 << 14;
constexpr std::uint64_t kLongestListed = 1 << 20;

/// In registers; further ones lie on the process's own stack.
constexpr ArgumentPlan kUserEntryArguments = [] {
  ArgumentPlan plan;
  for (std::size_t n = 0; n < plan.arguments.size(); ++n) {
    plan.arguments[n] = n < arch::kArgumentRegisters.size()
                            ? ArgumentSource::in(arch::kArgumentRegisters[n])
                            : ArgumentSource::untold();
  }
  return plan;
}();

/// 0: all.
std::optional<std::int32_t> process_in(std::string_view provider) {
  if (provider == kAllProcesses) return 0;
  if (!provider.starts_with(kPidPrefix)) return std::nullopt;
  const auto number = parse_number<std::int32_t>(provider.substr(kPidPrefix.size()), 10);
  return number && *number > 0 ? number : std::nullopt;
}

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

}  // namespace

PidProvider::PidProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                         UserPointTable& table, ProbePoints& points)
    : Provider(kPidPrefix, kPidAttributes),
      memory_(memory),
      kernel_(kernel),
      table_(table),
      points_(points),
      layout_(guest_linux::ProcessLayout::from(kernel.types())),
      mm_program_(guest_linux::offset_of(kernel.types(), "mm_struct", {"exe_file"})),
      file_inode_(guest_linux::offset_of(kernel.types(), "file", {"f_inode"})),
      init_task_(first_task(kernel)) {}

bool PidProvider::has_name(std::string_view provider) const {
  return process_in(provider).has_value();
}

/// Files that are no ELF files of programs or libraries have no functions.
void PidProvider::add_modules(const GuestReader& reader, GuestVirt mm,
                              std::vector<Module>& modules) const {
  const auto inode_of = [&](GuestVirt file) {
    return GuestVirt(
        guest_linux::load_field<std::uint64_t>(reader, file, *file_inode_).value_or(0));
  };
  const auto program = guest_linux::load_field<std::uint64_t>(reader, mm, *mm_program_);
  const GuestVirt programs = program ? inode_of(GuestVirt(*program)) : GuestVirt(0);
  for (const auto& mapping : guest_linux::list_file_mappings(reader, *layout_, mm)) {
    if (mapping.file.raw() == 0) continue;  // the vdso is of no file
    const GuestVirt inode = inode_of(mapping.file);
    const bool is_known = std::ranges::find(modules, inode, &Module::inode) != modules.end();
    if (inode.raw() == 0 || is_known || modules.size() == kMostModules) continue;
    const std::string name = guest_linux::file_name(reader, *layout_, mapping.file);
    if (!name.empty()) modules.push_back({name, inode, inode == programs});
  }
}

/// Empty where there is no such process.
std::optional<std::vector<PidProvider::Module>> PidProvider::modules_of(
    std::uint64_t process) const {
  if (!layout_ || !file_inode_ || !mm_program_ || init_task_.raw() == 0) return std::nullopt;
  const vmm::PageTableReader reader(memory_, kernel_.table_in(memory_));
  const auto found = guest_linux::find_process(reader, *layout_, init_task_, process);
  if (!found) return std::nullopt;
  std::vector<Module> modules;
  add_modules(reader, found->mm, modules);
  return modules;
}

std::vector<PidProvider::Module> PidProvider::modules_of_all() const {
  std::vector<Module> modules;
  if (!layout_ || !file_inode_ || !mm_program_ || init_task_.raw() == 0) return modules;
  const vmm::PageTableReader reader(memory_, kernel_.table_in(memory_));
  (void)guest_linux::walk_processes(
      reader, layout_->task_tasks, init_task_, kMostWalked, [&](GuestVirt task) {
        const auto mm = guest_linux::load_field<std::uint64_t>(reader, task, layout_->task_mm);
        if (mm && *mm != 0) add_modules(reader, GuestVirt(*mm), modules);
        return true;
      });
  for (Module& each : modules) each.is_program = false;
  return modules;
}

Result<void> PidProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  const Trouble ignore = [](const dif::ProbeDescription&, const std::string&) {};
  return look(pattern, &visit, ignore);
}

Result<void> PidProvider::refusals(const dif::ProbeDescription& pattern,
                                   const RefusalVisitor& visit) {
  const Trouble tell = [&visit](const dif::ProbeDescription& name, const std::string& why) {
    visit({name, why});
  };
  return look(pattern, nullptr, tell);
}

Result<void> PidProvider::look(const dif::ProbeDescription& names, const Visitor* visit,
                               const Trouble& trouble) {
  const auto process = process_in(names.provider);
  if (!process) {
    trouble(names, "a process is named by its number (pid123), and all processes by pid*");
    return {};
  }
  const auto modules = *process == 0 ? std::optional(modules_of_all())
                                     : modules_of(static_cast<std::uint64_t>(*process));
  if (!modules) {
    trouble(names, fmt::format("the guest has no process {} with memory of its own", *process));
    return {};
  }
  std::set<std::uint32_t> published;
  const Pattern pattern{names, *process, trouble, visit != nullptr ? &published : nullptr};
  bool any_module = false, any_function = false;
  for (const Module& module : *modules) {
    const bool is_wanted = dif::field_matches(names.module, module.name) ||
                           (module.is_program && names.module == kPidProgram);
    if (!is_wanted) continue;
    any_module = true;
    any_function |= TRY(look_at(pattern, module));
  }
  // Each once, with the places of all files.
  for (const std::uint32_t number : published) (*visit)({id_at(number), entries_[number].name});
  if (!any_module && *process == 0) {
    trouble(names, fmt::format("no process of the guest has a module {} mapped", names.module));
  } else if (!any_module) {
    std::string loaded;
    for (const Module& module : *modules) {
      const auto* const functions = table_.functions_of(module.inode);
      if (functions != nullptr && !functions->all().empty()) loaded += ' ' + module.name;
    }
    trouble(names, fmt::format("process {} has no module {} mapped; it has:{}", *process,
                               names.module, loaded));
  } else if (!any_function) {
    trouble(names, names.function.empty()
                       ? "no symbols of it are in the guest's memory"
                       : fmt::format("no symbol in the guest's memory names a function {}",
                                     names.function));
  }
  return {};
}

/// Whether it has a function that the pattern wants. Of several names of one function, a pattern
/// with metacharacters gets the first.
Result<bool> PidProvider::look_at(const Pattern& pattern, const Module& module) {
  const auto* const functions = table_.functions_of(module.inode);
  if (functions == nullptr) return false;
  const std::string& wanted = pattern.names.function;
  std::optional<std::uint64_t> previous;
  for (const FileFunction& function : functions->all()) {
    if (!dif::field_matches(wanted, function.name)) continue;
    if (std::exchange(previous, function.offset) == function.offset) continue;
    TRY(publish_function(pattern, module, function));
  }
  return previous.has_value();
}

Result<std::vector<PidProvider::Entry>> PidProvider::entries_of(const Pattern& pattern,
                                                                const Module& module,
                                                                const FileFunction& function) {
  const auto wants = [&](std::string_view name) {
    return dif::field_matches(pattern.names.name, name);
  };
  const auto named = [&](std::string name, Kind kind, std::vector<Place> places) {
    return Entry{
        .name = {pattern.names.provider, module.name, std::string(function.name), std::move(name)},
        .process = pattern.process,
        .kind = kind,
        .places = std::move(places)};
  };
  const auto read = table_.reader_of(module.inode);
  std::vector<Entry> found;
  if (wants("entry")) {
    found.push_back(named("entry", Kind::Entry, {{module.inode, user_entry(read, function)}}));
  }
  if (wants("return")) {
    std::vector<Place> places;
    const auto returns = user_returns(read, *table_.functions_of(module.inode), function);
    if (returns) {
      for (const UserReturn& one : *returns) {
        places.push_back({module.inode, one.offset,
                          static_cast<std::uint32_t>(one.offset - function.offset), one.has_value,
                          one.condition});
      }
    }
    Entry entry = named("return", Kind::Return, std::move(places));
    if (!returns) pattern.trouble(entry.name, returns.error().message);
    if (returns && entry.places.empty()) pattern.trouble(entry.name, "it never returns");
    if (!entry.places.empty()) found.push_back(std::move(entry));
  }
  if (pattern.names.name == "entry" || pattern.names.name == "return") return found;
  for (const std::uint32_t at : TRY(instructions_of(read, function))) {
    std::string name = fmt::format("{:x}", at);
    if (wants(name)) {
      found.push_back(
          named(std::move(name), Kind::Instruction, {{module.inode, function.offset + at, at}}));
    }
  }
  return found;
}

Result<void> PidProvider::publish_function(const Pattern& pattern, const Module& module,
                                           const FileFunction& function) {
  for (Entry& entry : TRY(entries_of(pattern, module, function))) {
    TRY(publish(pattern, std::move(entry)));
  }
  return {};
}

/// A probe that is published can be enabled: its places have room by now.
Result<void> PidProvider::publish(const Pattern& pattern, Entry entry) {
  for (const Place& place : entry.places) {
    const auto fine = table_.examine(place.inode, place.offset);
    if (fine) continue;
    pattern.trouble(entry.name,
                    entry.kind == Kind::Return
                        ? fmt::format("+{:#x}: {}", place.in_function, fine.error().message)
                        : fine.error().message);
    return {};
  }
  if (pattern.published == nullptr) return {};
  const std::string name = entry.name.to_string();
  const auto known = numbers_.find(name);
  const auto number =
      known == numbers_.end() ? static_cast<std::uint32_t>(entries_.size()) : known->second;
  if (known == numbers_.end()) {
    if (entries_.size() == kMostProbes) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{} and what was asked for before match more than {} probes: name "
                              "functions, or entry and return",
                              pattern.names.to_string(), kMostProbes));
    }
    numbers_[name] = number;
    entries_.push_back(std::move(entry));
  } else {
    add_places(entries_[number], entry.places);
  }
  pattern.published->insert(number);
  return {};
}

/// Of another file with the same name, if they are not there.
void PidProvider::add_places(Entry& entry, std::span<const Place> places) {
  for (const Place& place : places) {
    const auto is_there = [&place](const Place& one) {
      return one.inode == place.inode && one.offset == place.offset;
    };
    if (std::ranges::none_of(entry.places, is_there)) entry.places.push_back(place);
  }
}

PidProvider::Entry* PidProvider::find(dif::ProbeId id) {
  const auto index = index_of(id);
  return index && *index < entries_.size() ? &entries_[*index] : nullptr;
}

Result<std::optional<Probe>> PidProvider::by_id(dif::ProbeId id) {
  const Entry* const entry = find(id);
  return entry == nullptr ? std::nullopt : std::optional(Probe{id, entry->name});
}

std::optional<std::string> PidProvider::why_fixed(dif::ProbeId id) const {
  (void)id;
  return "probes of processes are enabled before tracing begins";
}

bool PidProvider::is_enabled(dif::ProbeId id) const {
  const auto index = index_of(id);
  return index && *index < entries_.size() && entries_[*index].is_enabled;
}

void PidProvider::note_disabled(dif::ProbeId id) {
  if (Entry* const entry = find(id)) entry->is_enabled = false;
}

Result<void> PidProvider::enable(const Probe& probe) {
  Entry* const entry = find(probe.id);
  if (entry == nullptr) return no_such_probe();
  if (std::exchange(entry->is_enabled, true)) return {};
  for (const Place& place : entry->places) {
    Binding binding{.probe = probe.id, .site = place.in_function, .condition = place.condition};
    binding.at_function_edge = false;
    binding.process = entry->process;
    if (entry->kind == Kind::Entry) binding.plan = &kUserEntryArguments;
    if (entry->kind == Kind::Return) {
      binding.plan = place.has_value ? &kFunctionReturnArguments : &kFunctionExitArguments;
    }
    if (auto done = points_.bind_in_file(place.inode, place.offset, binding); !done) {
      entry->is_enabled = false;
      return done;
    }
  }
  return {};
}

ProbeArguments PidProvider::arguments(const Probe& probe) {
  (void)probe;
  return {};
}

std::string PidProvider::detail(const Probe& probe) {
  const Entry* const entry = find(probe.id);
  if (entry == nullptr) return {};
  std::string text = "in the file at";
  for (const Place& place : entry->places) text += fmt::format(" {:#x}", place.offset);
  return text;
}

}  // namespace ringside::providers
