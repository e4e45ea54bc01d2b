// Finding kallsyms by its shape, in kernels whose VMCOREINFO does not say where it lies.
// In this file, top to bottom: the token tables, the names table, the address tables.
// The shape: ten tokens "0".."9" are always there and adjacent; the token index repeats their
// offsets; the names table lies below, and its markers follow it at once.
// Guarantees: a bounded number of steps, whatever the image holds.
#include <algorithm>
#include <array>
#include <string_view>

#include "vmm/base/numbers.h"
#include "vmm/linux/symbols/kallsyms.h"
#include "vmm/linux/symbols/kallsyms_names.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint32_t kMinScanned = 10'000;  // fewer symbols has no kernel worth tracing
constexpr std::uint32_t kMaxScanned = 1'000'000;
constexpr std::uint64_t kNameBudget = 1ULL << 26;  // names looked at over all candidates
constexpr std::size_t kMaxTokenTables = 64;        // places that look like one
constexpr std::size_t kIndexReach = 4096;          // the index lies this close after the table
constexpr std::size_t kNamesReach = 16 << 20;      // and the names this close before it
// A literal ends with a NUL of its own, the last of the twenty bytes.
constexpr std::string_view kDigits("0\0001\0002\0003\0004\0005\0006\0007\0008\0009\0", 20);

struct TokenTables {
  std::size_t table = 0;  // offsets in the image
  std::size_t index = 0;
};

bool is_token_index(std::span<const std::byte> image, std::size_t at, std::size_t digits) {
  const auto entry = [&](std::size_t i) { return load_at<std::uint16_t>(image, at + i * 2); };
  if (entry(0) != 0 || entry('1') - entry('0') != 2 || entry('0') > digits) return false;
  const std::size_t table = digits - entry('0');
  for (std::size_t i = 1; i < 256; ++i) {
    if (entry(i) <= entry(i - 1) || table + entry(i) > at) return false;
    if (image[table + entry(i) - 1] != std::byte{0}) return false;
  }
  return true;
}

std::optional<TokenTables> token_tables_at(std::span<const std::byte> image, std::size_t digits) {
  const std::size_t first = round_up(digits + kDigits.size(), 2);
  for (std::size_t at = first; at < first + kIndexReach; at += 2) {
    if (at + kTokenIndexBytes > image.size()) return std::nullopt;
    if (!is_token_index(image, at, digits)) continue;
    return TokenTables{digits - load_at<std::uint16_t>(image, at + std::size_t{2} * '0'), at};
  }
  return std::nullopt;
}

struct NamesTable {
  std::size_t names = 0;  // offsets in the image
  std::size_t num_syms = 0;
  std::uint32_t count = 0;
};

/// The names table whose count lies `gap` bytes before `names`.
std::optional<NamesTable> names_table_at(std::span<const std::byte> image, std::size_t names,
                                         std::size_t gap, std::uint64_t& budget) {
  const auto count = load_at<std::uint32_t>(image, names - gap);
  if (count < kMinScanned || count > kMaxScanned) return std::nullopt;
  if (gap == 8 && load_at<std::uint32_t>(image, names - 4) != 0) return std::nullopt;
  const auto rest = image.subspan(names);
  for (const auto form : {LengthForm::TwoBytes, LengthForm::OneByte}) {
    const auto extent = measure_names(rest, count, form, budget);
    if (extent && markers_follow(rest, *extent)) return NamesTable{names, names - gap, count};
  }
  return std::nullopt;
}

std::optional<NamesTable> find_names(std::span<const std::byte> image, std::size_t below,
                                     std::uint64_t& budget) {
  const std::size_t lowest = below > kNamesReach ? below - kNamesReach : 8;
  for (std::size_t names = round_down(below, 4); names >= std::max<std::size_t>(lowest, 8);
       names -= 4) {
    for (const std::size_t gap : {8, 4}) {
      if (auto found = names_table_at(image, names, gap, budget)) return found;
    }
    if (budget == 0 || budget > kNameBudget) return std::nullopt;
  }
  return std::nullopt;
}

/// Every place where the addresses may lie relative to the tables found, tried in turn.
Result<Kallsyms> decode_around(const ImageView& image, const TokenTables& tokens,
                               const NamesTable& names, GuestVirt stext) {
  const auto at = [&](std::size_t offset) { return image.base.wrapping_add(offset); };
  const KallsymsKeys common{.names = at(names.names),
                            .token_table = at(tokens.table),
                            .token_index = at(tokens.index),
                            .count = names.count,
                            .offsets = {},
                            .addresses64 = {},
                            .relative_base = {}};
  std::vector<KallsymsKeys> tries;
  const std::size_t wide = std::size_t{names.count} * 8;
  const std::size_t narrow = round_up(std::size_t{names.count} * 4, 8);
  if (names.num_syms >= narrow + 8) {  // before 6.4: offsets, base, count, names
    tries.push_back(common);
    tries.back().relative_base = at(names.num_syms - 8);
    tries.back().offsets = at(names.num_syms - 8 - narrow);
  }
  if (names.num_syms >= wide) {
    tries.push_back(common);
    tries.back().addresses64 = at(names.num_syms - wide);
  }
  for (const std::size_t alignment : {4, 8}) {  // since: after the token index
    const std::size_t after = round_up(tokens.index + kTokenIndexBytes, alignment);
    tries.push_back(common);
    tries.back().offsets = at(after);
    tries.back().relative_base = at(round_up(after + std::size_t{names.count} * 4, 8));
  }
  for (const KallsymsKeys& keys : tries) {
    if (auto decoded = decode_kallsyms(image, keys, stext)) return decoded;
  }
  return fail(ErrorCode::Invalid, "kallsyms: found names, but no addresses that fit them");
}

}  // namespace

Result<Kallsyms> scan_for_kallsyms(const ImageView& image, GuestVirt stext) {
  // SAFETY: char may alias any bytes.
  const std::string_view text(reinterpret_cast<const char*>(image.bytes.data()),
                              image.bytes.size());
  std::uint64_t budget = kNameBudget;
  std::size_t digits = text.find(kDigits);
  for (std::size_t tried = 0; tried < kMaxTokenTables && digits != text.npos; ++tried) {
    const auto tokens = token_tables_at(image.bytes, digits);
    const auto names = tokens ? find_names(image.bytes, tokens->table, budget) : std::nullopt;
    if (names) {
      if (auto decoded = decode_around(image, *tokens, *names, stext)) return decoded;
    }
    digits = text.find(kDigits, digits + 1);
  }
  return fail(ErrorCode::NotFound, "kallsyms: no symbol table found in the kernel's image");
}

}  // namespace ringside::guest_linux
