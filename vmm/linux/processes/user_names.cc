#include "vmm/linux/processes/user_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vmm/linux/processes/demangle.h"
#include "vmm/linux/processes/file_lookup.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostNamed = 4096;
constexpr std::size_t kMaxPrograms = 4;  // of one process
constexpr std::size_t kMostFiles = 4096;
constexpr std::size_t kMaxTableBytes = 256 << 20;
constexpr std::size_t kLooksToFill = 4;  // it takes so many at least
constexpr std::chrono::seconds kFresh{1};
constexpr int kSoonerWhenUnknown = 100;

/// Null where the kernel's types do not say how its files are found.
std::function<void(const ProcessAddressSpace&, UserNames::MapOfCode&)> map_of_code_reader(
    const vmm::GuestMemory& memory, Kernel& kernel) {
  const auto lookup = FileLookupLayout::from(kernel.types());
  const auto cache = PageCacheLayout::from(kernel.types(), kernel.symbols());
  if (!lookup || !cache) return nullptr;
  return [&memory, &kernel, lookup, cache](const ProcessAddressSpace& process,
                                           UserNames::MapOfCode& map) {
    const vmm::PageTableReader reader(memory, kernel.table_in(memory));
    const auto number = own_number(reader, *lookup, process.task);
    const auto inode =
        number ? find_file(reader, *lookup, process.task, fmt::format("/tmp/perf-{}.map", *number))
               : std::nullopt;
    const auto file = inode ? FilePages::of_inode(memory, reader, *cache, *inode) : std::nullopt;
    if (!file) return;
    const FileIdentity& identity = file->identity();
    if (map.inode != identity.inode || map.number != identity.number) {
      map = {.process = *number, .inode = identity.inode, .number = identity.number, .map = {}};
    }
    map.map.read_more(*file);
  };
}

}  // namespace

std::unique_ptr<UserNames> UserNames::create(const vmm::GuestMemory& memory, Kernel& kernel,
                                             Form form, HostFiles* host) {
  const auto layout = ProcessLayout::from(kernel.types());
  const Symbol* init_task = kernel.symbols().find("init_task", "vmlinux");
  if (!layout || init_task == nullptr) return nullptr;
  Access access;
  access.kernel = [&memory, &kernel] {
    return std::make_unique<vmm::PageTableReader>(memory, kernel.table_in(memory));
  };
  access.process = [&memory, &kernel](GuestVirt root) -> std::unique_ptr<GuestReader> {
    vmm::PageTable table = kernel.table_in(memory);
    const auto at = vmm::translate(memory, table, root);
    if (!at) return nullptr;
    table.root = at->address;
    return std::make_unique<vmm::PageTableReader>(memory, table);
  };
  if (const auto cache = PageCacheLayout::from(kernel.types(), kernel.symbols())) {
    access.identity = [&memory, &kernel, cache](GuestVirt file) {
      const vmm::PageTableReader reader(memory, kernel.table_in(memory));
      const auto pages = FilePages::of_file(memory, reader, *cache, file);
      return pages ? std::optional(pages->identity()) : std::nullopt;
    };
    access.functions = [&memory, &kernel, cache, layout, host, paths = LinuxPaths(kernel.types())](
                           GuestVirt file, const FileIdentity& content) {
      const vmm::PageTableReader reader(memory, kernel.table_in(memory));
      const auto pages = FilePages::of_file(memory, reader, *cache, file);
      if (!pages || pages->identity() != content) return FileFunctions();
      if (host == nullptr) return FileFunctions::read(*pages);
      auto found = FileFunctions::read(*pages, host, file_path(reader, *layout, paths, file));
      // Fonts, archives and the like have none, which nobody asks about.
      if (FileElf::read(*pages)) {
        host->note_search(file_name(reader, *layout, file), found.searched());
      }
      return found;
    };
    if (host != nullptr && host->has_servers()) {
      access.fetch = [&memory, &kernel, cache, host](const FileIdentity& content,
                                                     std::string_view name) {
        const vmm::PageTableReader reader(memory, kernel.table_in(memory));
        const auto pages = FilePages::of_inode(memory, reader, *cache, GuestVirt(content.inode));
        if (!pages || pages->identity() != content) return FileFunctions();
        auto found = FileFunctions::read(*pages, host, name, HostFiles::Servers::Asked);
        host->note_search(name, found.searched());
        return found;
      };
    }
  }
  access.map_of_code = map_of_code_reader(memory, kernel);
  return std::make_unique<UserNames>(std::move(access), *layout, init_task->address, kFresh,
                                     kMaxTableBytes, form);
}

std::string UserNames::describe(std::uint64_t pid, GuestVirt address) {
  const auto older_than = [&](Clock::duration age) {
    const auto known = processes_.find(pid);
    return known == processes_.end() || Clock::now() - known->second.looked >= age;
  };
  if (older_than(fresh_)) look_at(pid);
  const Module* module = find(pid, address);
  if (module == nullptr && older_than(fresh_ / kSoonerWhenUnknown)) {
    process(pid).wants_code = true;
    look_at(pid);
    module = find(pid, address);
  }
  if (module == nullptr) return describe_made_code(pid, address);
  auto found = symbol_at(*module, address);
  if (!found && fetch(*module)) found = symbol_at(*module, address);
  if (!found) return fmt::format("{}`0x{:x}", module->name, address.raw());
  const std::string name =
      form_ == Form::Demangled ? demangle(found->name) : std::string(found->name);
  if (found->offset == 0) return fmt::format("{}`{}", module->name, name);
  return fmt::format("{}`{}+0x{:x}", module->name, name, found->offset);
}

std::string UserNames::describe_made_code(std::uint64_t pid, GuestVirt address) const {
  const auto known = processes_.find(pid);
  const auto found =
      known == processes_.end() ? std::nullopt : known->second.code.map.at(address.raw());
  if (!found) return fmt::format("0x{:x}", address.raw());
  const std::string offset = found->offset == 0 ? "" : fmt::format("+0x{:x}", found->offset);
  return fmt::format("perf-{}.map`{}{}", known->second.code.process, found->name, offset);
}

/// Whether more is known of it now.
bool UserNames::fetch(const Module& module) {
  if (!access_.fetch || !module.content || module.functions == nullptr) return false;
  if (module.functions->has_all() || table_bytes_ > most_bytes_) return false;
  if (!fetched_.insert(*module.content).second) return false;
  FileFunctions found = access_.fetch(*module.content, module.name);
  FileFunctions& known = files_[*module.content];
  if (found.all().size() <= known.all().size()) return false;
  table_bytes_ += found.bytes() - known.bytes();
  known = std::move(found);
  return true;
}

std::optional<DynamicSymbols::Found> UserNames::symbol_at(const Module& module, GuestVirt address) {
  const auto above = std::ranges::upper_bound(module.parts, address, {}, &Module::Part::begin);
  if (module.functions != nullptr && above != module.parts.begin()) {
    const Module::Part& part = *std::prev(above);
    const std::uint64_t offset = part.offset + address.offset_from(part.begin);
    const FileFunction* const function =
        module.functions->is_text(offset) ? module.functions->at(offset) : nullptr;
    if (function != nullptr)
      return DynamicSymbols::Found{function->name, offset - function->offset};
  }
  if (module.symbols == nullptr) return std::nullopt;
  return module.symbols->at(address.offset_from(module.begin));
}

const UserNames::Module* UserNames::find(std::uint64_t pid, GuestVirt address) const {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return nullptr;
  const std::vector<Program>& programs = known->second.programs;
  for (auto program = programs.rbegin(); program != programs.rend(); ++program) {
    const auto above = std::ranges::upper_bound(program->modules, address, {}, &Module::begin);
    if (above == program->modules.begin()) continue;
    const Module& module = *std::prev(above);
    if (address < module.end) return &module;
  }
  return nullptr;
}

UserNames::Process& UserNames::process(std::uint64_t pid) {
  const auto known = processes_.find(pid);
  if (known != processes_.end()) return known->second;
  if (processes_.size() >= kMostNamed) {
    const auto oldest = std::ranges::min_element(
        processes_, {}, [](const auto& each) { return each.second.looked; });
    table_bytes_ -= oldest->second.code.map.bytes();
    processes_.erase(oldest);
  }
  return processes_[pid];
}

void UserNames::look_at(std::uint64_t pid) {
  if (table_bytes_ > most_bytes_) {
    processes_.clear();
    tables_.clear();
    files_.clear();
    fetched_.clear();
    table_bytes_ = 0;
  }
  const auto memory = find_process(*access_.kernel(), layout_, init_task_, pid);
  std::vector<Module> modules;
  if (memory) modules = modules_of(*access_.kernel(), *memory);
  // If the process ended or ran another program meanwhile, the pages may be anybody's.
  const bool lives = memory && find_process(*access_.kernel(), layout_, init_task_, pid) == memory;
  Process& known = process(pid);
  known.looked = Clock::now();
  if (!lives || modules.empty()) return;
  auto& programs = known.programs;
  if (programs.empty() || programs.back().mm != memory->mm) programs.push_back({memory->mm, {}});
  if (programs.size() > kMaxPrograms) programs.erase(programs.begin());
  // The kernel's page cache has the files' own tables, whether the process still lives or not.
  std::size_t budget = most_bytes_ / kLooksToFill;
  for (Module& module : modules) module.functions = functions_of(module, budget);
  programs.back().modules = std::move(modules);
  const bool wants_code = std::exchange(known.wants_code, false) || known.code.inode != 0;
  if (!access_.map_of_code || !wants_code) return;
  table_bytes_ -= known.code.map.bytes();
  access_.map_of_code(*memory, known.code);
  table_bytes_ += known.code.map.bytes();
}

/// Mappings of one open file that follow each other, and go on in the file or lie where the image's
/// segments are, are a module.
std::vector<UserNames::Module> UserNames::modules_of(const GuestReader& kernel,
                                                     const ProcessAddressSpace& memory) {
  const auto mappings = list_file_mappings(kernel, layout_, memory.mm);
  const auto process = access_.process(memory.page_table);
  std::vector<Module> modules;
  std::size_t budget = most_bytes_ / kLooksToFill;
  for (std::size_t n = 0; n < mappings.size() && modules.size() < kMostFiles;) {
    const FileMapping& first = mappings[n];
    Module module{file_name(kernel, layout_, first.file), first.begin, first.end};
    module.parts.push_back({first.begin, first.offset});
    std::optional<UserElf> elf;
    if (first.offset == 0 && process != nullptr) elf = UserElf::read(*process, first.begin);
    const GuestVirt image_end = first.begin.checked_add(elf ? elf->size : 0).value_or(first.begin);
    while (++n < mappings.size() && mappings[n].file == first.file &&
           (mappings[n].offset > mappings[n - 1].offset || mappings[n].begin < image_end)) {
      module.end = mappings[n].end;
      module.parts.push_back({mappings[n].begin, mappings[n].offset});
    }
    // The image's last part, .bss, is of no file.
    if (module.end < image_end) {
      module.end = n < mappings.size() ? std::min(image_end, mappings[n].begin) : image_end;
    }
    module.file = first.file;
    // Though the process itself may have none of it in memory.
    if (access_.identity) module.content = access_.identity(first.file);
    if (elf) module.symbols = symbols_of(*process, *elf, budget);
    if (!module.name.empty()) modules.push_back(std::move(module));
  }
  return modules;
}

/// Null where files cannot be read.
const FileFunctions* UserNames::functions_of(const Module& module, std::size_t& budget) {
  if (!module.content) return nullptr;
  FileFunctions& best = files_[*module.content];
  if (best.is_whole() || budget == 0) return &best;
  FileFunctions found = access_.functions(module.file, *module.content);
  budget -= std::min(budget, found.bytes());
  // Its tables may have been in memory earlier, and no longer.
  if (found.all().size() > best.all().size() || found.is_whole()) {
    table_bytes_ += found.bytes() - best.bytes();
    best = std::move(found);
  }
  return &best;
}

const DynamicSymbols* UserNames::symbols_of(const GuestReader& process, const UserElf& elf,
                                            std::size_t& budget) {
  const auto [place, is_new] = tables_.try_emplace(elf.page);
  if (is_new) table_bytes_ += elf.page.size();
  DynamicSymbols& best = place->second;
  if (best.whole() || budget == 0) return &best;
  DynamicSymbols found = DynamicSymbols::read(process, elf);
  budget -= std::min(budget, found.bytes());
  // Another process, or this one earlier, may have had more of the file in memory.
  if (found.count() > best.count() || (found.whole() && found.count() == best.count())) {
    table_bytes_ += found.bytes() - best.bytes();
    best = std::move(found);
  }
  return &best;
}

}  // namespace ringside::guest_linux
