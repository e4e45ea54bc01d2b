// In this file, top to bottom: modules, descriptions, enabling, what is said of a probe.
#include "providers/pid/process_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "providers/context/linux_context.h"
#include "providers/pid/missing_probes.h"
#include "vmm/base/end_order.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/layout.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

constexpr std::string_view kProgram = "a.out";
constexpr std::size_t kMostWalked = 1 << 16, kMostModules = 1 << 14;

void tell_nobody(const dif::ProbeDescription&, const std::string&) {}

}  // namespace

ProcessProvider::ProcessProvider(std::string_view name, const dif::ProviderAttributes& attributes,
                                 const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                                 UserPointTable& table, ProbePoints& points)
    : Provider(name, attributes),
      memory_(memory),
      kernel_(kernel),
      table_(table),
      points_(points),
      layout_(guest_linux::ProcessLayout::from(kernel.types())),
      mm_program_(guest_linux::offset_of(kernel.types(), "mm_struct", {"exe_file"})),
      mm_text_(guest_linux::offset_of(kernel.types(), "mm_struct", {"start_code"})),
      file_inode_(guest_linux::offset_of(kernel.types(), "file", {"f_inode"})),
      paths_(kernel.types()),
      init_task_(first_task(kernel)) {}

std::optional<std::int32_t> ProcessProvider::number_of_process(std::string_view text) {
  const auto number = parse_number<std::int32_t>(text, 10);
  return number && *number > 0 ? number : std::nullopt;
}

bool ProcessProvider::Pattern::wants(const Module& module) const {
  return dif::field_matches(names.module, module.name) ||
         (module.is_program && names.module == kProgram);
}

UserPointTable::Servers ProcessProvider::Pattern::servers() const {
  using Servers = UserPointTable::Servers;
  const bool names_one = !names.module.empty() && !dif::is_glob(names.module);
  return names_one ? Servers::Asked : Servers::NotAsked;
}

GuestVirt ProcessProvider::inode_of(const GuestReader& reader, GuestVirt file) const {
  return GuestVirt(guest_linux::load_field<std::uint64_t>(reader, file, *file_inode_).value_or(0));
}

/// Of its program. On overlayfs a process maps another file than the one that was executed: that
/// of the lower file system.
GuestVirt ProcessProvider::program_of(const GuestReader& reader, GuestVirt mm) const {
  const auto begin = guest_linux::load_field<std::uint64_t>(reader, mm, *mm_text_);
  const auto text =
      guest_linux::find_file_mapping(reader, *layout_, mm, GuestVirt(begin.value_or(0)));
  if (text && text->file.raw() != 0) return inode_of(reader, text->file);
  const auto program = guest_linux::load_field<std::uint64_t>(reader, mm, *mm_program_);
  return program ? inode_of(reader, GuestVirt(*program)) : GuestVirt(0);
}

/// Files that are no ELF files of programs or libraries have no functions.
void ProcessProvider::add_modules(const GuestReader& reader, GuestVirt mm, Modules& modules) const {
  const GuestVirt program = program_of(reader, mm);
  for (const auto& mapping : guest_linux::list_file_mappings(reader, *layout_, mm)) {
    if (mapping.file.raw() == 0) continue;  // the vdso is of no file
    if (modules.all.size() == kMostModules || !modules.files.insert(mapping.file).second) continue;
    const GuestVirt inode = inode_of(reader, mapping.file);
    if (inode.raw() == 0 || !modules.inodes.insert(inode).second) continue;
    const std::string name = guest_linux::file_name(reader, *layout_, mapping.file);
    if (name.empty()) continue;
    modules.all.push_back({name, inode, inode == program});
    name_file(reader, mapping.file, inode);
  }
}

/// For who looks for it on the host.
void ProcessProvider::name_file(const GuestReader& reader, GuestVirt file, GuestVirt inode) const {
  const auto* const host = table_.host_files();
  if (host == nullptr || !host->any()) return;
  table_.name_file(inode, guest_linux::file_path(reader, *layout_, paths_, file));
}

const guest_linux::FileFunctions* ProcessProvider::functions_of(const Module& module,
                                                                UserPointTable::Servers servers) {
  const auto* const found = table_.functions_of(module.inode, servers);
  if (found != nullptr && table_.host_files() != nullptr) {
    table_.host_files()->note_search(module.name, found->searched());
  }
  return found;
}

std::optional<std::vector<ProcessProvider::Module>> ProcessProvider::modules_of(
    std::int32_t process, const Module* only) const {
  if (!layout_ || !file_inode_ || !mm_program_ || !mm_text_ || init_task_.raw() == 0)
    return std::nullopt;
  const vmm::PageTableReader reader(memory_, kernel_.table_in(memory_));
  if (process == 0 && only != nullptr) return std::vector{*only};
  if (process == 0) return modules_of_all(reader);
  const auto found =
      guest_linux::find_process(reader, *layout_, init_task_, static_cast<std::uint64_t>(process));
  if (!found) return std::nullopt;
  Modules modules;
  add_modules(reader, found->mm, modules);
  return std::move(modules.all);
}

std::vector<ProcessProvider::Module> ProcessProvider::modules_of_all(
    const GuestReader& reader) const {
  Modules modules;
  (void)guest_linux::walk_processes(
      reader, layout_->task_tasks, init_task_, kMostWalked, [&](GuestVirt task) {
        const auto mm = guest_linux::memory_of_process(reader, *layout_, task);
        if (mm) add_modules(reader, *mm, modules);
        return end_order() == EndOrder::None;
      });
  for (Module& each : modules.all) each.is_program = false;
  return std::move(modules.all);
}

Result<void> ProcessProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  std::set<std::uint32_t> published;
  TRY(look(pattern, tell_nobody, &published, nullptr));
  // Each once, with the places of all files.
  for (const std::uint32_t number : published) visit({id_at(number), entries_[number].name});
  return {};
}

Result<void> ProcessProvider::refusals(const dif::ProbeDescription& pattern,
                                       const RefusalVisitor& visit) {
  return look(
      pattern,
      [&visit](const dif::ProbeDescription& name, const std::string& why) {
        visit({name, why});
      },
      nullptr, nullptr);
}

void ProcessProvider::sum_up_missing(const dif::ProbeDescription& pattern, const Counts& counts,
                                     const RefusalVisitor& visit) {
  MissingProbes probes;
  std::set<std::uint32_t> published;
  const auto trouble = [&](const dif::ProbeDescription& name, const std::string& why) {
    if (counts(name)) probes.add_missing(name, why);
  };
  if (!look(pattern, trouble, &published, nullptr)) return;  // enabling says why
  for (const std::uint32_t number : published) {
    if (counts(entries_[number].name)) probes.add_there(entries_[number].name);
  }
  if (const auto text = probes.text()) visit({pattern, *text});
}

Result<void> ProcessProvider::publish(const Pattern& pattern, std::vector<Entry> entries) {
  for (Entry& entry : entries) TRY(publish(pattern, std::move(entry)));
  return {};
}

Result<void> ProcessProvider::publish(const Pattern& pattern, Entry entry) {
  const bool is_one = entry.places.size() == 1;
  for (const Place& place : entry.places) {
    table_.note_name(place.at.inode, entry.name.module);
    const auto fine = table_.examine(place.at.inode, place.at.offset);
    if (fine) continue;
    pattern.trouble(entry.name,
                    is_one ? fine.error().message
                           : fmt::format("+{:#x}: {}", place.in_function, fine.error().message));
    return {};
  }
  if (pattern.published == nullptr) return {};
  // Two processes may make one name: lib of 2134, and lib2 of 134.
  const std::string name =
      fmt::format("{} {} {}", entry.process, entry.definition, entry.name.to_string());
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
    add_places(entries_[number], entry.places);  // of another file with the same name
  }
  pattern.published->insert(number);
  return {};
}

/// Those that are not there yet.
void ProcessProvider::add_places(Entry& entry, std::span<const Place> places) {
  for (const Place& place : places) {
    const auto is_there = [&place](const Place& one) { return one.at == place.at; };
    if (std::ranges::none_of(entry.places, is_there)) entry.places.push_back(place);
  }
}

ProcessProvider::Entry* ProcessProvider::find(dif::ProbeId id) {
  const auto index = index_of(id);
  return index && *index < entries_.size() ? &entries_[*index] : nullptr;
}

Result<std::optional<Probe>> ProcessProvider::by_id(dif::ProbeId id) {
  const Entry* const entry = find(id);
  return entry == nullptr ? std::nullopt : std::optional(Probe{id, entry->name});
}

std::optional<std::string> ProcessProvider::why_fixed(dif::ProbeId id) const {
  (void)id;
  return "probes of processes are enabled before tracing begins";
}

bool ProcessProvider::is_enabled(dif::ProbeId id) const {
  const auto index = index_of(id);
  return index && *index < entries_.size() && entries_[*index].is_enabled;
}

void ProcessProvider::note_disabled(dif::ProbeId id) {
  if (Entry* const entry = find(id)) entry->is_enabled = false;
}

Result<void> ProcessProvider::enable(const Probe& probe) {
  Entry* const entry = find(probe.id);
  if (entry == nullptr) return no_such_probe();
  if (std::exchange(entry->is_enabled, true)) return {};
  auto done = bind(probe, *entry);
  if (!done) entry->is_enabled = false;
  return done;
}

/// Those that are not bound yet.
Result<void> ProcessProvider::bind_places(const Probe& probe, Entry& entry) {
  for (; entry.bound < entry.places.size(); ++entry.bound) {
    const Place& place = entry.places[entry.bound];
    Binding binding{.probe = probe.id, .site = place.in_function, .condition = place.condition};
    binding.at_function_edge = false;
    binding.process = entry.process;
    binding.filter = place.filter;
    binding.plan = place.plan;
    TRY(points_.bind_in_file(place.at, binding));
  }
  return {};
}

Result<void> ProcessProvider::bind(const Probe& probe, Entry& entry) {
  entry.bound = 0;
  TRY(bind_places(probe, entry));
  if (!entry.kernel_sites) return {};
  for (BoundSite& bound : TRY(entry.kernel_sites())) {
    bound.binding.probe = probe.id;
    bound.binding.process = entry.process;
    TRY(points_.bind(bound.site, bound.binding));
  }
  return {};
}

/// Enabled probes of all processes, by the name of their file.
std::map<std::string, std::vector<std::uint32_t>> ProcessProvider::followed() const {
  std::map<std::string, std::vector<std::uint32_t>> found;
  for (std::uint32_t n = 0; n < entries_.size(); ++n) {
    const Entry& entry = entries_[n];
    if (entry.is_enabled && entry.process == 0) found[entry.name.module].push_back(n);
  }
  return found;
}

/// How many more places these probes have in the file.
Result<std::size_t> ProcessProvider::follow(const Module& module,
                                            std::span<const std::uint32_t> numbers) {
  std::size_t places = 0;
  std::set<std::uint32_t> published;
  for (const std::uint32_t number : numbers) {
    const dif::ProbeDescription name = entries_[number].name;
    TRY(look(name, tell_nobody, &published, &module));
    Entry& entry = entries_[number];
    places += entry.places.size() - entry.bound;
    TRY(bind_places({id_at(number), name}, entry));
  }
  return places;
}

Result<std::size_t> ProcessProvider::follow_files(std::vector<std::string>& names) {
  std::size_t places = 0;
  const auto wanted = followed();
  if (wanted.empty()) return places;
  for (const auto& [module, numbers] : wanted) {
    for (const std::uint32_t number : numbers) {
      for (const Place& place : entries_[number].places) known_.insert(place.at.inode);
    }
  }
  const auto modules = modules_of(0);
  if (!modules) return places;
  for (const Module& module : *modules) {
    const auto numbers = wanted.find(module.name);
    if (numbers == wanted.end() || !known_.insert(module.inode).second) continue;
    const std::size_t more = TRY(follow(module, numbers->second));
    if (more != 0) names.push_back(module.name);
    places += more;
  }
  return places;
}

ProbeArguments ProcessProvider::arguments(const Probe& probe) {
  const Entry* const entry = find(probe.id);
  if (entry == nullptr) return {};
  return entry->function ? typed_arguments(*entry) : entry->arguments;
}

namespace {

/// Arguments of a function's entry: those before the first that does not come in one word, in its
/// turn.
ProbeArguments entry_arguments(const TypeGraph& graph, const guest_linux::FunctionTypes& types) {
  ProbeArguments found;
  found.known = true;
  for (unsigned n = 0; n < types.types.size(); ++n) {
    if (types.places[n] != n || !takes_one_word(graph, types.types[n])) {
      const bool is_known = graph[types.types[n]].kind != TypeKind::Void;
      found.why_unknown =
          is_known ? fmt::format("a {} and what comes after it are not where arg{} looks",
                                 graph.to_string(types.types[n]), n)
                   : fmt::format("the type of parameter {} is not known", n);
      break;
    }
    found.types.push_back(types.types[n]);
    found.names.push_back(types.names[n]);
  }
  return found;
}

/// The offset in the function, and the value.
ProbeArguments return_arguments(const TypeGraph& graph, const guest_linux::FunctionTypes& types) {
  ProbeArguments found;
  found.known = true;
  found.types.push_back(graph.find("unsigned int").value_or(TypeId{}));
  found.names.emplace_back("offset");
  if (!takes_one_word(graph, types.result)) {
    found.why_unknown = fmt::format("it returns {}", graph.to_string(types.result));
    return found;
  }
  found.types.push_back(types.result);
  found.names.emplace_back("value");
  return found;
}

}  // namespace

ProbeArguments ProcessProvider::typed_arguments(const Entry& entry) {
  const auto is_elsewhere = [&entry](const Place& place) {
    return place.at.inode != entry.function->inode;
  };
  ProbeArguments unknown;
  TypeGraph* const graph = kernel_.program_types();
  const auto* const functions = table_.functions_of(entry.function->inode);
  const auto* const function =
      functions != nullptr ? functions->at(entry.function->offset) : nullptr;
  if (graph == nullptr || function == nullptr) return unknown;
  if (std::ranges::any_of(entry.places, is_elsewhere)) {
    unknown.why_unknown =
        "several files have that function, each with types of its own: name a process";
    return unknown;
  }
  const auto types = table_.types_of(entry.function->inode, *function, *graph);
  if (!types) {
    unknown.why_unknown = types.error().message;
    return unknown;
  }
  return entry.name.name == "return" ? return_arguments(*graph, *types)
                                     : entry_arguments(*graph, *types);
}

std::string ProcessProvider::detail(const Probe& probe) {
  const Entry* const entry = find(probe.id);
  if (entry == nullptr) return {};
  constexpr std::size_t kMostListed = 16;
  std::string text = "in the file at";
  for (std::size_t n = 0; n < std::min(entry->places.size(), kMostListed); ++n) {
    text += fmt::format(" {:#x}", entry->places[n].at.offset);
  }
  if (entry->places.size() > kMostListed) {
    text += fmt::format(" and {} more", entry->places.size() - kMostListed);
  }
  if (!entry->notes.empty()) text += ": " + entry->notes;
  return text;
}

}  // namespace ringside::providers
