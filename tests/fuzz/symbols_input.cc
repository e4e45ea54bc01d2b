// In this file, top to bottom: the input's form, checks of what was decoded, first inputs.
#include <algorithm>
#include <array>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/script.h"
#include "vmm/base/check.h"
#include "vmm/base/printable.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/symbols/kallsyms.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::size_t kMostImage = 256 << 10;
constexpr std::uint64_t kBase = 0xffff'ffff'8200'0000;

/// Distances from the image's begin.
struct Keys {
  std::uint32_t names, token_table, token_index, offsets, addresses64, relative_base, count;
  std::uint8_t has;  // bits 0 to 2: offsets, addresses64, relative_base
  std::uint8_t unused[3];
  std::uint64_t stext;
};
static_assert(sizeof(Keys) == 40);

KallsymsKeys keys_of(const Keys& keys) {
  const auto at = [](std::uint32_t offset) { return GuestVirt(kBase + offset); };
  KallsymsKeys out{.names = at(keys.names),
                   .token_table = at(keys.token_table),
                   .token_index = at(keys.token_index),
                   .count = keys.count,
                   .offsets = {},
                   .addresses64 = {},
                   .relative_base = {}};
  if ((keys.has & 1) != 0) out.offsets = at(keys.offsets);
  if ((keys.has & 2) != 0) out.addresses64 = at(keys.addresses64);
  if ((keys.has & 4) != 0) out.relative_base = at(keys.relative_base);
  return out;
}

/// Parts of bytes that stand there so often: tables of 10,000 symbols in a small input.
std::vector<std::byte> take_image(FuzzScript& script) {
  std::vector<std::byte> image;
  while (!script.at_end()) {
    const auto times = script.take<std::uint16_t>();
    const auto part = script.take_bytes(script.take<std::uint16_t>());
    for (unsigned n = 0; n < times && !part.empty(); ++n) {
      if (part.size() > kMostImage - image.size()) return image;
      image.insert(image.end(), part.begin(), part.end());
    }
  }
  return image;
}

void check_names(const Kallsyms& kallsyms) {
  const std::string& names = *kallsyms.names;
  for (const Symbol& symbol : kallsyms.symbols) {
    if (symbol.name.empty()) continue;
    CHECK(symbol.name.data() >= names.data());
    CHECK(symbol.name.data() + symbol.name.size() <= names.data() + names.size());
    CHECK(std::ranges::all_of(symbol.name, is_name_character));
  }
}

/// Every symbol table has to pass this; it asks for some of the table's symbols.
void check_table(const SymbolTable& table) {
  constexpr std::size_t kAsked = 64;
  const auto symbols = table.symbols();
  CHECK(std::ranges::is_sorted(symbols, {}, &Symbol::address));
  for (std::size_t n = 0; n < std::min(symbols.size(), kAsked); ++n) {
    const Symbol& symbol = symbols[n * 7919 % symbols.size()];
    const Symbol* named = table.find(symbol.name);
    CHECK(named != nullptr && named->name == symbol.name);
    const Symbol* covering = table.at(symbol.address);
    CHECK(covering == nullptr || covering->address == symbol.address);
    CHECK(!table.describe(GuestVirt(symbol.address.raw() + n)).empty());
  }
}

void check(const Result<Kallsyms>& kallsyms, GuestVirt stext) {
  if (!kallsyms) {
    CHECK(!kallsyms.error().message.empty());
    return;
  }
  CHECK(kallsyms->symbols.size() >= kMinSymbols && kallsyms->symbols.size() <= kMaxSymbols);
  check_names(*kallsyms);
  const auto known = std::ranges::find(kallsyms->symbols, "_stext", &Symbol::name);
  CHECK(known != kallsyms->symbols.end() && known->address == stext);
  SymbolTable table;
  table.adopt(kallsyms->names);
  table.add_module({.name = "vmlinux", .text_base = stext, .text_size = 1 << 20},
                   kallsyms->symbols);
  table.seal();
  check_table(table);
}

bool same(const Result<Kallsyms>& a, const Result<Kallsyms>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return a.error().message == b.error().message;
  return a->encoding == b->encoding && *a->names == *b->names &&
         std::ranges::equal(a->symbols, b->symbols, [](const Symbol& x, const Symbol& y) {
           return x.address == y.address && x.name == y.name && x.type == y.type;
         });
}

}  // namespace

std::size_t read_kallsyms(std::span<const std::byte> input) {
  FuzzScript script(input);
  const auto keys = script.take<Keys>();
  const std::vector<std::byte> image = take_image(script);
  const ImageView view{GuestVirt(kBase), image};
  const GuestVirt stext(keys.stext);
  const auto decoded = decode_kallsyms(view, keys_of(keys), stext);
  check(decoded, stext);
  CHECK(same(decoded, decode_kallsyms(view, keys_of(keys), stext)));
  const auto scanned = scan_for_kallsyms(view, stext);
  check(scanned, stext);
  return (decoded ? decoded->symbols.size() : 0) + (scanned ? scanned->symbols.size() : 0);
}

namespace {

class KallsymsInput {
 public:
  KallsymsInput& part(std::span<const std::byte> bytes, std::uint16_t times = 1) {
    body_.put(times, static_cast<std::uint16_t>(bytes.size()));
    for (const std::byte byte : bytes) body_.put(byte);
    return *this;
  }
  std::vector<std::byte> with(const Keys& keys) const {
    ScriptWriter all;
    all.put(keys);
    for (const std::byte byte : body_.bytes()) all.put(byte);
    return all.bytes();
  }

 private:
  ScriptWriter body_;
};

std::vector<fakes::NamedAddress> some_symbols() {
  std::vector<fakes::NamedAddress> symbols = {{0, 'A', "fixed_percpu_data"},
                                              {0x1f000, 'A', "this_cpu_off"},
                                              {0xffff'ffff'8100'0000, 'T', "_stext"}};
  for (std::uint64_t n = 0; n < 300; ++n) {
    const std::string name = n % 3 == 0 ? "sys_" + std::to_string(n) : "f" + std::to_string(n % 9);
    symbols.push_back({0xffff'ffff'8100'0000 + n * 16, 't', name});
  }
  symbols.push_back({0xffff'ffff'8100'2000, 'T', "_a_token_of_more_than_sixteen_bytes"});
  symbols.push_back({0xffff'ffff'8100'3000, 'D', std::string(200, 'x')});
  return symbols;
}

std::vector<std::byte> written(const fakes::KallsymsForm& form) {
  const auto encoded = fakes::KallsymsWriter(some_symbols(), form, kBase).write();
  const auto offset = [](std::optional<GuestVirt> at) {
    return at ? static_cast<std::uint32_t>(at->raw() - kBase) : 0;
  };
  Keys keys{};
  keys.names = offset(encoded.keys.names);
  keys.token_table = offset(encoded.keys.token_table);
  keys.token_index = offset(encoded.keys.token_index);
  keys.offsets = offset(encoded.keys.offsets);
  keys.addresses64 = offset(encoded.keys.addresses64);
  keys.relative_base = offset(encoded.keys.relative_base);
  keys.count = encoded.keys.count;
  keys.has = static_cast<std::uint8_t>((encoded.keys.offsets ? 1 : 0) |
                                       (encoded.keys.addresses64 ? 2 : 0) |
                                       (encoded.keys.relative_base ? 4 : 0));
  keys.stext = 0xffff'ffff'8100'0000;
  return KallsymsInput().part(encoded.image).with(keys);
}

/// Tables that are found by their shape: _stext, and 10,000 symbols of one letter at its address.
std::vector<std::byte> to_be_scanned() {
  constexpr std::uint16_t kSymbols = 10'112;  // of whose offsets each part has 256
  fakes::Bytes base, count, first, other, markers, tokens, index;
  base.add(std::uint64_t{0xffff'ffff'8100'0000});
  count.add(std::uint32_t{kSymbols}).add(std::uint32_t{0});
  first.add(std::uint8_t{7}).add_text("T_stext");
  const auto names = std::span(first.bytes()).first(8);
  other.add(std::uint8_t{2}).add('t').add('f');
  markers.add(std::uint32_t{0});
  for (std::uint32_t n = 256; n < kSymbols; n += 256) markers.add((n - 1) * 3 + 8);
  for (const std::string& token : fakes::kallsyms_tokens()) {
    index.add(static_cast<std::uint16_t>(tokens.size()));
    tokens.add_text(token);
  }
  tokens.align(2);
  const std::array<std::byte, 8> zero{};
  const std::size_t names_bytes = 8 + (kSymbols - std::size_t{1}) * 3;
  KallsymsInput input;
  input.part(zero, kSymbols / 2).part(base.bytes()).part(count.bytes());
  input.part(names).part(other.bytes(), kSymbols - 1);
  input.part(std::span(zero).first((4 - names_bytes % 4) % 4)).part(markers.bytes());
  Keys keys{};
  keys.stext = 0xffff'ffff'8100'0000;
  return input.part(tokens.bytes()).part(index.bytes()).part(zero, 16).with(keys);
}

}  // namespace

Inputs kallsyms_inputs() {
  using enum AddressEncoding;
  Inputs inputs{to_be_scanned()};
  for (const auto encoding : {Absolute64, BaseRelative, AbsolutePercpu, PlaceRelative}) {
    inputs.push_back(written({.encoding = encoding}));
    inputs.push_back(
        written({.encoding = encoding, .two_byte_lengths = false, .addresses_last = true}));
  }
  return inputs;
}

}  // namespace ringside::fuzz
