// Reading the module list. In this file, top to bottom: offsets, the list walk, heads, symbols,
// tables, BTF. Guarantees: every count from the guest is capped before memory is taken for it.
#include "vmm/linux/modules.h"

#include <elf.h>

#include <algorithm>
#include <array>

#include "vmm/base/printable.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

namespace {

constexpr std::size_t kNameBytes = 56;                     // MODULE_NAME_LEN on 64-bit
constexpr std::uint32_t kStateLive = 0, kStateComing = 1;  // enum module_state
constexpr std::uint64_t kMaxModule = 64 << 20;  // the module area is 1.5 GiB, no module is this big

/// Reads as much of [at, at + size) as there is: a string table's end is only estimated.
std::vector<std::byte> read_up_to(const GuestReader& kernel, GuestVirt at, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  bytes.resize(read_available(kernel, at, bytes));
  return bytes;
}

/// Empty for what cannot be a name. Looks no further than a name may reach: a million symbols may
/// all begin a text without an end.
std::string_view name_at(std::string_view names, std::size_t at) {
  const std::string_view rest = names.substr(at, kMostSymbolName);
  const std::size_t end = rest.find('\0');
  if (end == rest.npos) return {};
  const std::string_view name = rest.substr(0, end);
  return std::ranges::all_of(name, is_name_character) ? name : std::string_view();
}

/// A table whose pointer and count are members of struct module.
std::optional<ModuleLayout::Table> table_of(const TypeGraph& types, std::string_view pointer,
                                            std::string_view count) {
  const auto at = offset_of(types, "module", {pointer});
  const auto length = offset_of(types, "module", {count});
  if (!at || !length) return std::nullopt;
  return ModuleLayout::Table{*at, *length};
}

bool find_text(const TypeGraph& types, ModuleLayout& layout) {
  for (const std::string_view member : {"core_layout", "mem"}) {
    const auto base = offset_of(types, "module", {member});
    const auto structure = base ? types.find(TypeKind::Struct, "module") : std::nullopt;
    const auto found = structure ? types.find_member(*structure, member) : std::nullopt;
    if (!found) continue;
    // mem[] is an array; MOD_TEXT is its first element.
    const TypeId type = types.resolve(found->type);
    const TypeId element =
        types[type].kind == TypeKind::Array ? types.resolve(types[type].target) : type;
    const auto text_base = types.find_member(element, "base");
    const auto text_size = types.find_member(element, "size");
    if (!text_base || !text_size) continue;
    layout.text_base = *base + static_cast<std::uint32_t>(text_base->bit_offset / 8);
    layout.text_size = *base + static_cast<std::uint32_t>(text_size->bit_offset / 8);
    layout.text_size_is_64 = types.size_of(text_size->type) == 8;
    return true;
  }
  return false;
}

std::optional<ModuleLayout::BtfList> btf_list_of(const TypeGraph& types) {
  const auto list = offset_of(types, "btf_module", {"list"});
  const auto module = offset_of(types, "btf_module", {"module"});
  const auto btf = offset_of(types, "btf_module", {"btf"});
  const auto data = offset_of(types, "btf", {"data"});
  const auto size = offset_of(types, "btf", {"data_size"});
  if (!list || !module || !btf || !data || !size) return std::nullopt;
  return ModuleLayout::BtfList{*list, *module, *btf, *data, *size};
}

}  // namespace

std::optional<ModuleLayout> ModuleLayout::from(const TypeGraph& types) {
  const auto list = offset_of(types, "module", {"list"});
  const auto name = offset_of(types, "module", {"name"});
  const auto state = offset_of(types, "module", {"state"});
  const auto kallsyms = offset_of(types, "module", {"kallsyms"});
  const auto symtab = offset_of(types, "mod_kallsyms", {"symtab"});
  const auto num_symtab = offset_of(types, "mod_kallsyms", {"num_symtab"});
  const auto strtab = offset_of(types, "mod_kallsyms", {"strtab"});
  if (!list || !name || !state || !kallsyms || !symtab || !num_symtab || !strtab) {
    return std::nullopt;
  }
  ModuleLayout layout{};
  layout.list = *list;
  layout.name = *name;
  layout.state = *state;
  layout.kallsyms = *kallsyms;
  layout.symtab = *symtab;
  layout.num_symtab = *num_symtab;
  layout.strtab = *strtab;
  layout.typetab = offset_of(types, "mod_kallsyms", {"typetab"});
  if (!find_text(types, layout)) return std::nullopt;
  layout.jump_labels = table_of(types, "jump_entries", "num_jump_entries");
  layout.static_calls = table_of(types, "static_call_sites", "num_static_call_sites");
  layout.exceptions = table_of(types, "extable", "num_exentries");
  layout.btf = btf_list_of(types);
  return layout;
}

namespace {

/// core_layout.size is 32 bits, module_memory.size too; built to follow the kernel's types.
Result<std::uint64_t, Fault> read_text_size(const GuestReader& kernel, const ModuleLayout& layout,
                                            GuestVirt module) {
  if (layout.text_size_is_64) return load_field<std::uint64_t>(kernel, module, layout.text_size);
  return std::uint64_t{TRY(load_field<std::uint32_t>(kernel, module, layout.text_size))};
}

bool is_in_state(const GuestReader& kernel, const ModuleLayout& layout, GuestVirt module,
                 std::uint32_t state) {
  return load_field<std::uint32_t>(kernel, module, layout.state) == state;
}

/// Empty when the module was torn away while we read.
std::optional<ModuleHead> read_head(const GuestReader& kernel, const ModuleLayout& layout,
                                    GuestVirt module) {
  const auto name = load_field<std::array<char, kNameBytes>>(kernel, module, layout.name);
  const auto base = load_field<std::uint64_t>(kernel, module, layout.text_base);
  const auto size = read_text_size(kernel, layout, module);
  if (!name || !base || !size) return std::nullopt;
  const std::string_view text(name->data(), name->size());
  ModuleHead head{module, std::string(text.substr(0, text.find('\0'))), GuestVirt(*base), *size};
  const bool printable = std::ranges::all_of(head.name, is_name_character);
  const bool fits = *size <= kMaxModule && head.text_base.checked_add(*size);
  if (head.name.empty() || !printable || !fits) return std::nullopt;
  return head;
}

}  // namespace

Result<std::vector<ModuleHead>> list_modules(const GuestReader& kernel, const ModuleLayout& layout,
                                             GuestVirt modules) {
  std::vector<ModuleHead> heads;
  const ListEnd end = walk_list(kernel, modules, kMaxModules, [&](GuestVirt node) {
    const GuestVirt module = node.wrapping_sub(layout.list);
    if (!is_in_state(kernel, layout, module, kStateLive)) return true;
    auto head = read_head(kernel, layout, module);
    if (head) heads.push_back(std::move(*head));
    return true;
  });
  if (end != ListEnd::Whole) {
    return fail(ErrorCode::Invalid,
                "the guest's module list cannot be walked: it is damaged or changing, try again");
  }
  return heads;
}

Result<ModuleHead> read_coming_module(const GuestReader& kernel, const ModuleLayout& layout,
                                      GuestVirt module) {
  const bool is_one = is_in_state(kernel, layout, module, kStateComing) ||
                      is_in_state(kernel, layout, module, kStateLive);
  auto head = is_one ? read_head(kernel, layout, module) : std::nullopt;
  if (head && head->text_size != 0) return std::move(*head);
  return fail(ErrorCode::Invalid, "what the guest says of it makes no sense");
}

ModuleSymbols read_module_symbols(const GuestReader& kernel, const ModuleLayout& layout,
                                  const ModuleHead& module, ModuleBudget& budget) {
  const auto tables = load_field<std::uint64_t>(kernel, module.address, layout.kallsyms);
  if (!tables) return {};
  const GuestVirt at(*tables);
  const auto symtab = load_field<std::uint64_t>(kernel, at, layout.symtab);
  const auto count = load_field<std::uint32_t>(kernel, at, layout.num_symtab);
  const auto strtab = load_field<std::uint64_t>(kernel, at, layout.strtab);
  if (!symtab || !count || !strtab || *count > kMaxModuleSymbols) return {};
  if (!ModuleBudget::take(budget.symbols, *count)) return {nullptr, {}, true};
  std::vector<Elf64_Sym> elf(*count);
  if (!kernel.read(GuestVirt(*symtab), std::as_writable_bytes(std::span(elf)))) return {};

  std::vector<std::byte> types;
  if (layout.typetab) {
    const auto typetab = load_field<std::uint64_t>(kernel, at, *layout.typetab);
    if (typetab) types = read_up_to(kernel, GuestVirt(*typetab), *count);
  }
  std::uint64_t names_end = 0;
  for (const Elf64_Sym& symbol : elf)
    names_end = std::max<std::uint64_t>(names_end, symbol.st_name);
  names_end += kMostSymbolName;
  if (!ModuleBudget::take(budget.name_bytes, names_end)) return {nullptr, {}, true};
  const auto bytes = read_up_to(kernel, GuestVirt(*strtab), names_end);

  // SAFETY: char may alias any bytes.
  auto names = std::make_shared<const std::string>(reinterpret_cast<const char*>(bytes.data()),
                                                   bytes.size());
  ModuleSymbols result{names, {}};
  for (std::size_t i = 0; i < elf.size(); ++i) {
    if (elf[i].st_shndx == SHN_UNDEF || elf[i].st_name >= names->size()) continue;
    const std::string_view name = name_at(*names, elf[i].st_name);
    if (name.empty()) continue;
    const char type = i < types.size() ? static_cast<char>(types[i])
                                       : static_cast<char>(elf[i].st_info);  // before 5.2
    result.symbols.push_back({.address = GuestVirt(elf[i].st_value), .name = name, .type = type});
  }
  return result;
}

std::vector<ModuleBtf> read_module_btf(const GuestReader& kernel, const ModuleLayout& layout,
                                       GuestVirt btf_modules, ModuleBudget& budget) {
  std::vector<ModuleBtf> found;
  if (!layout.btf) return found;
  (void)walk_list(kernel, btf_modules, kMaxModules, [&](GuestVirt node) {
    const GuestVirt entry = node.wrapping_sub(layout.btf->list);
    const auto module = load_field<std::uint64_t>(kernel, entry, layout.btf->module);
    const auto btf = load_field<std::uint64_t>(kernel, entry, layout.btf->btf);
    if (!module || !btf) return true;
    const auto data = load_field<std::uint64_t>(kernel, GuestVirt(*btf), layout.btf->data);
    const auto size = load_field<std::uint32_t>(kernel, GuestVirt(*btf), layout.btf->data_size);
    if (!data || !size) return true;
    if (!ModuleBudget::take(budget.btf_bytes, *size)) {
      found.push_back({GuestVirt(*module), nullptr});
      return true;
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(*size);
    if (kernel.read(GuestVirt(*data), *bytes)) {
      found.push_back({GuestVirt(*module), std::move(bytes)});
    }
    return true;
  });
  return found;
}

}  // namespace ringside::guest_linux
