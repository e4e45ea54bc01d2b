// In this file, top to bottom: filling, sealing, modules that come later, questions.
#include "vmm/linux/symbol_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringside::guest_linux {

namespace {

// A symbol followed by a gap (another section, other modules) does not reach across it.
constexpr std::uint64_t kMaxSymbolSize = 1 << 20;

/// Bytes of padding in front of a function, not functions themselves (CONFIG_CALL_PADDING, 6.2).
bool is_padding(const Symbol& symbol) {
  return symbol.name.starts_with("__pfx_");
}

}  // namespace

void SymbolTable::add_module(Module module, std::vector<Symbol> symbols) {
  const auto index = static_cast<std::uint16_t>(modules_.size());
  modules_.push_back(std::move(module));
  for (Symbol& symbol : symbols) symbol.module = index;
  if (symbols_.empty()) {
    symbols_ = std::move(symbols);
  } else {
    symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
  }
}

std::string_view SymbolTable::intern(std::string text) {
  return blobs_.emplace_back(std::move(text));
}

void SymbolTable::adopt(std::shared_ptr<const std::string> names) {
  adopted_.push_back(std::move(names));
}

void SymbolTable::seal() {
  sort_by_address();
  fill_sizes(symbols_);
  std::erase_if(symbols_, is_padding);
  build_index();
}

void SymbolTable::sort_by_address() {
  // vmlinux comes first and sorted; modules follow it, so only their part needs sorting.
  const auto by_address = [](const Symbol& a, const Symbol& b) { return a.address < b.address; };
  const auto sorted_end = std::is_sorted_until(symbols_.begin(), symbols_.end(), by_address);
  if (sorted_end == symbols_.end()) return;
  const auto lowest = std::min_element(sorted_end, symbols_.end(), by_address);
  const auto from = std::upper_bound(symbols_.begin(), sorted_end, *lowest, by_address);
  std::stable_sort(from, symbols_.end(), by_address);
}

void SymbolTable::fill_sizes(std::vector<Symbol>& symbols) const {
  // From the back, remembering per module where its next higher symbol starts.
  std::vector<std::uint64_t> next(modules_.size());
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    const auto end = modules_[m].text_base.checked_add(modules_[m].text_size);
    next[m] = end ? end->raw() : 0;
  }
  for (std::size_t i = symbols.size(); i-- > 0;) {
    Symbol& symbol = symbols[i];
    const std::uint64_t at = symbol.address.raw();
    const Module& module = modules_[symbol.module];
    const std::uint64_t text_end = module.text_base.wrapping_add(module.text_size).raw();
    // A module's text may lie above its data, so its end bounds only what starts inside it.
    std::uint64_t end = next[symbol.module];
    if (module.has_text_at(symbol.address)) end = std::min(end, text_end);
    if (at < lowest_) end = at;  // per-cpu offsets are no addresses
    if (symbol.size == 0 && end > at && end - at <= kMaxSymbolSize) symbol.size = end - at;
    // Aliases share their size, so the bound moves only when the address does.
    if (i > 0 && symbols[i - 1].address != symbol.address) next[symbol.module] = at;
  }
}

void SymbolTable::build_index() {
  next_same_.assign(symbols_.size(), NameIndex::kNone);
  by_name_.reset(symbols_.size());
  const auto name_at = [this](std::uint32_t i) { return symbols_[i].name; };
  const auto prepend = [&](std::uint32_t i) {
    std::uint32_t& head = by_name_(symbols_[i].name, name_at);
    next_same_[i] = std::exchange(head, i);
  };
  // Last goes in first: vmlinux's lowest address ends up at the head.
  const auto count = static_cast<std::uint32_t>(symbols_.size());
  for (std::uint32_t i = count; i-- > 0;) {
    if (symbols_[i].module != 0) prepend(i);
  }
  for (std::uint32_t i = count; i-- > 0;) {
    if (symbols_[i].module == 0) prepend(i);
  }
}

/// Whether it is the same module, moved as a whole or not.
bool SymbolTable::is_same(const LatePart& part, const Module& module,
                          std::span<const Symbol> symbols) const {
  const Module& before = modules_[part.module];
  if (before.name != module.name || before.text_size != module.text_size) return false;
  return std::ranges::equal(part.symbols, symbols, [&](const Symbol& old, const Symbol& now) {
    return old.name == now.name && old.type == now.type &&
           old.address.offset_from(before.text_base) == now.address.offset_from(module.text_base);
  });
}

std::optional<SymbolTable::Late> SymbolTable::put_late(Module module, std::vector<Symbol> symbols,
                                                       Accept accept) {
  std::ranges::stable_sort(symbols, {}, &Symbol::address);
  const auto index = static_cast<std::uint16_t>(modules_.size());
  for (Symbol& symbol : symbols) symbol.module = index;
  modules_.push_back(std::move(module));
  fill_sizes(symbols);
  std::erase_if(symbols, is_padding);
  const auto known = std::ranges::find_if(
      late_, [&](const LatePart& part) { return is_same(part, modules_.back(), symbols); });
  const auto place = static_cast<std::size_t>(known - late_.begin());
  if (known == late_.end()) {
    if (accept == Accept::KnownOnly) {
      modules_.pop_back();
      return std::nullopt;
    }
    newest_.insert(newest_.begin(), place);
    late_.push_back({index, std::move(symbols)});
    return Late{index};
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    known->symbols[i].address = symbols[i].address;
  }
  std::erase(newest_, place);
  newest_.insert(newest_.begin(), place);
  Late again{known->module, std::exchange(modules_[known->module], std::move(modules_.back()))};
  modules_.pop_back();
  return again;
}

std::span<const Symbol> SymbolTable::late(std::uint16_t module) const {
  const auto part = std::ranges::find(late_, module, &LatePart::module);
  return part == late_.end() ? std::span<const Symbol>() : part->symbols;
}

/// The symbols among which that of this address is.
std::span<const Symbol> SymbolTable::part_at(GuestVirt address) const {
  for (const std::size_t n : newest_) {
    if (modules_[late_[n].module].has_text_at(address)) return late_[n].symbols;
  }
  return symbols_;
}

const Symbol* SymbolTable::find_late(std::string_view name, std::string_view module) const {
  for (const std::size_t n : newest_) {
    const LatePart& part = late_[n];
    if (!module.empty() && modules_[part.module].name != module) continue;
    const auto found = std::ranges::find(part.symbols, name, &Symbol::name);
    if (found != part.symbols.end()) return &*found;
  }
  return nullptr;
}

const Symbol* SymbolTable::find(std::string_view name, std::string_view module) const {
  if (!module.empty() && !late_.empty()) {
    if (const Symbol* const newer = find_late(name, module)) return newer;
  }
  const auto name_at = [this](std::uint32_t i) { return symbols_[i].name; };
  for (std::uint32_t i = by_name_.find(name, name_at); i != NameIndex::kNone; i = next_same_[i]) {
    if (module.empty() || modules_[symbols_[i].module].name == module) return &symbols_[i];
  }
  return module.empty() ? find_late(name, module) : nullptr;
}

std::span<const Symbol> SymbolTable::all_at(GuestVirt address) const {
  const std::span<const Symbol> symbols = part_at(address);
  const auto first = std::ranges::lower_bound(symbols, address, {}, &Symbol::address);
  return {first, std::ranges::upper_bound(first, symbols.end(), address, {}, &Symbol::address)};
}

const Symbol* SymbolTable::at(GuestVirt address) const {
  const std::span<const Symbol> symbols = part_at(address);
  const auto above = std::ranges::upper_bound(symbols, address, {}, &Symbol::address);
  if (above == symbols.begin() || address.raw() < lowest_) return nullptr;
  auto found = std::prev(above);
  const std::uint64_t offset = address.offset_from(found->address);
  if (offset != 0 && offset >= found->size) return nullptr;
  // The first of several aliases, as the kernel's own messages name it.
  return &*std::ranges::lower_bound(symbols.begin(), above, found->address, {}, &Symbol::address);
}

std::string SymbolTable::describe(GuestVirt address) const {
  const Symbol* symbol = at(address);
  if (symbol == nullptr) return fmt::format("{:#x}", address.raw());
  const std::uint64_t offset = address.offset_from(symbol->address);
  const std::string& module = modules_[symbol->module].name;
  return offset == 0 ? fmt::format("{}`{}", module, symbol->name)
                     : fmt::format("{}`{}+{:#x}", module, symbol->name, offset);
}

}  // namespace ringside::guest_linux
