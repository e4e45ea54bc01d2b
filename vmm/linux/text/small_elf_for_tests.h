// Writes a small ELF executable, which the tests of vmm/linux use as a kernel.
// Not linked into the product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/check.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux::fakes {

inline constexpr std::uint64_t kTextBytes = 0x1000, kTextOffset = 0x1000;

/// An ELF64 file with one segment of text and a symbol table.
class SmallElf {
 public:
  struct Named {
    std::string name;
    std::uint64_t address, size;
    std::uint8_t info = 0x12;  // global function
    std::uint16_t section = 1;
  };
  explicit SmallElf(std::uint64_t text = kText) : text_(text), file_(kTextOffset + kTextBytes) {}

  void put(std::size_t at, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), file_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void put_text(std::uint64_t address, std::string_view bytes) {
    put(kTextOffset + address - text_, std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  template <class T>
  void set(std::size_t at, T value) {
    put(at, std::as_bytes(std::span(&value, 1)));
  }

  /// A section with a name and these bytes, which no segment loads.
  void named_section(std::string_view name, std::uint64_t address, std::vector<std::byte> bytes) {
    extra_.push_back({std::string(name), address, std::move(bytes)});
  }

  std::vector<std::byte> write(const std::vector<Named>& symbols) {
    Bytes table, strings;
    table.add_bytes(std::vector<std::byte>(24));
    strings.add('\0');
    for (const Named& symbol : symbols) {
      table.add(static_cast<std::uint32_t>(strings.size())).add(symbol.info).add(std::uint8_t{0});
      table.add(symbol.section).add(symbol.address).add(symbol.size);
      strings.add_text(symbol.name);
    }
    const std::size_t table_at = file_.size(), strings_at = table_at + table.size();
    file_.insert(file_.end(), table.bytes().begin(), table.bytes().end());
    file_.insert(file_.end(), strings.bytes().begin(), strings.bytes().end());
    const std::vector<std::size_t> extra_at = append_extra();
    const std::size_t sections_at = file_.size();
    file_.resize(sections_at + section_count() * 64);
    for (std::size_t i = 0, name = 1; i < extra_.size(); name += extra_[i++].name.size() + 1) {
      const std::size_t at = sections_at + (kOwnSections + i) * 64;
      set(at, static_cast<std::uint32_t>(name));
      section(at, 1, 2, extra_[i].address, extra_at[i], extra_[i].bytes.size(), 0);
    }
    if (!extra_.empty()) {
      const std::size_t names = extra_at.back();
      section(sections_at + (section_count() - 1) * 64, 3, 0, 0, names, sections_at - names, 0);
      set(62, static_cast<std::uint16_t>(section_count() - 1));
    }
    section(sections_at + 64, 1, 6, text_, kTextOffset, kTextBytes, 0);
    section(sections_at + 128, 2, 0, 0, table_at, table.size(), 3);
    section(sections_at + 192, 3, 0, 0, strings_at, strings.size(), 0);
    header(sections_at);
    return file_;
  }

 private:
  static constexpr std::size_t kOwnSections = 4;  // none, text, symbols, strings

  struct Extra {
    std::string name;
    std::uint64_t address;
    std::vector<std::byte> bytes;
  };
  /// With their names, if there are any: one section more, and the last.
  std::size_t section_count() const {
    return kOwnSections + extra_.size() + (extra_.empty() ? 0 : 1);
  }
  /// Where in the file each is, and then their names.
  std::vector<std::size_t> append_extra() {
    Bytes names;
    names.add('\0');
    std::vector<std::size_t> at;
    for (const Extra& extra : extra_) {
      names.add_text(extra.name);
      at.push_back(file_.size());
      file_.insert(file_.end(), extra.bytes.begin(), extra.bytes.end());
    }
    at.push_back(file_.size());
    if (!extra_.empty()) file_.insert(file_.end(), names.bytes().begin(), names.bytes().end());
    return at;
  }
  void section(std::size_t at, std::uint32_t type, std::uint64_t flags, std::uint64_t address,
               std::size_t offset, std::size_t size, std::uint32_t link) {
    set(at + 4, type);
    set(at + 8, flags);
    set(at + 16, address);
    set(at + 24, std::uint64_t{offset});
    set(at + 32, std::uint64_t{size});
    set(at + 40, link);
  }
  void header(std::size_t sections_at) {
    put(0, std::as_bytes(std::span("\x7f"
                                   "ELF\2\1\1",
                                   7)));
    set(16, std::uint16_t{2});
    set(18, std::uint16_t{62});
    set(20, std::uint32_t{1});
    set(32, std::uint64_t{64});
    set(40, std::uint64_t{sections_at});
    set(54, std::uint16_t{56});
    set(56, std::uint16_t{1});
    set(58, std::uint16_t{64});
    set(60, static_cast<std::uint16_t>(section_count()));
    set(64, std::uint32_t{1});
    set(68, std::uint32_t{5});
    set(72, std::uint64_t{kTextOffset});
    set(80, text_);
    set(88, std::uint64_t{0x100'0000});
    set(96, kTextBytes);
    set(104, kTextBytes + 0x1000);
  }

  std::uint64_t text_;
  std::vector<std::byte> file_;
  std::vector<Extra> extra_;
};

inline vmm::KernelFile kernel_file(std::vector<std::byte> bytes) {
  auto file = vmm::KernelFile::parse(std::move(bytes), "small");
  CHECK(file);
  return std::move(*file);
}

}  // namespace ringside::guest_linux::fakes
