#include "vmm/linux/modules.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/text/patched_sites.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kHead = 0xffff'ffff'8200'0000;    // `modules`
constexpr std::uint64_t kModule = 0xffff'ffff'c000'4000;  // struct module of the first
constexpr std::uint64_t kModuleStride = 0x1000;
constexpr std::uint64_t kModuleText = 0xffff'ffff'c100'0000;
constexpr std::uint64_t kModuleTables = 0xffff'ffff'c200'0000;

/// As in 6.12, rounded: offsets do not matter as long as all agree.
ModuleLayout layout() {
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
  layout.btf = ModuleLayout::BtfList{0, 16, 24, 0, 8};
  return layout;
}

struct Modules : testing::Test {
  fakes::SparseGuest guest;
  ModuleBudget budget;

  static std::uint64_t module_at(std::uint64_t i) { return kModule + i * kModuleStride; }
  static std::uint64_t node_at(std::uint64_t i) { return module_at(i) + 8; }

  void put_module(std::uint64_t i, std::string_view name, std::uint32_t state = 0) {
    const std::uint64_t at = module_at(i);
    guest.put(at, state);
    std::array<char, 56> text{};
    std::copy(name.begin(), name.end(), text.begin());
    guest.put(at + 24, text);
    guest.put(at + 80, kModuleTables);
    guest.put(at + 88, kModuleText + i * kModuleStride);
    guest.put(at + 96, std::uint32_t{0x800});
    guest.put(at + 104, kModuleTables + 0x400);
    guest.put(at + 112, std::uint32_t{1});
  }
  void link(std::uint64_t from, std::uint64_t to) { guest.put(from, to); }

  Result<std::vector<ModuleHead>> list() { return list_modules(guest, layout(), GuestVirt(kHead)); }
};

TEST_F(Modules, LiveOnesAreListedInOrder) {
  put_module(0, "loop");
  put_module(1, "coming", 1);
  put_module(2, "ext4");
  link(kHead, node_at(0));
  link(node_at(0), node_at(1));
  link(node_at(1), node_at(2));
  link(node_at(2), kHead);

  const auto heads = list();

  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->size(), 2u);
  EXPECT_EQ((*heads)[0].name, "loop");
  EXPECT_EQ((*heads)[0].text_base.raw(), kModuleText);
  EXPECT_EQ((*heads)[0].text_size, 0x800u);
  EXPECT_EQ((*heads)[1].name, "ext4");
}

TEST_F(Modules, AnEmptyListHasNone) {
  link(kHead, kHead);

  ASSERT_TRUE(list());
  EXPECT_TRUE(list()->empty());
}

TEST_F(Modules, ACycleThatAvoidsTheHeadIsAnError) {
  put_module(0, "a");
  put_module(1, "b");
  link(kHead, node_at(0));
  link(node_at(0), node_at(1));
  link(node_at(1), node_at(0));

  const auto heads = list();

  ASSERT_FALSE(heads);
  EXPECT_EQ(heads.error().code, ErrorCode::Invalid);
}

TEST_F(Modules, AnEndlessListIsAnError) {
  for (std::uint64_t i = 0; i <= kMaxModules; ++i) link(node_at(i), node_at(i + 1));
  link(kHead, node_at(0));

  EXPECT_FALSE(list());
}

TEST_F(Modules, ANodeThatCannotBeReadIsAnError) {
  link(kHead, 0x10);

  EXPECT_FALSE(list());
}

TEST_F(Modules, NamesThatCannotBeAndTextThatWrapsAreLeftOut) {
  put_module(0, "bad\nname");
  put_module(1, "wraps");
  guest.put(module_at(1) + 88, std::uint64_t{0xffff'ffff'ffff'ff00});
  put_module(2, "");
  link(kHead, node_at(0));
  link(node_at(0), node_at(1));
  link(node_at(1), node_at(2));
  link(node_at(2), kHead);

  ASSERT_TRUE(list());
  EXPECT_TRUE(list()->empty());
}

TEST_F(Modules, OneThatIsBeingLoadedIsReadWhereItIsToldOf) {
  put_module(0, "coming", 1);
  put_module(1, "going", 2);
  put_module(2, "bad\nname", 1);
  put_module(3, "empty", 1);
  guest.put(module_at(3) + 96, std::uint32_t{0});

  const auto coming = read_coming_module(guest, layout(), GuestVirt(module_at(0)));

  ASSERT_TRUE(coming);
  EXPECT_EQ(coming->name, "coming");
  EXPECT_EQ(coming->text_base.raw(), kModuleText);
  for (const std::uint64_t i : {1, 2, 3}) {
    EXPECT_FALSE(read_coming_module(guest, layout(), GuestVirt(module_at(i)))) << i;
  }
  EXPECT_FALSE(read_coming_module(guest, layout(), GuestVirt(0))) << "nothing is there";
}

constexpr Elf64_Sym symbol(std::uint32_t name, std::uint16_t section, std::uint64_t value) {
  return {name, 0, 0, section, value, 0};
}

struct ModuleTables : Modules {
  static constexpr std::uint64_t kSymtab = kModuleTables + 0x1000, kStrtab = kModuleTables + 0x2000;
  static constexpr std::uint64_t kTypetab = kModuleTables + 0x3000;
  ModuleHead head{GuestVirt(kModule), "loop", GuestVirt(kModuleText), 0x800};

  void SetUp() override {
    put_module(0, "loop");
    guest.put(kModuleTables, kSymtab);
    guest.put(kModuleTables + 8, std::uint32_t{4});
    guest.put(kModuleTables + 16, kStrtab);
    guest.put(kModuleTables + 24, kTypetab);
    guest.put(kSymtab, symbol(0, 0, 0));
    guest.put(kSymtab + 24, symbol(1, 2, kModuleText + 0x10));
    guest.put(kSymtab + 48, symbol(10, 0, 0));  // undefined
    guest.put(kSymtab + 72, symbol(1 << 20, 2, kModuleText));
    guest.put(kStrtab, '\0');
    guest.put_text(kStrtab + 1, "lo_ioctl");
    guest.put_text(kStrtab + 10, "printk");
    guest.put(kTypetab, std::array{'?', 't', 'U', 't'});
  }
};

TEST_F(ModuleTables, DefinedSymbolsAreRead) {
  const auto read = read_module_symbols(guest, layout(), head, budget);

  ASSERT_EQ(read.symbols.size(), 1u) << "neither the undefined one nor the one without a name";
  EXPECT_EQ(read.symbols[0].name, "lo_ioctl");
  EXPECT_EQ(read.symbols[0].type, 't');
  EXPECT_EQ(read.symbols[0].address.raw(), kModuleText + 0x10);
}

TEST_F(ModuleTables, NamesThatWouldSteerTheTerminalAreLeftOut) {
  guest.put_text(kStrtab + 1, "lo_\x1b[2J");

  EXPECT_TRUE(read_module_symbols(guest, layout(), head, budget).symbols.empty());
}

/// A table of as many symbols as there may be, each of which begins one text without an end.
class EndlessNames final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (at.raw() < kModule + kModuleStride) return load_module(at, out);
    if (at.raw() >= ModuleTables::kStrtab) {
      std::memset(out.data(), 'a', out.size());
      return {};
    }
    constexpr Elf64_Sym kFirst = symbol(0, 1, kModuleText);
    constexpr Elf64_Sym kFar = symbol(32 << 20, 1, kModuleText);
    for (std::size_t n = 0; (n + 1) * sizeof kFirst <= out.size(); ++n) {
      std::memcpy(out.data() + n * sizeof kFirst, n == 0 ? &kFar : &kFirst, sizeof kFirst);
    }
    return {};
  }

 private:
  static Result<void, Fault> load_module(GuestVirt at, std::span<std::byte> out) {
    constexpr std::uint64_t kAt = kModule + 0x100;  // struct mod_kallsyms
    const std::uint64_t value = at.raw() == kModule + 80 ? kAt
                                : at.raw() == kAt        ? ModuleTables::kSymtab
                                : at.raw() == kAt + 8    ? kMaxModuleSymbols
                                : at.raw() == kAt + 16   ? ModuleTables::kStrtab
                                                         : 0;
    std::memcpy(out.data(), &value, out.size());
    return {};
  }
};

TEST(ModuleSymbolsOf, AMillionNamesWithoutAnEndAreLeftOutSoon) {
  ModuleLayout without_types = layout();
  without_types.typetab.reset();
  const ModuleHead head{GuestVirt(kModule), "loop", GuestVirt(kModuleText), 0x800};

  ModuleBudget budget;
  EXPECT_TRUE(read_module_symbols(EndlessNames(), without_types, head, budget).symbols.empty());
}

TEST_F(ModuleTables, AnAbsurdNumberOfSymbolsIsNone) {
  guest.put(kModuleTables + 8, UINT32_MAX);

  EXPECT_TRUE(read_module_symbols(guest, layout(), head, budget).symbols.empty());
}

TEST_F(ModuleTables, JumpLabelsOfTheModuleAreSites) {
  const std::uint64_t entry = kModuleTables + 0x400;
  guest.put(entry, static_cast<std::uint32_t>(kModuleText + 0x20 - entry));
  guest.put(entry + 4, std::uint32_t{0});
  guest.put(entry + 8, std::uint64_t{0});
  std::vector<Kernel::PatchedSite> sites;

  EXPECT_TRUE(read_module_sites(guest, layout(), head, sites, budget));

  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].address.raw(), kModuleText + 0x20);
}

/// The entries of one module's tables count for every module that names the same tables.
TEST_F(ModuleTables, SymbolsOfAllModulesTogetherHaveABudget) {
  budget.symbols = 10;

  EXPECT_FALSE(read_module_symbols(guest, layout(), head, budget).left_out);
  EXPECT_FALSE(read_module_symbols(guest, layout(), head, budget).left_out);
  const auto third = read_module_symbols(guest, layout(), head, budget);

  EXPECT_TRUE(third.left_out) << "4 of each";
  EXPECT_TRUE(third.symbols.empty());
  budget = {.name_bytes = 100};
  EXPECT_TRUE(read_module_symbols(guest, layout(), head, budget).left_out);
}

TEST_F(ModuleTables, SitesThatCannotBeHadCloseTheModule) {
  std::vector<Kernel::PatchedSite> sites;
  EXPECT_FALSE(read_module_sites(guest, layout(), head, sites, budget)) << "not mapped";
  guest.put(kModuleTables + 0x400, std::array<std::uint64_t, 2>{});
  EXPECT_TRUE(read_module_sites(guest, layout(), head, sites, budget));
  budget.sites = 0;
  EXPECT_FALSE(read_module_sites(guest, layout(), head, sites, budget)) << "no room";
  budget = {};
  guest.put(kModule + 112, UINT32_MAX);
  EXPECT_FALSE(read_module_sites(guest, layout(), head, sites, budget)) << "absurd";
  guest.put(kModule + 112, std::uint32_t{0});
  EXPECT_TRUE(read_module_sites(guest, layout(), head, sites, budget)) << "there are none";
}

TEST_F(Modules, TypesAreFoundByTheirModule) {
  constexpr std::uint64_t kEntry = kModuleTables, kBtf = kModuleTables + 0x100,
                          kData = kModuleTables + 0x200;
  link(kHead, kEntry);
  link(kEntry, kHead);
  guest.put(kEntry + 16, kModule);
  guest.put(kEntry + 24, kBtf);
  guest.put(kBtf, kData);
  guest.put(kBtf + 8, std::uint32_t{4});
  guest.put(kData, std::uint32_t{0x0001'eb9f});

  const auto found = read_module_btf(guest, layout(), GuestVirt(kHead), budget);

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].module.raw(), kModule);
  EXPECT_EQ(found[0].bytes->size(), 4u);
  budget.btf_bytes = 3;
  const auto left_out = read_module_btf(guest, layout(), GuestVirt(kHead), budget);
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].bytes, nullptr);
}

TEST(ModuleLayoutOf, TypesWithoutModulesIsNone) {
  EXPECT_FALSE(ModuleLayout::from(TypeGraph()));
}

TEST(ModuleLayoutOf, BothFormsOfTheTextRange) {
  for (const std::string_view member : {"core_layout", "mem"}) {
    TypeGraph types;
    const TypeId pointer = types.pointer_to({});
    const TypeId word = *types.find("unsigned int");
    const std::array range = {Member{"base", pointer, 0, 0}, Member{"size", word, 64, 0}};
    TypeId text = types.add_struct(TypeKind::Struct, "range", 16, range);
    if (member == "mem") text = types.array_of(text, 7);
    const std::array module = {Member{"state", word, 0, 0}, Member{"list", pointer, 64, 0},
                               Member{"name", pointer, 192, 0}, Member{"kallsyms", pointer, 640, 0},
                               Member{member, text, 2560, 0}};
    types.index(types.add_struct(TypeKind::Struct, "module", 1024, module));
    const std::array tables = {Member{"symtab", pointer, 0, 0}, Member{"num_symtab", word, 64, 0},
                               Member{"strtab", pointer, 128, 0}};
    types.index(types.add_struct(TypeKind::Struct, "mod_kallsyms", 32, tables));

    const auto layout = ModuleLayout::from(types);

    ASSERT_TRUE(layout) << member;
    EXPECT_EQ(layout->text_base, 320u);
    EXPECT_EQ(layout->text_size, 328u);
    EXPECT_FALSE(layout->text_size_is_64);
    EXPECT_FALSE(layout->typetab);
    EXPECT_FALSE(layout->jump_labels);
  }
}

}  // namespace
}  // namespace ringside::guest_linux
