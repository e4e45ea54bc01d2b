// In this file, top to bottom: languages and names, units, the functions of a unit, a function.
#include "vmm/linux/processes/dwarf_types.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/processes/argument_places.h"
#include "vmm/linux/processes/dwarf_image.h"
#include "vmm/linux/processes/dwarf_type_reader.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostRanges = 4 << 20, kMostUnitsAtAddress = 8;
constexpr std::size_t kMostNestedScopes = 128, kMostParameters = 1024;
constexpr unsigned kMostOrigins = 8;

/// Ends of names that compilers give to a changed copy, or a part, of a function.
constexpr std::array<std::string_view, 9> kChangedFunctions = {
    ".constprop", ".isra",    ".part",   ".cold",   ".argelim",
    ".argprom",   ".retelim", ".resume", ".destroy"};

std::optional<CallingRules> rules_of(int language) {
  switch (language) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:  // C++ 17; newer than <dwarf.h> of Debian 12, as the next ones are
    case 0x2c:  // C 17
    case 0x3a:  // C++ 20
    case 0x3e:  // C 23
      return CallingRules::SystemV;
    case DW_LANG_Rust: return CallingRules::Rust;
    default: return std::nullopt;
  }
}

/// Where the function's code begins: where it has several ranges, the first one.
std::optional<Dwarf_Addr> entry_of(Dwarf_Die& function) {
  Dwarf_Addr entry = 0, base = 0, end = 0;
  if (dwarf_entrypc(&function, &entry) == 0) return entry;
  if (dwarf_ranges(&function, 0, &base, &entry, &end) > 0) return entry;
  return std::nullopt;
}

bool may_have_functions(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block: return true;
    default: return false;
  }
}

/// LLVM leaves arguments out that a function of one file does not use, and says so since version 17
/// only (DW_CC_nocall). Such an argument is nowhere.
bool may_lack_arguments(Dwarf_Die& function, Dwarf_Die& unit, std::uint64_t most_steps) {
  Dwarf_Attribute external;
  bool is_external = false;
  if (dwarf_attr_integrate(&function, DW_AT_external, &external) != nullptr &&
      dwarf_formflag(&external, &is_external) == 0 && is_external) {
    return false;
  }
  if (dwarf_name(unit, DW_AT_producer).starts_with("GNU ")) return false;
  Dwarf_Die each;
  if (dwarf_child(&function, &each) != 0) return false;
  std::uint64_t steps = 0;
  do {
    if (dwarf_tag(&each) == DW_TAG_formal_parameter && dwarf_hasattr(&each, DW_AT_location) == 0) {
      return true;
    }
  } while (++steps < most_steps && dwarf_siblingof(&each, &each) == 0);
  return false;
}

}  // namespace

class DwarfTypes::Search {
 public:
  Search(DwarfImage image, std::optional<DwarfImage> alternative)
      : alternative_(std::move(alternative)), image_(std::move(image)) {
    if (alternative_) dwarf_setalt(image_.dwarf(), alternative_->dwarf());
    find_units();
  }

  Result<FunctionTypes> function_at(std::uint64_t address, std::string_view symbol,
                                    TypeGraph& graph);

 private:
  struct Unit {
    Dwarf_Off offset = 0;  // of its first entry
    bool is_split = false;
  };
  struct Range {
    Dwarf_Addr begin = 0, end = 0;
    std::size_t unit = 0;
  };
  struct Function {
    Dwarf_Addr address = 0;
    Dwarf_Off offset = 0;
    auto operator<=>(const Function&) const = default;
  };

  void find_units();
  std::vector<std::size_t> units_at(std::uint64_t address) const;
  const std::vector<Function>& functions_of(std::size_t unit);
  Result<Dwarf_Die> find(std::uint64_t address, std::string_view symbol);
  bool has_name(Dwarf_Die function, std::string_view symbol) const;
  Result<FunctionTypes> types_of(Dwarf_Die function);
  Result<void> add_parameters(Dwarf_Die& function, FunctionTypes& found);

  std::optional<DwarfImage> alternative_;
  DwarfImage image_;
  std::vector<Unit> units_;
  std::vector<Range> ranges_;
  std::unordered_map<std::size_t, std::vector<Function>> functions_;  // by unit
  std::optional<DwarfTypeReader> reader_;
};

/// Each unit says which addresses its code has. So .debug_aranges, which clang does not write, is
/// not needed.
void DwarfTypes::Search::find_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die die;
  while (dwarf_get_units(image_.dwarf(), unit, &unit, &version, &type, &die, nullptr) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    std::uint8_t address_size = 0;
    if (dwarf_cu_info(unit, nullptr, nullptr, nullptr, nullptr, nullptr, &address_size, nullptr) !=
            0 ||
        address_size != 8) {
      continue;
    }
    const bool is_split = type == DW_UT_skeleton || dwarf_hasattr(&die, DW_AT_dwo_name) != 0 ||
                          dwarf_hasattr(&die, DW_AT_GNU_dwo_name) != 0;
    units_.push_back({dwarf_dieoffset(&die), is_split});
    Dwarf_Addr base = 0, begin = 0, end = 0;
    std::ptrdiff_t at = 0;
    while (ranges_.size() < kMostRanges && (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0) {
      if (begin < end) ranges_.push_back({begin, end, units_.size() - 1});
    }
  }
}

std::vector<std::size_t> DwarfTypes::Search::units_at(std::uint64_t address) const {
  std::vector<std::size_t> found;
  for (const Range& each : ranges_) {
    if (address < each.begin || address >= each.end) continue;
    if (std::ranges::find(found, each.unit) == found.end()) found.push_back(each.unit);
    if (found.size() == kMostUnitsAtAddress) break;
  }
  return found;
}

/// An entry of one unit takes a byte at least: there are no more steps than that.
const std::vector<DwarfTypes::Search::Function>& DwarfTypes::Search::functions_of(
    std::size_t unit) {
  const auto [known, is_new] = functions_.try_emplace(unit);
  std::vector<Function>& found = known->second;
  Dwarf_Die die;
  if (!is_new || dwarf_offdie(image_.dwarf(), units_[unit].offset, &die) == nullptr) return found;
  std::vector<Dwarf_Die> scopes;
  Dwarf_Die child;
  if (dwarf_child(&die, &child) == 0) scopes.push_back(child);
  for (std::uint64_t steps = 0; !scopes.empty() && steps < image_.unit_bytes(); ++steps) {
    die = scopes.back();
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_subprogram) {
      if (const auto entry = entry_of(die)) found.push_back({*entry, dwarf_dieoffset(&die)});
    }
    if (dwarf_siblingof(&die, &scopes.back()) != 0) scopes.pop_back();
    if (may_have_functions(tag) && scopes.size() < kMostNestedScopes &&
        dwarf_child(&die, &child) == 0) {
      scopes.push_back(child);
    }
  }
  std::ranges::sort(found);
  return found;
}

/// `function` is a copy: following its origins changes it.
bool DwarfTypes::Search::has_name(Dwarf_Die function, std::string_view symbol) const {
  for (unsigned n = 0; n < kMostOrigins; ++n) {
    if (dwarf_name(function, DW_AT_name) == symbol ||
        dwarf_name(function, DW_AT_linkage_name) == symbol ||
        dwarf_name(function, DW_AT_MIPS_linkage_name) == symbol) {
      return true;
    }
    auto origin = dwarf_reference(function, DW_AT_abstract_origin);
    if (!origin) origin = dwarf_reference(function, DW_AT_specification);
    if (!origin) break;
    function = *origin;
  }
  return false;
}

Result<Dwarf_Die> DwarfTypes::Search::find(std::uint64_t address, std::string_view symbol) {
  std::vector<Dwarf_Die> found;
  for (const std::size_t unit : units_at(address)) {
    if (units_[unit].is_split) {
      return fail(ErrorCode::Unsupported,
                  "its DWARF is in another file (.dwo): compile it without -gsplit-dwarf");
    }
    const auto& functions = functions_of(unit);
    auto at = std::ranges::lower_bound(functions, address, {}, &Function::address);
    for (; at != functions.end() && at->address == address; ++at) {
      Dwarf_Die die;
      if (dwarf_offdie(image_.dwarf(), at->offset, &die) != nullptr) found.push_back(die);
    }
  }
  if (found.empty()) return fail(ErrorCode::NotFound, "DWARF has no function at its address");
  if (found.size() == 1) return found.front();
  for (const Dwarf_Die& each : found) {
    if (has_name(each, symbol)) return each;
  }
  return fail(ErrorCode::Unsupported, "DWARF has several functions at its address");
}

Result<FunctionTypes> DwarfTypes::Search::function_at(std::uint64_t address,
                                                      std::string_view symbol, TypeGraph& graph) {
  if (!reader_) reader_.emplace(graph);
  CHECK(&reader_->graph() == &graph);
  for (const std::string_view each : kChangedFunctions) {
    if (symbol.find(each) == symbol.npos) continue;
    return fail(ErrorCode::Unsupported,
                fmt::format("the compiler has changed its arguments ({})", each));
  }
  return types_of(TRY(find(address, symbol)));
}

Result<FunctionTypes> DwarfTypes::Search::types_of(Dwarf_Die function) {
  Dwarf_Die unit;
  if (dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr) {
    return fail(ErrorCode::Invalid, fmt::format("libdw: {}", dwarf_errmsg(-1)));
  }
  const int language = dwarf_srclang(&unit);
  const auto rules = rules_of(language);
  if (!rules) {
    return fail(ErrorCode::Unsupported,
                fmt::format("how its language passes arguments is not known (DW_AT_language {:#x})",
                            static_cast<unsigned>(language)));
  }
  if (dwarf_number(function, DW_AT_calling_convention).value_or(DW_CC_normal) != DW_CC_normal) {
    return fail(ErrorCode::Unsupported, "it has a calling convention of its own");
  }
  if (may_lack_arguments(function, unit, image_.unit_bytes())) {
    return fail(ErrorCode::Unsupported, "the compiler may have left out an argument of it");
  }
  // Its parameters may be written at the function that it is a copy of; a declaration in a class
  // has no names for them.
  for (unsigned n = 0; n < kMostOrigins; ++n) {
    const auto origin = dwarf_reference(function, DW_AT_abstract_origin);
    if (!origin) break;
    function = *origin;
  }
  FunctionTypes found;
  Dwarf_Die declaration = dwarf_reference(function, DW_AT_specification).value_or(function);
  const bool has_type = dwarf_hasattr(&function, DW_AT_type) != 0;
  found.result = reader_->type_at(has_type ? function : declaration);
  TRY(add_parameters(function, found));
  if (!reader_->complete()) {
    return fail(ErrorCode::Limit, fmt::format("the file has more than {} types",
                                              grouped(DwarfTypeReader::kMostTypes)));
  }
  TypeGraph& graph = reader_->graph();
  const auto places = argument_places(graph, reader_->traits(), *rules, found.result, found.types);
  for (std::size_t n = 0; n < places.size(); ++n) {
    found.places.push_back(places[n].place);
    if (places[n].is_by_reference) found.types[n] = graph.user_pointer_to(found.types[n]);
  }
  return found;
}

Result<void> DwarfTypes::Search::add_parameters(Dwarf_Die& function, FunctionTypes& found) {
  Dwarf_Die each;
  if (dwarf_child(&function, &each) != 0) return {};
  std::uint64_t steps = 0;
  do {
    if (dwarf_tag(&each) != DW_TAG_formal_parameter) continue;
    if (found.types.size() == kMostParameters) {
      return fail(ErrorCode::Limit,
                  fmt::format("it has more than {} arguments", grouped(kMostParameters)));
    }
    if (!found.types.empty() && dwarf_flag(each, DW_AT_artificial)) {
      return fail(ErrorCode::Unsupported, "the compiler may pass a hidden argument to it");
    }
    found.types.push_back(reader_->type_at(each));
    found.names.push_back(dwarf_name(each, DW_AT_name));
  } while (++steps < image_.unit_bytes() && dwarf_siblingof(&each, &each) == 0);
  return {};
}

DwarfTypes::DwarfTypes(std::unique_ptr<Search> search) : search_(std::move(search)) {}
DwarfTypes::DwarfTypes(DwarfTypes&&) noexcept = default;
DwarfTypes& DwarfTypes::operator=(DwarfTypes&&) noexcept = default;
DwarfTypes::~DwarfTypes() = default;

Result<DwarfTypes> DwarfTypes::read(const File& file, std::uint64_t most, const File* shared) {
  DwarfImage image = TRY(DwarfImage::build(file.bytes, file.elf, most));
  std::optional<DwarfImage> second;
  if (shared != nullptr) second = TRY(DwarfImage::build(shared->bytes, shared->elf, most));
  return DwarfTypes(std::make_unique<Search>(std::move(image), std::move(second)));
}

Result<DwarfTypes> DwarfTypes::find(const HostFiles::Wanted& wanted, HostFiles* host) {
  Result<DwarfTypes> found = read({wanted.file, wanted.elf}, kMostOfGuest);
  if (found || host == nullptr) return found;
  host->visit(wanted, [&](const HostFiles::Copy& copy) {
    const File file{copy.file, copy.elf};
    std::optional<Result<DwarfTypes>> types;
    if (const auto link = shared_types_link(copy.file, copy.elf)) {
      const auto searched = host->visit(*link, wanted.servers, [&](const HostFiles::Copy& shared) {
        const File other{shared.file, shared.elf};
        types.emplace(read(file, kMostOfHost, &other));
        return types->has_value();
      });
      if (!types) {
        host->note_search(printable(link->path), "types of " + copy.file.name() +
                                                     " that it shares are not known" + searched);
      }
    }
    if (!types) types.emplace(read(file, kMostOfHost));
    if (*types || types->error().code != ErrorCode::NotFound) found = std::move(*types);
    return found.has_value();
  });
  return found;
}

Result<FunctionTypes> DwarfTypes::function_at(std::uint64_t address, std::string_view symbol,
                                              TypeGraph& graph) {
  return search_->function_at(address, symbol, graph);
}

}  // namespace ringside::guest_linux
