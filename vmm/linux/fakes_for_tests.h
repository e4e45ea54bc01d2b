// Parts of fake guests for the tests and benchmarks of vmm/linux: a sparse virtual memory, a writer
// of kallsyms tables in every form that kernels have used, and a writer of BTF.
// Not linked into the product.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/symbols/kallsyms.h"

namespace ringside::guest_linux::fakes {

/// Where the kernel's text begins that was not moved (CONFIG_PHYSICAL_START).
inline constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;

/// Guest virtual memory of which only the bytes that were put exist.
class SparseGuest final : public GuestReader {
 public:
  void put_bytes(std::uint64_t at, std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) bytes_[at++] = byte;
  }
  template <class T>
  void put(std::uint64_t at, const T& value) {
    put_bytes(at, std::as_bytes(std::span(&value, 1)));
  }
  void put_text(std::uint64_t at, std::string_view text) {
    put_bytes(at, std::as_bytes(std::span(text.data(), text.size())));
    put(at + text.size(), '\0');
  }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    std::uint64_t address = at.raw();
    for (std::byte& byte : out) {
      const auto found = bytes_.find(address);
      if (found == bytes_.end()) {
        return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, address});
      }
      byte = found->second;
      ++address;
    }
    return {};
  }

 private:
  std::map<std::uint64_t, std::byte> bytes_;
};

/// Appends little-endian values and text.
class Bytes {
 public:
  template <class T>
  Bytes& add(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& add_text(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return add('\0');
  }
  Bytes& add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Bytes& align(std::size_t to) {
    while (bytes_.size() % to != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct NamedAddress {
  std::uint64_t address;
  char type;
  std::string name;
};

struct KallsymsForm {
  AddressEncoding encoding = AddressEncoding::BaseRelative;
  bool two_byte_lengths = true;
  bool addresses_last = false;  // the order since 6.4
};

/// An image that holds kallsyms tables at its start, and where they are.
struct EncodedKallsyms {
  std::vector<std::byte> image;
  GuestVirt base;
  KallsymsKeys keys;
  ImageView view() const { return {base, image}; }
};

inline std::vector<std::string> kallsyms_tokens() {
  std::vector<std::string> tokens;
  for (int code = 0; code < 256; ++code) {
    const bool is_single = code > 0x20 && code < 0x7f;
    tokens.push_back(is_single ? std::string(1, static_cast<char>(code))
                               : "unused" + std::to_string(code));
  }
  tokens[1] = "sys_";
  tokens[2] = "_a_token_of_more_than_sixteen_bytes";
  return tokens;
}

inline std::vector<std::uint8_t> kallsyms_codes(std::string_view text) {
  const auto tokens = kallsyms_tokens();
  std::vector<std::uint8_t> codes;
  while (!text.empty()) {
    std::uint8_t code = static_cast<std::uint8_t>(text.front());
    if (text.starts_with(tokens[1])) code = 1;
    if (text.starts_with(tokens[2])) code = 2;
    text.remove_prefix(tokens[code].size());
    codes.push_back(code);
  }
  return codes;
}

class KallsymsWriter {
 public:
  KallsymsWriter(std::vector<NamedAddress> symbols, KallsymsForm form, std::uint64_t base)
      : symbols_(std::move(symbols)), form_(form), base_(base) {}

  EncodedKallsyms write() {
    bytes_.add(std::uint64_t{0x1122'3344'5566'7788});  // something in front
    if (!form_.addresses_last) write_addresses();
    bytes_.align(8);
    keys_.count = static_cast<std::uint32_t>(symbols_.size());
    bytes_.add(keys_.count);
    if (form_.encoding != AddressEncoding::PlaceRelative) bytes_.align(8);
    keys_.names = here();
    write_names();
    write_tokens();
    if (form_.addresses_last) write_addresses();
    bytes_.align(64);
    return {bytes_.bytes(), GuestVirt(base_), keys_};
  }

 private:
  GuestVirt here() const { return GuestVirt(base_ + bytes_.size()); }

  std::uint64_t lowest_real() const {
    for (const auto& symbol : symbols_) {
      if (symbol.address >> 63 != 0) return symbol.address;
    }
    return 0;
  }

  void write_addresses() {
    bytes_.align(8);
    const bool wide = form_.encoding == AddressEncoding::Absolute64;
    (wide ? keys_.addresses64 : keys_.offsets) = here();
    const std::uint64_t base = lowest_real();
    for (const auto& symbol : symbols_) {
      switch (form_.encoding) {
        case AddressEncoding::Absolute64: bytes_.add(symbol.address); break;
        case AddressEncoding::BaseRelative:
          bytes_.add(static_cast<std::uint32_t>(symbol.address - base));
          break;
        case AddressEncoding::PlaceRelative:
          bytes_.add(static_cast<std::uint32_t>(symbol.address - here().raw()));
          break;
        case AddressEncoding::AbsolutePercpu:
          bytes_.add(static_cast<std::uint32_t>(
              symbol.address >> 63 == 0 ? symbol.address : base - 1 - symbol.address));
          break;
      }
    }
    if (wide || form_.encoding == AddressEncoding::PlaceRelative) return;
    bytes_.align(8);
    keys_.relative_base = here();
    bytes_.add(base);
  }

  void write_names() {
    std::vector<std::uint32_t> markers;
    const std::size_t start = bytes_.size();
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      if (i % 256 == 0) markers.push_back(static_cast<std::uint32_t>(bytes_.size() - start));
      const auto codes = kallsyms_codes(symbols_[i].type + symbols_[i].name);
      if (form_.two_byte_lengths && codes.size() > 127) {
        bytes_.add(static_cast<std::uint8_t>(0x80 | (codes.size() & 0x7f)));
        bytes_.add(static_cast<std::uint8_t>(codes.size() >> 7));
      } else {
        bytes_.add(static_cast<std::uint8_t>(codes.size()));
      }
      for (const std::uint8_t code : codes) bytes_.add(code);
    }
    bytes_.align(4);
    for (const std::uint32_t marker : markers) bytes_.add(marker);
    bytes_.add(std::uint64_t{0});
  }

  void write_tokens() {
    bytes_.align(8);
    keys_.token_table = here();
    std::vector<std::uint16_t> index;
    const std::size_t start = bytes_.size();
    for (const std::string& token : kallsyms_tokens()) {
      index.push_back(static_cast<std::uint16_t>(bytes_.size() - start));
      bytes_.add_text(token);
    }
    bytes_.align(8);
    keys_.token_index = here();
    for (const std::uint16_t entry : index) bytes_.add(entry);
  }

  std::vector<NamedAddress> symbols_;
  KallsymsForm form_;
  std::uint64_t base_;
  Bytes bytes_;
  KallsymsKeys keys_{};
};

/// Writes BTF type by type; ids count from 1, or from the base's last + 1 in a split one.
class BtfWriter {
 public:
  explicit BtfWriter(std::uint32_t base_types = 0, std::uint32_t base_strings = 0)
      : next_id_(base_types + 1), string_base_(base_strings) {
    if (base_strings == 0) strings_.push_back('\0');
  }

  std::uint32_t string(std::string_view text) {
    if (text.empty()) return 0;
    const auto at = static_cast<std::uint32_t>(strings_.size()) + string_base_;
    strings_.append(text);
    strings_.push_back('\0');
    return at;
  }

  /// A type without a tail; returns its id.
  std::uint32_t type(unsigned kind, std::string_view name, std::uint32_t size_or_type,
                     std::uint32_t length = 0, bool flag = false) {
    types_.add(string(name))
        .add((flag ? 0x8000'0000U : 0U) | kind << 24 | length)
        .add(size_or_type);
    return next_id_++;
  }
  BtfWriter& word(std::uint32_t value) {
    types_.add(value);
    return *this;
  }
  std::uint32_t integer(std::string_view name, std::uint32_t size, bool is_signed) {
    const std::uint32_t id = type(1, name, size);
    word((is_signed ? 1U << 24 : 0U) | size * 8);
    return id;
  }
  struct Field {
    std::string_view name;
    std::uint32_t type, offset;
  };
  std::uint32_t structure(std::string_view name, std::uint32_t size, std::vector<Field> fields,
                          bool bit_fields = false, unsigned kind = 4) {
    const auto length = static_cast<std::uint32_t>(fields.size());
    const std::uint32_t id = type(kind, name, size, length, bit_fields);
    for (const Field& field : fields) word(string(field.name)).word(field.type).word(field.offset);
    return id;
  }

  std::uint32_t string_bytes() const { return static_cast<std::uint32_t>(strings_.size()); }
  std::uint32_t type_count() const { return next_id_ - 1; }

  std::vector<std::byte> blob() const {
    Bytes out;
    const auto types = static_cast<std::uint32_t>(types_.size());
    out.add(std::uint16_t{0xeb9f}).add(std::uint8_t{1}).add(std::uint8_t{0});
    out.add(std::uint32_t{24}).add(std::uint32_t{0}).add(types);
    out.add(types).add(string_bytes());
    out.add_bytes(types_.bytes());
    out.add_bytes(std::as_bytes(std::span(strings_.data(), strings_.size())));
    return out.bytes();
  }

 private:
  Bytes types_;
  std::string strings_;
  std::uint32_t next_id_;
  std::uint32_t string_base_;
};

}  // namespace ringside::guest_linux::fakes
