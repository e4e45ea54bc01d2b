// Decoding kallsyms. In this file, top to bottom: names' lengths, tokens, names, addresses, the
// whole. Guarantees: linear in the table's size; the expanded names are bounded; nothing outside
// the copied image is read.
#include "vmm/linux/symbols/kallsyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/symbols/kallsyms_names.h"

namespace ringside::guest_linux {

std::optional<NamesExtent> measure_names(std::span<const std::byte> names, std::uint32_t count,
                                         LengthForm form, std::uint64_t& budget) {
  NamesExtent extent;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (budget-- == 0) return std::nullopt;
    if (i == 256) extent.at_256 = extent.bytes;
    const auto head = name_head(names.subspan(extent.bytes), form);
    if (!head) return std::nullopt;
    extent.bytes += head->bytes + head->tokens;
  }
  return extent;
}

bool markers_follow(std::span<const std::byte> names, const NamesExtent& extent) {
  for (const std::size_t alignment : {4, 8}) {
    const std::size_t at = round_up(extent.bytes, alignment);
    if (names.size() < at + 16) continue;
    const auto first = load_at<std::uint32_t>(names, at);
    const auto second32 = load_at<std::uint32_t>(names, at + 4);
    const auto second64 = load_at<std::uint64_t>(names, at + 8);
    if (first == 0 && (second32 == extent.at_256 || second64 == extent.at_256)) return true;
  }
  return false;
}

namespace {

constexpr std::size_t kTokens = 256;
constexpr std::size_t kShortToken = 16;            // copied in one go
constexpr std::uint64_t kMaxExpanded = 128 << 20;  // all names together

/// The 256 tokens, each padded to 16 bytes so that a short one is copied without a loop.
struct Tokens {
  std::array<std::array<char, kShortToken>, kTokens> head{};
  std::array<std::string_view, kTokens> text;
};

std::optional<Tokens> read_tokens(const ImageView& image, const KallsymsKeys& keys) {
  const auto index = image.slice(keys.token_index, kTokens * sizeof(std::uint16_t));
  if (!index) return std::nullopt;
  Tokens tokens;
  for (std::size_t i = 0; i < kTokens; ++i) {
    const auto at = keys.token_table.checked_add(load_at<std::uint16_t>(*index, i * 2));
    const auto start = at ? image.index_of(*at) : std::nullopt;
    if (!start) return std::nullopt;
    const auto rest = image.bytes.subspan(*start);
    const auto room = rest.first(std::min(rest.size(), kMostSymbolName));
    const auto end = std::find(room.begin(), room.end(), std::byte{0});
    if (end == room.end()) return std::nullopt;
    // SAFETY: char may alias any bytes; the range was found inside `image`.
    tokens.text[i] = std::string_view(reinterpret_cast<const char*>(room.data()),
                                      static_cast<std::size_t>(end - room.begin()));
    std::copy_n(tokens.text[i].data(), std::min(tokens.text[i].size(), kShortToken),
                tokens.head[i].begin());
  }
  return tokens;
}

/// Nothing in the image says whether lengths may take two bytes (6.1): measure both ways and keep
/// the one that the markers follow.
std::optional<LengthForm> choose_form(std::span<const std::byte> names, std::uint32_t count) {
  std::uint64_t budget = 2 * std::uint64_t{count} + 2;
  const auto two = measure_names(names, count, LengthForm::TwoBytes, budget);
  if (two && (count <= 256 || markers_follow(names, *two))) return LengthForm::TwoBytes;
  const auto one = measure_names(names, count, LengthForm::OneByte, budget);
  if (one && (count <= 256 || markers_follow(names, *one))) return LengthForm::OneByte;
  if (two) return LengthForm::TwoBytes;
  return one ? std::optional(LengthForm::OneByte) : std::nullopt;
}

/// Expands every name into one string and sets name and type of each symbol.
bool expand_names(std::span<const std::byte> names, LengthForm form, const Tokens& tokens,
                  Kallsyms& out) {
  std::uint64_t total = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < out.symbols.size(); ++i) {
    const NameHead head = *name_head(names.subspan(at), form);  // measured by choose_form()
    const auto codes = names.subspan(at + head.bytes, head.tokens);
    for (const std::byte code : codes) total += tokens.text[static_cast<std::size_t>(code)].size();
    if (total > kMaxExpanded) return false;
    at += head.bytes + head.tokens;
  }
  auto text = std::make_shared<std::string>(total + kShortToken, '\0');
  char* to = text->data();
  at = 0;
  for (Symbol& symbol : out.symbols) {
    const NameHead head = *name_head(names.subspan(at), form);
    const char* const start = to;
    for (const std::byte code : names.subspan(at + head.bytes, head.tokens)) {
      const std::string_view token = tokens.text[static_cast<std::size_t>(code)];
      if (token.size() <= kShortToken) {
        // Copies past the token's end; the slack after `total` makes room for the last one.
        std::memcpy(to, tokens.head[static_cast<std::size_t>(code)].data(), kShortToken);
      } else {
        std::memcpy(to, token.data(), token.size());
      }
      to += token.size();
    }
    const std::string_view expanded(start, static_cast<std::size_t>(to - start));
    if (!expanded.empty()) {
      symbol.type = expanded.front();
      symbol.name = expanded.substr(1);
    }
    at += head.bytes + head.tokens;
  }
  text->resize(total);
  // Names are printed: they must not steer a terminal.
  for (char& c : *text) c = is_name_character(c) ? c : '?';
  out.names = std::move(text);
  return true;
}

/// One table of addresses in one encoding.
class Addresses {
 public:
  static std::optional<Addresses> of(const ImageView& image, const KallsymsKeys& keys,
                                     AddressEncoding encoding) {
    const bool wide = encoding == AddressEncoding::Absolute64;
    const auto table = wide ? keys.addresses64 : keys.offsets;
    if (!table) return std::nullopt;
    const auto bytes = image.slice(*table, std::uint64_t{keys.count} * (wide ? 8 : 4));
    if (!bytes) return std::nullopt;
    std::uint64_t base = table->raw();
    if (encoding == AddressEncoding::BaseRelative || encoding == AddressEncoding::AbsolutePercpu) {
      const auto relative =
          keys.relative_base ? image.load<std::uint64_t>(*keys.relative_base) : std::nullopt;
      if (!relative) return std::nullopt;
      base = *relative;
    }
    return Addresses(*bytes, base, encoding);
  }

  GuestVirt operator[](std::uint32_t i) const {
    const std::size_t at = std::size_t{i} * 4;
    switch (encoding_) {
      case AddressEncoding::Absolute64: return GuestVirt(load_at<std::uint64_t>(bytes_, at * 2));
      case AddressEncoding::BaseRelative:
        return GuestVirt(base_ + load_at<std::uint32_t>(bytes_, at));
      case AddressEncoding::PlaceRelative:
        return GuestVirt(base_ + at + extend(load_at<std::int32_t>(bytes_, at)));
      case AddressEncoding::AbsolutePercpu: break;
    }
    const auto offset = load_at<std::int32_t>(bytes_, at);
    return GuestVirt(offset >= 0 ? extend(offset) : base_ - 1 - extend(offset));
  }

 private:
  Addresses(std::span<const std::byte> bytes, std::uint64_t base, AddressEncoding encoding)
      : bytes_(bytes), base_(base), encoding_(encoding) {}

  static std::uint64_t extend(std::int32_t value) {
    return static_cast<std::uint64_t>(std::int64_t{value});
  }

  std::span<const std::byte> bytes_;
  std::uint64_t base_;
  AddressEncoding encoding_;
};

/// Decodes the addresses in the encoding that puts _stext where it is; false when none does.
bool fill_addresses(const ImageView& image, const KallsymsKeys& keys, GuestVirt stext,
                    Kallsyms& out) {
  const auto known = std::find_if(out.symbols.begin(), out.symbols.end(),
                                  [](const Symbol& symbol) { return symbol.name == "_stext"; });
  if (known == out.symbols.end()) return false;
  const auto index = static_cast<std::uint32_t>(known - out.symbols.begin());
  for (const auto encoding : {AddressEncoding::AbsolutePercpu, AddressEncoding::BaseRelative,
                              AddressEncoding::PlaceRelative, AddressEncoding::Absolute64}) {
    const auto addresses = Addresses::of(image, keys, encoding);
    if (!addresses || (*addresses)[index] != stext) continue;
    for (std::uint32_t i = 0; i < keys.count; ++i) out.symbols[i].address = (*addresses)[i];
    out.encoding = encoding;
    return true;
  }
  return false;
}

}  // namespace

Result<Kallsyms> decode_kallsyms(const ImageView& image, const KallsymsKeys& keys,
                                 GuestVirt stext) {
  if (keys.count < kMinSymbols || keys.count > kMaxSymbols) {
    return fail(ErrorCode::Invalid, fmt::format("kallsyms: {} symbols cannot be", keys.count));
  }
  const auto tokens = read_tokens(image, keys);
  const auto start = image.index_of(keys.names);
  if (!tokens || !start) {
    return fail(ErrorCode::Invalid, "kallsyms: the token tables are not what they should be");
  }
  const auto names = image.bytes.subspan(*start);
  const auto form = choose_form(names, keys.count);
  Kallsyms result;
  if (form) result.symbols.resize(keys.count);
  if (!form || !expand_names(names, *form, *tokens, result)) {
    return fail(ErrorCode::Invalid, "kallsyms: the names table is malformed");
  }
  if (!fill_addresses(image, keys, stext, result)) {
    return fail(ErrorCode::Invalid, "kallsyms: no known encoding of addresses yields _stext");
  }
  return result;
}

namespace {

constexpr std::uint64_t kTokenTableBytes = 64 << 10;  // u16 offsets reach no further

std::optional<KallsymsKeys> keys_of(const VmcoreInfo& info) {
  const auto names = info.symbol("kallsyms_names");
  const auto table = info.symbol("kallsyms_token_table");
  const auto index = info.symbol("kallsyms_token_index");
  if (!names || !table || !index || !info.symbol("kallsyms_num_syms")) return std::nullopt;
  KallsymsKeys keys{.names = *names,
                    .token_table = *table,
                    .token_index = *index,
                    .count = 0,
                    .offsets = info.symbol("kallsyms_offsets"),
                    .addresses64 = info.symbol("kallsyms_addresses"),
                    .relative_base = info.symbol("kallsyms_relative_base")};
  if (!keys.offsets && !keys.addresses64) return std::nullopt;
  return keys;
}

/// The smallest piece of the image that holds all the tables. The names end below the tokens.
Result<std::vector<std::byte>> copy_tables(const KernelMemory& memory, const KallsymsKeys& keys,
                                           GuestVirt& from) {
  std::uint64_t low = keys.names.raw();
  std::uint64_t high = low;
  const auto include = [&](std::optional<GuestVirt> at, std::uint64_t size) {
    if (!at) return;
    low = std::min(low, at->raw());
    // Beyond the last address it is in no image: the copy is refused.
    high = std::max(high, at->checked_add(size).value_or(GuestVirt(UINT64_MAX)).raw());
  };
  include(keys.token_table, kTokenTableBytes);
  include(keys.token_index, kTokenIndexBytes);
  include(keys.offsets, std::uint64_t{keys.count} * 4);
  include(keys.addresses64, std::uint64_t{keys.count} * 8);
  include(keys.relative_base, 8);
  from = GuestVirt(low);
  return memory.copy_image(from, high - low);
}

}  // namespace

Result<Kallsyms> read_kallsyms(const KernelMemory& memory) {
  const GuestVirt stext = *memory.info().symbol("_stext");
  auto keys = keys_of(memory.info());
  if (!keys) {
    const auto image = memory.copy_whole_image();
    auto found = scan_for_kallsyms(ImageView{stext, image}, stext);
    if (!found) return tl::unexpected(lacks(memory, "has no symbol table", "CONFIG_KALLSYMS"));
    return found;
  }
  const auto count =
      TRY(memory.copy_image(*memory.info().symbol("kallsyms_num_syms"), sizeof(std::uint32_t)));
  keys->count = std::min(load_at<std::uint32_t>(count, 0), kMaxSymbols);
  GuestVirt from;
  const auto tables = TRY(copy_tables(memory, *keys, from));
  return decode_kallsyms(ImageView{from, tables}, *keys, stext);
}

}  // namespace ringside::guest_linux
