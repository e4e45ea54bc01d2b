// In this file, top to bottom: checks of a kernel that was found, the writer of a small one.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/module_writer.h"
#include "tests/fuzz/ram_input.h"
#include "vmm/base/check.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/linux/stacks/stack_walk.h"
#include "vmm/linux/text/kprobes.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::size_t kAsked = 64;

void check_symbols(const SymbolTable& table, Kernel& kernel) {
  CHECK(!table.modules().empty() && table.modules().size() <= 4097);
  CHECK(std::ranges::is_sorted(table.symbols(), {}, &Symbol::address));
  for (const Symbol& symbol : table.symbols()) CHECK(symbol.module < table.modules().size());
  const auto symbols = table.symbols();
  for (const Symbol& symbol : symbols.first(std::min(symbols.size(), kAsked))) {
    CHECK(table.find(symbol.name) != nullptr && !table.describe(symbol.address).empty());
    const auto prototype = kernel.prototype(symbol);
    CHECK(!prototype || kernel.types()[*prototype].kind == TypeKind::Function);
  }
}

void check_text(const Kernel& kernel) {
  CHECK(std::ranges::is_sorted(kernel.patched_sites(), {}, &Kernel::PatchedSite::address));
  for (const auto& site : kernel.patched_sites()) {
    CHECK(site.length > 0 && site.length <= 8 && !site.what.empty());
    CHECK(std::ranges::any_of(kernel.symbols().modules(), [&](const Module& module) {
      return module.has_text_at(site.address);
    }));
  }
  for (const auto& range : kernel.forbidden_text()) CHECK(range.begin < range.end);
}

/// Reads the tables that probes and stacks read later.
std::size_t check_tables(const GuestReader& reader, Kernel& kernel) {
  const StackTables stacks = load_stack_tables(reader, kernel);
  std::array<std::uint64_t, kAsked> frames{};
  Registers registers;
  registers.rip = kStext + 0x20;
  registers.rsp = kStext + 0x3900;
  const auto count = unwind(stacks, reader, registers, WalkStart::Here, frames);
  CHECK(count <= frames.size());
  const KprobeTable kprobes(kernel.symbols(), kernel.types());
  (void)kprobes.is_changing(reader);
  const auto found = kprobes.read(reader);
  CHECK(!found || std::ranges::is_sorted(*found, {}, &Kprobe::address));
  return stacks.entry_count() + (found ? found->size() : 0);
}

/// Modules that come while the kernel is traced, each twice.
void check_late_modules(Kernel& kernel) {
  constexpr std::uint64_t kStructures = kStext + 0x4000;
  for (const std::uint64_t at : {kStructures, kStructures + 0x200, kStructures, std::uint64_t{8}}) {
    const auto late = kernel.admit_module(GuestVirt(at));
    if (!late) continue;
    const auto symbols = kernel.symbols().late(late->module);
    CHECK(!symbols.empty() && std::ranges::is_sorted(symbols, {}, &Symbol::address));
    for (const Symbol& symbol : symbols.first(std::min(symbols.size(), kAsked))) {
      CHECK(symbol.module == late->module && late->text.contains(symbol.address));
      CHECK(kernel.symbols().find(symbol.name, late->name) != nullptr);
    }
  }
  check_text(kernel);
}

}  // namespace

std::size_t read_kernel(std::span<const std::byte> input) {
  constexpr std::size_t kMostCpus = 8192;
  FuzzScript script(input);
  const GuestInput pieces(script);
  InputMachine machine(pieces, script.take<std::uint64_t>());
  const auto kernel = discover_kernel(machine);
  const auto again = discover_kernel(machine);
  CHECK(kernel.has_value() == again.has_value());
  if (!kernel) {
    CHECK(!kernel.error().message.empty() && kernel.error().message == again.error().message);
    return 0;
  }
  Kernel& found = **kernel;
  CHECK(found.symbols().symbols().size() == (*again)->symbols().symbols().size());
  CHECK(found.types().size() == (*again)->types().size());
  check_symbols(found.symbols(), found);
  check_text(found);
  CHECK(!found.percpu_bases().empty() && found.percpu_bases().size() <= kMostCpus);
  CHECK(found.cpu_of(GuestVirt(found.percpu_bases()[0])));
  const vmm::PageTableReader reader(machine.memory(), found.table());
  (void)found.current_task(reader, GuestVirt(found.percpu_bases()[0]));
  const std::size_t rows = check_tables(reader, found);
  const auto changed = found.refresh_modules();
  CHECK(!changed || !*changed);
  found.end_set_up();
  check_late_modules(found);
  return found.symbols().modules().size() * 1000 + rows;
}

namespace {

constexpr std::uint64_t kData = kStext + 0x3000, kModules = kStext + 0x4000;
constexpr std::uint64_t kModuleTables = kStext + 0x5000, kBtf = kStext + 0x6000;
constexpr std::uint64_t kKallsyms = kStext + 0x9000, kInfo = 0x1e000;
constexpr std::uint64_t kModuleText = kStext + 0x2800;

fakes::BtfWriter small_types() {
  constexpr unsigned kPointer = 2, kArray = 3, kEnum = 6, kFunction = 12, kPrototype = 13;
  fakes::BtfWriter btf;
  const auto number = btf.integer("int", 4, true);
  const auto word = btf.integer("long unsigned int", 8, false);
  const auto letter = btf.integer("char", 1, true);
  const auto pointer = btf.type(kPointer, "", 0);
  const auto array = [&](std::uint32_t element, std::uint32_t count) {
    const auto id = btf.type(kArray, "", 0);
    btf.word(element).word(word).word(count);
    return id;
  };
  const auto name = array(letter, 56);
  const auto list = btf.structure("list_head", 16, {{"next", pointer, 0}, {"prev", pointer, 64}});
  const auto layout = btf.structure("module_layout", 16, {{"base", word, 0}, {"size", number, 64}});
  const auto arch = btf.structure(
      "mod_arch_specific", 24,
      {{"num_orcs", number, 0}, {"orc_unwind_ip", pointer, 64}, {"orc_unwind", pointer, 128}});
  btf.structure("module", 176,
                {{"state", number, 0},
                 {"list", list, 64},
                 {"name", name, 192},
                 {"kallsyms", pointer, 640},
                 {"core_layout", layout, 704},
                 {"jump_entries", pointer, 832},
                 {"num_jump_entries", number, 896},
                 {"static_call_sites", pointer, 960},
                 {"num_static_call_sites", number, 1024},
                 {"extable", pointer, 1088},
                 {"num_exentries", number, 1152},
                 {"arch", arch, 1216}});
  btf.structure("mod_kallsyms", 32,
                {{"symtab", pointer, 0},
                 {"num_symtab", number, 64},
                 {"strtab", pointer, 128},
                 {"typetab", pointer, 192}});
  btf.structure("btf_module", 32,
                {{"list", list, 0}, {"module", pointer, 128}, {"btf", pointer, 192}});
  btf.structure("btf", 16, {{"data", pointer, 0}, {"data_size", number, 64}});
  btf.structure("mutex", 8, {{"owner", word, 0}});
  const auto copy = btf.structure("arch_specific_insn", 8, {{"insn", pointer, 0}});
  const auto kprobe = btf.structure("kprobe", 48,
                                    {{"hlist", list, 0},
                                     {"addr", pointer, 128},
                                     {"opcode", letter, 192},
                                     {"ainsn", copy, 256},
                                     {"flags", number, 320}});
  const auto optimized =
      btf.structure("arch_optimized_insn", 16, {{"copied_insn", number, 0}, {"insn", pointer, 64}});
  btf.structure("optimized_kprobe", 64, {{"kp", kprobe, 0}, {"optinsn", optimized, 384}});
  btf.structure("task_struct", 32, {{"pid", number, 0}, {"comm", name, 32}});
  btf.type(kEnum, "system_states", 4, 2);
  btf.word(btf.string("SYSTEM_BOOTING")).word(0).word(btf.string("SYSTEM_RUNNING")).word(3);
  const auto prototype = btf.type(kPrototype, "", number, 1);
  btf.word(btf.string("file")).word(pointer);
  btf.type(kFunction, "vfs_read", prototype, 1);
  return btf;
}

std::vector<fakes::NamedAddress> small_symbols(std::uint64_t btf_bytes) {
  std::vector<fakes::NamedAddress> symbols = {
      {0, 'A', "fixed_percpu_data"}, {0x40, 'A', "current_task"}, {kStext, 'T', "_stext"}};
  for (std::uint64_t n = 1; n < 60; ++n) {
    symbols.push_back({kStext + n * 16, 't', n == 2 ? "vfs_read" : "f" + std::to_string(n)});
  }
  const auto data = [&](std::uint64_t offset, std::string name) {
    symbols.push_back({kData + offset, 'D', std::move(name)});
  };
  symbols.push_back({kStext + 0x800, 'T', "__entry_text_start"});
  symbols.push_back({kStext + 0x900, 'T', "__entry_text_end"});
  symbols.push_back({kStext + 0x1000, 'T', "_etext"});
  data(0, "system_state"), data(8, "nr_cpu_ids"), data(0x40, "__per_cpu_offset");
  data(0x100, "modules"), data(0x110, "btf_modules"), data(0x200, "init_task");
  data(0x400, "kprobe_table"), data(0x600, "text_mutex");
  data(0x700, "__start___jump_table"), data(0x720, "__stop___jump_table");
  data(0x740, "__start_static_call_sites"), data(0x750, "__stop_static_call_sites");
  data(0x760, "__start___ex_table"), data(0x778, "__stop___ex_table");
  data(0x800, "__start_orc_unwind_ip"), data(0x810, "__stop_orc_unwind_ip");
  data(0x840, "__start_orc_unwind");
  symbols.push_back({kBtf, 'r', "__start_BTF"});
  symbols.push_back({kBtf + btf_bytes, 'r', "__stop_BTF"});
  return symbols;
}

void put_tables(fakes::PagedGuest& guest) {
  const auto relative = [&](std::uint64_t offset, std::uint64_t target) {
    guest.put(kData + offset, static_cast<std::int32_t>(target - kData - offset));
  };
  for (const std::uint64_t entry : {0x700, 0x710, 0x740, 0x748, 0x760, 0x76c}) {
    relative(entry, kStext + 0x100 + entry % 0x80);
  }
  constexpr std::uint16_t kCallFromSp = 5 | 2 << 8;  // since 6.4
  for (std::uint64_t n = 0; n < 4; ++n) {
    relative(0x800 + n * 4, kStext + n * 0x100);
    guest.put(kData + 0x840 + n * 6, std::int16_t{16});
    guest.put(kData + 0x844 + n * 6, kCallFromSp);
  }
  guest.put(kData + 0x908, kStext + 0x140);  // a return address on the stack
  constexpr std::uint64_t kProbe = kData + 0xa00;
  guest.put(kData + 0x400, kProbe);
  guest.put(kProbe + 16, kStext + 0x50);
  guest.put(kProbe + 24, std::uint8_t{0x55});
  guest.put(kProbe + 32, kProbe + 0x80);
  guest.put(kProbe + 40, std::uint32_t{4});  // optimised
  guest.put(kProbe + 48, std::uint32_t{0x90909090});
  guest.put(kProbe + 56, kStext + 0x2000);
  guest.put(kProbe + 0x80, std::uint8_t{0x55});
}

enum class Modules : std::uint8_t {
  None,
  Two,
  OneWithoutText,  // nor with tables that can be read
};

std::vector<std::byte> small_kernel(Modules modules, const fakes::KallsymsForm& form) {
  const fakes::BtfWriter types = small_types();
  const auto blob = types.blob();
  fakes::PagedGuest guest;
  for (std::size_t n = 0; n < blob.size(); ++n) guest.put(kBtf + n, blob[n]);
  CHECK(blob.size() < kKallsyms - kBtf);
  guest.put(kData, std::uint32_t{3});
  guest.put(kData + 8, std::uint32_t{2});
  guest.put(kData + 0x40, std::array{kStext + 0x3b00, kStext + 0x3c00});
  guest.put(kData + 0x100, kData + 0x100);
  guest.put(kData + 0x110, kData + 0x110);
  put_tables(guest);
  if (modules != Modules::None) {
    const ModuleWriter write{guest, kModuleText, kModuleTables};
    guest.put(kData + 0x100, kModules + 8);
    write.module(kModules, kModules + 0x208, "loop");
    write.module(kModules + 0x200, kData + 0x100, "ext4");
    write.symbols();
    write.types(kModules, kData + 0x110, types.type_count(), types.string_bytes());
    guest.put(kModules + 152, std::uint32_t{4});
    guest.put(kModules + 160, kData + 0x800);
    guest.put(kModules + 168, kData + 0x840);
  }
  if (modules == Modules::OneWithoutText) {
    guest.put(kModules + 0x200 + 96, std::uint32_t{0});
    guest.put(kModules + 0x200 + 104, std::uint64_t{0});
  }
  Ram ram;
  for (const auto& [number, page] : guest.pages()) {
    ram.put_bytes(number * page.size() - kStext + kImage, page);
  }
  const auto tables = fakes::KallsymsWriter(small_symbols(blob.size()), form, kKallsyms).write();
  CHECK(kKallsyms - kStext + kImage + tables.image.size() < kInfo);
  ram.put_bytes(kKallsyms - kStext + kImage, tables.image);
  const KallsymsKeys& keys = tables.keys;
  ram.put_text(kInfo, info_text() + fmt::format("SYMBOL(kallsyms_names)={:x}\n"
                                                "SYMBOL(kallsyms_num_syms)={:x}\n"
                                                "SYMBOL(kallsyms_token_table)={:x}\n"
                                                "SYMBOL(kallsyms_token_index)={:x}\n"
                                                "SYMBOL(kallsyms_offsets)={:x}\n"
                                                "SYMBOL(kallsyms_relative_base)={:x}\n",
                                                keys.names.raw(), keys.names.raw() - 8,
                                                keys.token_table.raw(), keys.token_index.raw(),
                                                keys.offsets->raw(), keys.relative_base->raw()));
  return ram.input();
}

}  // namespace

Inputs kernel_inputs() {
  fakes::KallsymsForm before64, since64;
  before64.encoding = since64.encoding = AddressEncoding::AbsolutePercpu;
  since64.addresses_last = true;
  return {small_kernel(Modules::None, before64), small_kernel(Modules::Two, since64),
          small_kernel(Modules::OneWithoutText, since64)};
}

}  // namespace ringside::fuzz
