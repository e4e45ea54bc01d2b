#include <algorithm>
#include <array>

#include "tests/fuzz/guest_input.h"
#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/module_writer.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/text/patched_sites.h"
#include "vmm/linux/types/btf.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::uint64_t kHead = 0xffff'ffff'8200'0000, kBtfHead = kHead + 0x10;
constexpr std::uint64_t kModule = 0xffff'ffff'c000'0000, kText = 0xffff'ffff'c100'0000;
constexpr std::uint64_t kTables = 0xffff'ffff'c200'0000;
constexpr std::uint64_t kLongestName = 512;  // KSYM_NAME_LEN
constexpr std::size_t kMostLoaded = 4;       // each may take a second, whatever it says

ModuleLayout module_layout() {
  ModuleLayout layout{};
  layout.state = 0;
  layout.list = 8;
  layout.name = 24;
  layout.kallsyms = 80;
  layout.text_base = 88;
  layout.text_size = 96;
  layout.symtab = 0;
  layout.num_symtab = 8;
  layout.strtab = 16;
  layout.typetab = 24;
  layout.jump_labels = ModuleLayout::Table{104, 112};
  layout.static_calls = ModuleLayout::Table{120, 128};
  layout.exceptions = ModuleLayout::Table{136, 144};
  layout.btf = ModuleLayout::BtfList{0, 16, 24, 0, 8};
  return layout;
}

void check_head(const ModuleHead& head) {
  CHECK(!head.name.empty() && head.name.size() < 64);
  CHECK(std::ranges::all_of(head.name, is_name_character));
  CHECK(head.text_base.checked_add(head.text_size));
}

void check_symbols(const ModuleSymbols& read) {
  CHECK(read.symbols.size() <= kMaxModuleSymbols);
  for (const Symbol& symbol : read.symbols) {
    CHECK(!symbol.name.empty() && symbol.name.size() <= kLongestName);
    CHECK(std::ranges::all_of(symbol.name, is_name_character));
    CHECK(symbol.name.data() >= read.names->data());
    CHECK(symbol.name.data() + symbol.name.size() <= read.names->data() + read.names->size());
  }
}

/// Everything about a module, one number for all of it.
std::size_t load(const GuestInput& guest, const ModuleLayout& layout, const ModuleHead& head,
                 ModuleBudget& budget) {
  const ModuleSymbols symbols = read_module_symbols(guest, layout, head, budget);
  check_symbols(symbols);
  std::vector<Kernel::PatchedSite> sites;
  (void)read_module_sites(guest, layout, head, sites, budget);
  const Kernel::AddressRange text{head.text_base, GuestVirt(head.text_base.raw() + head.text_size)};
  for (const auto& site : sites) {
    CHECK(text.contains(site.address) && site.length > 0 && site.length <= 8);
  }
  SymbolTable table;
  if (symbols.names) table.adopt(symbols.names);
  table.add_module({.name = head.name, .text_base = head.text_base, .text_size = head.text_size},
                   symbols.symbols);
  table.seal();
  CHECK(std::ranges::is_sorted(table.symbols(), {}, &Symbol::address));
  CHECK(!table.describe(head.text_base).empty());
  return symbols.symbols.size() * 31 + sites.size();
}

std::vector<std::size_t> look(const GuestInput& guest) {
  guest.rewind();
  std::vector<std::size_t> seen;
  const ModuleLayout layout = module_layout();
  const auto heads = list_modules(guest, layout, GuestVirt(kHead));
  if (!heads) {
    CHECK(!heads.error().message.empty());
    return seen;
  }
  CHECK(heads->size() <= kMaxModules);
  std::ranges::for_each(*heads, check_head);
  ModuleBudget budget;
  for (const ModuleHead& head : std::span(*heads).first(std::min(heads->size(), kMostLoaded))) {
    seen.push_back(load(guest, layout, head, budget));
  }
  TypeGraph graph;
  for (const ModuleBtf& btf : read_module_btf(guest, layout, GuestVirt(kBtfHead), budget)) {
    if (!btf.bytes) continue;
    CHECK(btf.bytes->size() <= kMaxBtfBytes);
    seen.push_back(Btf::read(*btf.bytes, nullptr, graph).has_value() ? 1 : 0);
    if (seen.size() > 2 * kMostLoaded) break;
  }
  seen.push_back(graph.size());
  return seen;
}

}  // namespace

std::size_t read_modules(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput guest(script);
  const auto first = look(guest);
  CHECK(look(guest) == first);
  return first.size();
}

Inputs module_inputs() {
  fakes::PagedGuest empty, two;
  empty.put(kHead, kHead);
  empty.put(kBtfHead, kBtfHead);
  two.put(kHead, kModule + 8);
  const ModuleWriter write{two, kText, kTables};
  write.module(kModule, kModule + 0x208, "loop");
  write.module(kModule + 0x200, kHead, "ext4");
  write.symbols();
  write.types(kModule, kBtfHead);
  auto changing = pieces_of(two.pages());
  for (Piece late : std::vector(changing)) {
    late.after = 12;
    late.bytes = late.bytes.first(late.bytes.size() / 2);
    changing.insert(changing.begin(), late);
  }
  // Symbols whose names never end: two of them, again and again.
  auto endless = pieces_of(two.pages());
  std::array<std::byte, 48> symbols{};
  symbols[6] = symbols[30] = std::byte{1};
  symbols[26] = std::byte{2};
  const std::array letter{std::byte{'a'}};
  const std::uint64_t names = kTables + 0x10'0000, symtab = kTables + 0x20'0000;
  endless.insert(endless.begin(), {names, 0x10'0000, 0, letter, true});
  endless.insert(endless.begin(), {symtab, 0x10'0000, 0, symbols, true});
  ScriptWriter tables;
  tables.put(symtab, std::uint64_t{0x200}, names);
  endless.insert(endless.begin(), {kTables, 24, 0, tables.bytes()});
  return {write_guest(pieces_of(empty.pages())), write_guest(pieces_of(two.pages())),
          write_guest(changing), write_guest(endless)};
}

}  // namespace ringside::fuzz
