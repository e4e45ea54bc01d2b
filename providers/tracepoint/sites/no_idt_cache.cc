// In this file, top to bottom: an entry's form, the hash, finding, keeping.
#include "providers/tracepoint/sites/no_idt_cache.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ringside::providers {
namespace {

using guest_linux::HashValue;
using guest_linux::Kernel;
using guest_linux::KernelCache;
using guest_linux::Symbol;

constexpr std::string_view kKind = "noidt";
constexpr std::size_t kMostFunctions = 1 << 16;  // 6.1 has some 100

/// An entry is a row of these, by rising offsets.
struct Row {
  std::uint64_t offset = 0;  // of the function from the text's base
  std::uint64_t reason = 0;  // its index
};

void add_symbols(guest_linux::KeyedHash& hash, const Kernel& kernel, Kernel::AddressRange text) {
  std::vector<std::byte> row;
  for (const Symbol& symbol : kernel.symbols().symbols()) {
    if (symbol.module != 0 && !text.contains(symbol.address)) continue;
    const std::uint64_t head[] = {
        symbol.address.raw(), symbol.size,
        std::uint64_t{symbol.module} << 8 | static_cast<unsigned char>(symbol.type),
        symbol.name.size()};
    row.resize(sizeof head + symbol.name.size());
    std::memcpy(row.data(), head, sizeof head);
    std::memcpy(row.data() + sizeof head, symbol.name.data(), symbol.name.size());
    hash.add(row);
  }
}

HashValue hash_of(const KernelCache& cache, const Kernel& kernel, GuestVirt base,
                  std::span<const std::byte> text) {
  auto hash = cache.hash();
  hash.add_value(base.raw());
  hash.add_value(std::uint64_t{text.size()});
  hash.add(text);
  const auto range = Kernel::AddressRange::of(base, text.size());
  add_symbols(hash, kernel, range);
  for (const auto& site : Kernel::sites_from(kernel.patched_sites(), base)) {
    if (!range.contains(site.address)) break;
    hash.add_value(std::array{site.address.raw(), std::uint64_t{site.length}, site.target.raw()});
  }
  for (const auto& forbidden : kernel.forbidden_text()) {
    hash.add_value(std::array{forbidden.begin.raw(), forbidden.end.raw()});
  }
  hash.add_value(std::uint64_t{kernel.percpu_bases().size()});
  return hash.finish();
}

}  // namespace

NoIdtCache::NoIdtCache(const KernelCache& cache, const Kernel& kernel, GuestVirt base,
                       std::span<const std::byte> text, std::span<const std::string_view> reasons)
    : cache_(cache),
      kernel_(kernel),
      base_(base),
      reasons_(reasons),
      hash_(hash_of(cache, kernel, base, text)) {}

std::optional<NoIdtCache::Reasons> NoIdtCache::find() const {
  const auto content = cache_.find(kKind, hash_);
  if (!content || content->size() % sizeof(Row) != 0) return std::nullopt;
  std::vector<Row> rows(content->size() / sizeof(Row));
  if (rows.empty() || rows.size() > kMostFunctions) return std::nullopt;
  std::memcpy(rows.data(), content->data(), content->size());
  Reasons found;
  for (const Row& row : rows) {
    const GuestVirt at = base_.wrapping_add(row.offset);
    const Symbol* const function = kernel_.symbols().at(at);
    const bool sound = row.reason < reasons_.size() && function != nullptr &&
                       function->address == at && (found.empty() || at > found.rbegin()->first);
    if (!sound) return std::nullopt;
    found.emplace_hint(found.end(), at, reasons_[row.reason]);
  }
  return found;
}

void NoIdtCache::keep(const Reasons& reasons) const {
  if (reasons.empty() || reasons.size() > kMostFunctions) return;
  std::vector<Row> rows;
  for (const auto& [at, reason] : reasons) {
    const auto known = std::ranges::find(reasons_, reason);
    rows.push_back({at.offset_from(base_), static_cast<std::uint64_t>(known - reasons_.begin())});
  }
  cache_.keep(kKind, hash_, std::as_bytes(std::span(rows)));
}

}  // namespace ringside::providers
