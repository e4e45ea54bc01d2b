// A running kernel, put together from its parts. In this file, top to bottom: discovery's steps,
// the running kernel's object, its modules, discover_kernel(). Discovery copies each table once and
// decodes the copy: what was checked is what is used. Fire context: current_task() and cpu_of()
// yes; everything else no.
#include <fmt/format.h>

#include <algorithm>

#include "vmm/block_reader.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/symbols/kallsyms.h"
#include "vmm/linux/text/patched_sites.h"
#include "vmm/linux/types/btf.h"
#include "vmm/linux/types/type_file.h"
#include "vmm/linux/types/types_without_btf.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint32_t kFirstLateState = 2;  // BOOTING and SCHEDULING are 0 and 1 in every kernel

Error not_yet() {
  return {ErrorCode::NotFound, "the guest's kernel has not finished booting"};
}

/// A table of vmlinux between two symbols, as a copy; empty when this kernel does not have it.
struct ImageTable {
  GuestVirt base;
  std::vector<std::byte> bytes;
  ImageView view() const { return {base, bytes}; }
};

ImageTable table_between(const KernelMemory& memory, const SymbolTable& symbols,
                         std::string_view start, std::string_view stop) {
  const Symbol* begin = symbols.find(start, "vmlinux");
  const Symbol* end = symbols.find(stop, "vmlinux");
  if (begin == nullptr || end == nullptr || end->address <= begin->address) return {};
  auto bytes = memory.copy_image(begin->address, end->address.offset_from(begin->address));
  if (!bytes) return {};
  return {begin->address, std::move(*bytes)};
}

/// The same for a table of places that must not be probed, which must be whole.
Result<ImageTable> table_of(const KernelMemory& memory, const SymbolTable& symbols,
                            const BoundedPart& part) {
  const auto range = TRY(find_part(symbols, part));
  if (!range) return ImageTable{};
  auto bytes = memory.copy_image(range->begin, range->end.offset_from(range->begin));
  if (!bytes) {
    return fail(ErrorCode::Invalid,
                fmt::format("the guest's kernel has {}, but they cannot be read, so that it cannot "
                            "be told where probes are safe: {}",
                            part.what, bytes.error().message));
  }
  return ImageTable{range->begin, std::move(*bytes)};
}

template <class T>
std::optional<T> image_value(const KernelMemory& memory, const SymbolTable& symbols,
                             std::string_view name) {
  const Symbol* symbol = symbols.find(name, "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const auto bytes = memory.copy_image(symbol->address, sizeof(T));
  return bytes ? std::optional(load_at<T>(*bytes, 0)) : std::nullopt;
}

struct LoadedModule {
  ModuleHead head;
  ModuleSymbols symbols;
  std::vector<Kernel::PatchedSite> sites;
  bool sites_known = true;         // else nothing in it may be probed
  std::shared_ptr<const Btf> btf;  // empty: no types
  std::size_t btf_bytes = 0;
};

/// Takes from the budget the share of a module that is known already.
void charge(const LoadedModule& module, ModuleBudget& budget) {
  const auto names = module.symbols.names ? module.symbols.names->size() : 0;
  budget.symbols -= std::min<std::uint64_t>(budget.symbols, module.symbols.symbols.size());
  budget.name_bytes -= std::min<std::uint64_t>(budget.name_bytes, names);
  budget.sites -= std::min<std::uint64_t>(budget.sites, module.sites.size());
}

class LinuxKernel final : public Kernel {
 public:
  LinuxKernel(KernelMemory memory, Boot boot, const TypeFile* types)
      : memory_(std::move(memory)), boot_(boot), type_file_(types) {}

  Result<void> set_up() {
    TRY(load_symbols());
    TRY(load_types());
    TRY(load_percpu());
    TRY(load_text());
    TRY(refresh_modules());
    if (modules_.empty()) gather_sites();
    return {};
  }

  std::string_view release() const override { return memory_.info().release(); }
  const vmm::PageTable& table() const override { return memory_.table(); }
  const SymbolTable& symbols() const override { return symbols_; }
  const TypeGraph& types() const override { return types_; }
  TypeGraph* program_types() override { return &types_; }
  const KernelLayout& layout() const override { return layout_; }
  std::span<const std::uint64_t> percpu_bases() const override { return percpu_; }
  std::span<const AddressRange> forbidden_text() const override { return forbidden_; }
  std::span<const PatchedSite> patched_sites() const override { return sites_; }

  std::optional<TypeId> prototype(const Symbol& function) const override {
    if (function.module == 0) return btf_.prototype(function.name);
    const std::size_t index = function.module - std::size_t{1};
    if (index >= modules_.size() || !modules_[index].btf) return std::nullopt;
    return modules_[index].btf->prototype(function.name);
  }

  std::optional<std::uint16_t> module_of(TypeId type) const override {
    if (btf_.has(type)) return 0;
    const auto has = [&](const LoadedModule& module) {
      return module.btf && module.btf->has(type);
    };
    const auto found = std::find_if(modules_.begin(), modules_.end(), has);
    if (found == modules_.end()) return std::nullopt;
    return static_cast<std::uint16_t>(found - modules_.begin() + 1);
  }

  std::optional<std::uint32_t> cpu_of(GuestVirt percpu_base) const override {
    const auto found = std::lower_bound(cpu_by_base_.begin(), cpu_by_base_.end(),
                                        std::pair(percpu_base.raw(), std::uint32_t{0}));
    if (found == cpu_by_base_.end() || found->first != percpu_base.raw()) return std::nullopt;
    return found->second;
  }

  Result<GuestVirt, Fault> current_task(const GuestReader& kernel,
                                        GuestVirt percpu_base) const override {
    // Wraps on purpose: since 6.15 the symbol is an ordinary address and the base a difference.
    const GuestVirt at = percpu_base.wrapping_add(current_offset_);
    return GuestVirt(TRY(load<std::uint64_t>(kernel, at)));
  }

  Result<std::unique_ptr<Kernel>> open_crashed() const;
  /// Null in a kernel that was not started by one that crashed.
  const KernelMemory* crashed() const;
  Result<bool> refresh_modules() override;
  Result<LateModule> admit_module(GuestVirt structure) override;
  void end_set_up() override;

 private:
  Result<void> load_symbols();
  /// Answers why there are none.
  Result<std::optional<std::string>> read_types();
  void do_without_types(const std::string& why);
  Result<void> load_types();
  Result<void> load_percpu();
  Result<void> load_text();
  void load_module(const ModuleHead& head, std::span<const ModuleBtf> btfs, ModuleBudget& budget,
                   LoadedModule& module);
  std::shared_ptr<const Btf> module_types(const ModuleBtf& found);
  void rebuild_symbols();
  void gather_sites();
  Result<LoadedModule> load_late(const ModuleHead& head);
  void replace_sites(AddressRange range, const std::vector<PatchedSite>& sites);

  KernelMemory memory_;
  const Boot boot_;
  const TypeFile* const type_file_;  // used by load_types() alone; null: the kernel's own
  SymbolTable symbols_;
  std::shared_ptr<const std::string> vmlinux_names_;
  TypeGraph types_;
  Btf btf_;
  KernelLayout layout_;
  std::optional<ModuleLayout> module_layout_;
  std::optional<ModuleLayout> late_layout_;  // the same, which stays after end_set_up()
  ModuleBudget late_budget_;                 // what is left of it for modules that come later
  std::vector<std::uint64_t> percpu_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> cpu_by_base_;  // sorted
  std::uint64_t current_offset_ = 0;
  std::vector<AddressRange> vmlinux_forbidden_;
  std::vector<AddressRange> forbidden_;
  std::vector<PatchedSite> vmlinux_sites_;
  std::vector<PatchedSite> sites_;
  std::vector<LoadedModule> modules_;  // SymbolTable's modules() less vmlinux, in its order
  std::vector<std::pair<ModuleBtf, std::shared_ptr<const Btf>>> known_btf_;
  std::uint64_t known_btf_bytes_ = 0;
};

Result<void> LinuxKernel::load_symbols() {
  Kallsyms kallsyms = TRY(read_kallsyms(memory_));
  // Before the table is sealed: a kernel that boots is asked again and again.
  const auto named = [&](std::string_view name) -> const Symbol* {
    const auto found = std::find_if(kallsyms.symbols.begin(), kallsyms.symbols.end(),
                                    [&](const Symbol& symbol) { return symbol.name == name; });
    return found == kallsyms.symbols.end() ? nullptr : &*found;
  };
  const Symbol* state = named("system_state");
  if (state == nullptr) {
    return tl::unexpected(
        lacks(memory_, "lists only its functions as symbols", "CONFIG_KALLSYMS_ALL"));
  }
  const auto value = TRY(memory_.copy_image(state->address, sizeof(std::uint32_t)));
  const bool early = load_at<std::uint32_t>(value, 0) < kFirstLateState;
  if (early && boot_ == Boot::Finished) return tl::unexpected(not_yet());
  Module vmlinux{.name = "vmlinux", .text_base = *memory_.info().symbol("_stext")};
  const Symbol* end = named("_etext");
  if (end != nullptr && end->address > vmlinux.text_base) {
    vmlinux.text_size = end->address.offset_from(vmlinux.text_base);
  }
  vmlinux_names_ = kallsyms.names;
  symbols_.adopt(vmlinux_names_);
  symbols_.add_module(std::move(vmlinux), std::move(kallsyms.symbols));
  symbols_.seal();
  return {};
}

Result<std::optional<std::string>> LinuxKernel::read_types() {
  if (type_file_ != nullptr) {
    const auto reader = memory_.reader();
    btf_ = TRY(type_file_->read_for({symbols_, reader, release(), &memory_.info()}, types_));
    return std::nullopt;
  }
  const ImageTable blob = table_between(memory_, symbols_, "__start_BTF", "__stop_BTF");
  if (blob.bytes.empty()) return std::optional<std::string>("CONFIG_DEBUG_INFO_BTF is off");
  auto btf = Btf::read(blob.bytes, nullptr, types_);
  if (!btf) return std::optional(btf.error().message);
  btf_ = std::move(*btf);
  return std::nullopt;
}

/// A kernel without types is traced by its symbols.
void LinuxKernel::do_without_types(const std::string& why) {
  const auto reader = memory_.reader();
  add_types_without_btf(memory_.info(), symbols_, reader, types_);
  const Symbol* const first = symbols_.find("init_task", "vmlinux");
  const auto task = first != nullptr ? find_task_offsets(reader, first->address) : std::nullopt;
  if (task) {
    layout_.task_comm = task->comm;
    layout_.task_pid = task->pid;
    layout_.task_tgid = task->tgid;
    layout_.task_real_parent = task->real_parent;
  }
  note_omission(
      fmt::format("the guest's kernel {} carries no types ({}): it is traced by its "
                  "symbols, without args[], structures, sdt and modules; --types FILE "
                  "takes the types from the vmlinux of this build",
                  release(), why));
}

Result<void> LinuxKernel::load_types() {
  const auto why_none = TRY(read_types());
  const auto running = types_.find_enumerator("SYSTEM_RUNNING");
  const auto state = image_value<std::uint32_t>(memory_, symbols_, "system_state");
  const std::int64_t runs_at = running ? running->second : system_running_of(release());
  const bool runs = state && *state == runs_at;
  if (!runs && boot_ == Boot::Finished) return tl::unexpected(not_yet());
  layout_ = read_layout(types_);
  if (why_none) do_without_types(*why_none);
  module_layout_ = ModuleLayout::from(types_);
  late_layout_ = module_layout_;
  return {};
}

Result<void> LinuxKernel::load_percpu() {
  const auto cpus = image_value<std::uint32_t>(memory_, symbols_, "nr_cpu_ids");
  const Symbol* offsets = symbols_.find("__per_cpu_offset", "vmlinux");
  const auto current = current_offset(symbols_, types_);
  if (!cpus || offsets == nullptr || !current) {
    return tl::unexpected(lacks(memory_, "has no per-CPU data", "CONFIG_SMP"));
  }
  if (*cpus == 0 || *cpus > kMostCpus) {
    return fail(ErrorCode::Invalid, fmt::format("the guest's kernel counts {} CPUs", *cpus));
  }
  const auto bytes = TRY(memory_.copy_image(offsets->address, std::uint64_t{*cpus} * 8));
  for (std::uint32_t cpu = 0; cpu < *cpus; ++cpu) {
    percpu_.push_back(load_at<std::uint64_t>(bytes, std::size_t{cpu} * 8));
    cpu_by_base_.emplace_back(percpu_.back(), cpu);
  }
  std::sort(cpu_by_base_.begin(), cpu_by_base_.end());
  current_offset_ = *current;
  return {};
}

Result<void> LinuxKernel::load_text() {
  vmlinux_forbidden_ = TRY(forbidden_ranges(symbols_));
  const Module& vmlinux = symbols_.modules()[0];
  const auto reader = memory_.reader();
  const vmm::BlockReader text(reader);
  const TextBounds bounds{&text, AddressRange::of(vmlinux.text_base, vmlinux.text_size)};
  const auto labels = TRY(table_of(memory_, symbols_, kJumpLabels));
  const auto calls = TRY(table_of(memory_, symbols_, kStaticCalls));
  const auto exceptions = TRY(table_of(memory_, symbols_, kExceptionTable));
  collect_jump_labels(labels.view(), bounds, vmlinux_sites_);
  collect_static_calls(calls.view(), bounds, vmlinux_sites_);
  collect_exceptions(exceptions.view(), bounds, vmlinux_sites_);
  collect_static_call_trampolines(symbols_.symbols(), bounds, vmlinux_sites_);
  return {};
}

std::shared_ptr<const Btf> LinuxKernel::module_types(const ModuleBtf& found) {
  // The same module loaded again has the same types: ids that a program holds stay good, and a
  // guest that loads and unloads for ever does not fill our memory.
  for (const auto& [known, types] : known_btf_) {
    if (*known.bytes == *found.bytes) return types;
  }
  if (known_btf_bytes_ + found.bytes->size() > ModuleBudget().btf_bytes) return nullptr;
  auto btf = Btf::read(*found.bytes, &btf_, types_);
  if (!btf) return nullptr;
  known_btf_bytes_ += found.bytes->size();
  auto types = std::make_shared<const Btf>(std::move(*btf));
  known_btf_.emplace_back(found, types);
  return types;
}

void LinuxKernel::load_module(const ModuleHead& head, std::span<const ModuleBtf> btfs,
                              ModuleBudget& budget, LoadedModule& module) {
  const auto reader = memory_.reader();
  module.head = head;
  module.symbols = read_module_symbols(reader, *module_layout_, head, budget);
  if (module.symbols.left_out) {
    note_omission(
        fmt::format("module {}: it has more symbols than there is room for, so it has no "
                    "probes",
                    head.name));
  }
  module.sites_known = read_module_sites(reader, *module_layout_, head, module.sites, budget);
  if (!module.sites_known) {
    module.sites.clear();
    note_omission(
        fmt::format("module {}: what the kernel patches in it cannot be told, so it has no "
                    "probes",
                    head.name));
  }
  const TextBounds bounds{&reader, AddressRange::of(head.text_base, head.text_size)};
  collect_static_call_trampolines(module.symbols.symbols, bounds, module.sites);
  for (const ModuleBtf& btf : btfs) {
    if (btf.module != head.address) continue;
    module.btf = btf.bytes ? module_types(btf) : nullptr;
    if (module.btf) {
      module.btf_bytes = btf.bytes->size();
    } else {
      note_omission(fmt::format(
          "module {}: its types are too many or make no sense, so it has none", head.name));
    }
  }
}

Result<bool> LinuxKernel::refresh_modules() {
  const Symbol* list = symbols_.find("modules", "vmlinux");
  if (list == nullptr || !module_layout_) return false;  // a kernel without modules
  const auto reader = memory_.reader();
  const auto heads = TRY(list_modules(reader, *module_layout_, list->address));
  const bool same = std::equal(
      heads.begin(), heads.end(), modules_.begin(), modules_.end(),
      [](const ModuleHead& head, const LoadedModule& module) { return head == module.head; });
  if (same) return false;
  ModuleBudget budget;
  std::vector<ModuleBtf> btfs;
  const Symbol* btf_modules = symbols_.find("btf_modules", "vmlinux");
  if (btf_modules != nullptr) {
    btfs = read_module_btf(reader, *module_layout_, btf_modules->address, budget);
  }
  std::vector<LoadedModule> loaded;
  for (const ModuleHead& head : heads) {
    LoadedModule& module = loaded.emplace_back();
    const auto known = std::find_if(modules_.begin(), modules_.end(),
                                    [&](const LoadedModule& old) { return old.head == head; });
    if (known != modules_.end()) {
      module = *known;
      charge(module, budget);
    } else {
      load_module(head, btfs, budget, module);
    }
  }
  modules_ = std::move(loaded);
  rebuild_symbols();
  gather_sites();
  return true;
}

void LinuxKernel::rebuild_symbols() {
  SymbolTable fresh;
  std::vector<Symbol> vmlinux;
  const auto all = symbols_.symbols();
  std::copy_if(all.begin(), all.end(), std::back_inserter(vmlinux),
               [](const Symbol& symbol) { return symbol.module == 0; });
  fresh.adopt(vmlinux_names_);
  fresh.add_module(symbols_.modules()[0], std::move(vmlinux));
  for (const LoadedModule& module : modules_) {
    if (module.symbols.names) fresh.adopt(module.symbols.names);
    fresh.add_module({.name = module.head.name,
                      .text_base = module.head.text_base,
                      .text_size = module.head.text_size,
                      .btf_bytes = module.btf_bytes},
                     module.symbols.symbols);
  }
  fresh.seal();
  symbols_ = std::move(fresh);
}

/// Its init's own text is freed soon, so symbols there are left out.
Result<LoadedModule> LinuxKernel::load_late(const ModuleHead& head) {
  const auto reader = memory_.reader();
  LoadedModule module;
  module.head = head;
  ModuleBudget budget;
  module.symbols = read_module_symbols(reader, *late_layout_, head, budget);
  const auto text = AddressRange::of(head.text_base, head.text_size);
  std::erase_if(module.symbols.symbols,
                [&](const Symbol& symbol) { return !text.contains(symbol.address); });
  if (module.symbols.symbols.empty()) {
    return fail(ErrorCode::Invalid, "its symbols cannot be read");
  }
  if (!read_module_sites(reader, *late_layout_, head, module.sites, budget)) {
    return fail(ErrorCode::Invalid, "what the kernel patches in it cannot be told");
  }
  collect_static_call_trampolines(module.symbols.symbols, TextBounds{&reader, text}, module.sites);
  return module;
}

/// Sites in a range are these from now on.
void LinuxKernel::replace_sites(AddressRange range, const std::vector<PatchedSite>& sites) {
  std::erase_if(sites_, [&](const PatchedSite& site) { return range.contains(site.address); });
  sites_.insert(sites_.end(), sites.begin(), sites.end());
  std::ranges::sort(sites_, {}, &PatchedSite::address);
}

Result<Kernel::LateModule> LinuxKernel::admit_module(GuestVirt structure) {
  if (!late_layout_) return Kernel::admit_module(structure);
  const auto head = TRY(read_coming_module(memory_.reader(), *late_layout_, structure));
  const auto text = AddressRange::of(head.text_base, head.text_size);
  const Module& vmlinux = symbols_.modules()[0];
  const auto own = AddressRange::of(vmlinux.text_base, vmlinux.text_size);
  if (text.begin < own.end && own.begin < text.end) {
    return fail(ErrorCode::Invalid, "its text lies in the kernel's own");
  }
  LoadedModule loaded = TRY(load_late(head));
  ModuleBudget left = late_budget_;
  const bool fits = ModuleBudget::take(left.symbols, loaded.symbols.symbols.size()) &&
                    ModuleBudget::take(left.name_bytes, loaded.symbols.names->size()) &&
                    ModuleBudget::take(left.sites, loaded.sites.size()) &&
                    symbols_.modules().size() < kMaxModules;
  // One that comes again and again takes nothing more.
  using Accept = SymbolTable::Accept;
  const auto put = symbols_.put_late(
      {.name = head.name, .text_base = head.text_base, .text_size = head.text_size},
      std::move(loaded.symbols.symbols), fits ? Accept::Any : Accept::KnownOnly);
  if (!put) return fail(ErrorCode::Limit, "there is no room for more modules");
  LateModule late{.module = put->module, .name = head.name, .structure = structure, .text = text};
  if (put->before) {
    late.before = AddressRange::of(put->before->text_base, put->before->text_size);
    replace_sites(*late.before, {});
  } else {
    late_budget_ = left;
    symbols_.adopt(loaded.symbols.names);
  }
  replace_sites(text, loaded.sites);
  return late;
}

void LinuxKernel::end_set_up() {
  types_ = TypeGraph();
  btf_ = Btf();
  known_btf_ = {};
  modules_ = {};
  vmlinux_sites_ = {};
  module_layout_.reset();
}

void LinuxKernel::gather_sites() {
  sites_ = vmlinux_sites_;
  forbidden_ = vmlinux_forbidden_;
  for (const LoadedModule& module : modules_) {
    sites_.insert(sites_.end(), module.sites.begin(), module.sites.end());
    const ModuleHead& head = module.head;
    if (module.sites_known || head.text_size == 0) continue;
    forbidden_.push_back(AddressRange::of(head.text_base, head.text_size));
  }
  std::sort(sites_.begin(), sites_.end(),
            [](const PatchedSite& a, const PatchedSite& b) { return a.address < b.address; });
}

}  // namespace

/// elfcorehdr_addr (kernel/crash_dump.c) is where elfcorehdr= on its command line says, and all
/// ones in a kernel that was not started so: what the memory says of a crash is forged then.
const KernelMemory* LinuxKernel::crashed() const {
  if (!memory_.crashed()) return nullptr;
  const auto header = image_value<std::uint64_t>(memory_, symbols_, "elfcorehdr_addr");
  return header && *header != UINT64_MAX ? memory_.crashed().get() : nullptr;
}

Result<std::unique_ptr<Kernel>> LinuxKernel::open_crashed() const {
  const KernelMemory* before = crashed();
  if (before == nullptr) {
    return fail(ErrorCode::NotFound, "this kernel was not started by one that crashed");
  }
  auto kernel = std::make_unique<LinuxKernel>(*before, Boot::AnyStage, nullptr);
  TRY(kernel->set_up());
  return kernel;
}

Result<std::unique_ptr<Kernel>> open_crashed_kernel(const Kernel& running) {
  // Others, as those of files and of tests, were not found in the memory of a machine.
  const auto* found = dynamic_cast<const LinuxKernel*>(&running);
  if (found != nullptr) return found->open_crashed();
  return fail(ErrorCode::NotFound, "this kernel was not found in a machine");
}

bool stays_in_crashed_kernel(const Kernel& running, const vmm::GuestMemory& memory,
                             const Registers& registers) {
  const auto* found = dynamic_cast<const LinuxKernel*>(&running);
  const KernelMemory* crashed = found != nullptr ? found->crashed() : nullptr;
  return crashed != nullptr && runs_on(memory, registers, crashed->table());
}

Result<std::unique_ptr<Kernel>> discover_kernel(vmm::Machine& machine, Boot boot,
                                                const TypeFile* types) {
  auto kernel = std::make_unique<LinuxKernel>(TRY(find_kernel_memory(machine)), boot, types);
  TRY(kernel->set_up());
  return kernel;
}

}  // namespace ringside::guest_linux
