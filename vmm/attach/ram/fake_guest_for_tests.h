// A process's memory with a guest's RAM in it, for tests of the search for that: pages exist where
// something was put, and hold what find_guest_ram needs of a Linux. Not linked into the product.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/attach/ram/guest_ram.h"
#include "vmm/linux/fakes_for_tests.h"

namespace ringside::vmm {

/// Memory of which only the pages that were written exist; any other is zeros. By addresses.
class SparseBytes final : public CopiedBytes {
 public:
  bool read(std::span<const CopyPart> parts) const override {
    for (const CopyPart& part : parts) {
      ++reads;
      for (std::size_t i = 0; i < part.out.size(); ++i) part.out[i] = at(part.offset + i);
    }
    return true;
  }
  bool write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    for (const std::byte byte : bytes) {
      pages_[offset / kPage][offset % kPage] = byte;
      ++offset;
    }
    return true;
  }
  std::vector<ByteExtent> extents(ByteExtent of) const override {
    std::vector<ByteExtent> found;
    for (auto page = pages_.lower_bound(of.offset / kPage);
         page != pages_.end() && page->first * kPage < of.offset + of.size; ++page) {
      found.push_back({page->first * kPage, kPage});
    }
    return found;
  }

  mutable std::size_t reads = 0;

 private:
  static constexpr std::uint64_t kPage = 4096;
  std::byte at(std::uint64_t address) const {
    const auto page = pages_.find(address / kPage);
    return page == pages_.end() ? std::byte{0} : page->second[address % kPage];
  }
  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;
};

/// Where the process has the guest-physical address.
using HostAddress = std::function<std::uint64_t(std::uint64_t guest)>;

/// A Linux in RAM that ends at `end`, with its image from guest-physical `image` on.
class FakeLinux {
 public:
  static constexpr std::uint64_t kDirectMap = 0xffff'8880'0000'0000;
  static constexpr std::uint64_t kStext = 0xffff'ffff'8100'0000;
  static constexpr std::string_view kRelease = "6.1.0-test";

  FakeLinux(CopiedBytes& bytes, HostAddress where, std::uint64_t image, std::uint64_t end)
      : bytes_(&bytes), where_(std::move(where)), image_(image), end_(end) {
    write_tables();
    write_symbols();
    put_text(image_ + kUts + 4, "Linux");
    put_text(image_ + kUts + 4 + 130, kRelease);
    put64(image_ + kMaxPfn, end / 4096);
    put64(image_ + kPageOffset, kDirectMap);
    write_real_mode(0x9'c000);
    write_tasks(spread(20));
  }

  void put64(std::uint64_t guest, std::uint64_t value) {
    put(guest, std::as_bytes(std::span(&value, 1)));
  }
  void put_text(std::uint64_t guest, std::string_view text) {
    put(guest, std::as_bytes(std::span(text)));
  }
  void set_end(std::uint64_t pfn) { put64(image_ + kMaxPfn, pfn); }

  /// VMCOREINFO, with more lines after it.
  void write_info(std::string_view more = "") {
    const auto at = [](std::uint64_t offset) { return kStext + offset; };
    std::string text = fmt::format(
        "OSRELEASE={}\nSYMBOL(init_uts_ns)={:x}\nOFFSET(uts_namespace.name)=4\n"
        "SYMBOL(_stext)={:x}\nSYMBOL(swapper_pg_dir)={:x}\nNUMBER(phys_base)={}\n"
        "SYMBOL(kallsyms_names)={:x}\nSYMBOL(kallsyms_num_syms)={:x}\n"
        "SYMBOL(kallsyms_token_table)={:x}\nSYMBOL(kallsyms_token_index)={:x}\n"
        "SYMBOL(kallsyms_offsets)={:x}\nSYMBOL(kallsyms_relative_base)={:x}\n{}",
        kRelease, at(kUts), kStext, at(kRoot),
        static_cast<std::int64_t>(image_) - static_cast<std::int64_t>(kStext - kImageMap),
        keys_.names.raw(), at(kCount), keys_.token_table.raw(), keys_.token_index.raw(),
        keys_.offsets->raw(), keys_.relative_base->raw(), more);
    text.push_back('\0');
    put_text(kInfo, text);
  }

  /// `count` places all over RAM, above 4 GiB too where there is some.
  std::vector<std::uint64_t> spread(std::size_t count) const {
    constexpr std::uint64_t kHole = std::uint64_t{2} << 30, k4GiB = std::uint64_t{1} << 32;
    std::vector<std::uint64_t> places;
    for (std::size_t i = 0; i < count; ++i) {
      const bool high = end_ > k4GiB && i % 2 == 1;
      const std::uint64_t low_end = std::min(end_, kHole);
      places.push_back(high ? k4GiB + (end_ - k4GiB) / count * i
                            : low_end / 2 + low_end / 4 / count * i);
      places.back() &= ~std::uint64_t{63};
    }
    return places;
  }
  /// The list of all tasks, through nodes at these guest-physical addresses.
  void write_tasks(const std::vector<std::uint64_t>& nodes) {
    const std::uint64_t head = kStext + kTask + 0x500;
    std::vector<std::uint64_t> links{head};
    for (const std::uint64_t node : nodes) links.push_back(kDirectMap + node);
    for (std::size_t i = 0; i < links.size(); ++i) {
      const std::uint64_t next = links[(i + 1) % links.size()];
      const std::uint64_t previous = links[(i + links.size() - 1) % links.size()];
      const std::uint64_t at = i == 0 ? image_ + kTask + 0x500 : nodes[i - 1];
      put64(at, next);
      put64(at + 8, previous);
    }
  }
  void write_real_mode(std::uint64_t header) {
    put64(image_ + kRealMode, kDirectMap + header);
    const std::array<std::uint32_t, 8> words{
        static_cast<std::uint32_t>(header + 0x1000), 0, 0, 0, 0, 0x9'f000, 0, 0};
    put(header, std::as_bytes(std::span(words)));
    put64(0x9'f000 + 511 * 8, (image_ + kPud) | 0x21);
  }

 private:
  static constexpr std::uint64_t kImageMap = 0xffff'ffff'8000'0000;
  static constexpr std::uint64_t kInfo = 0x50'0000;  // guest-physical
  // In the image.
  static constexpr std::uint64_t kRoot = 0x1'0000, kPud = 0x1'1000, kPmd = 0x1'2000,
                                 kDirectPud = 0x1'3000, kUts = 0x2'0000, kTask = 0x3'0000,
                                 kMaxPfn = 0x4'0000, kPageOffset = 0x4'0008, kRealMode = 0x4'0010,
                                 kCount = 0x4'0018, kTables = 0x8'0000;

  void put(std::uint64_t guest, std::span<const std::byte> bytes) {
    (void)bytes_->write(where_(guest), bytes);
  }

  void write_tables() {
    put64(image_ + kRoot + 511 * 8, (image_ + kPud) | 1);
    put64(image_ + kPud + 510 * 8, (image_ + kPmd) | 1);
    put64(image_ + kPmd + 8 * 8, image_ | 0x81);
    put64(image_ + kRoot + 273 * 8, (image_ + kDirectPud) | 1);
    for (std::uint64_t at = 0; at < 8; ++at) {
      put64(image_ + kDirectPud + at * 8, at << 30 | 0x83);  // 1 GiB pages
    }
  }

  void write_symbols() {
    std::vector<guest_linux::fakes::NamedAddress> symbols{{kStext, 'T', "_stext"}};
    for (std::uint64_t i = 1; i < 80; ++i)
      symbols.push_back({kStext + i * 16, 't', fmt::format("f{}", i)});
    symbols.push_back({kStext + kTask, 'D', "init_task"});
    symbols.push_back({kStext + kMaxPfn, 'D', "max_pfn"});
    symbols.push_back({kStext + kPageOffset, 'D', "page_offset_base"});
    symbols.push_back({kStext + kRealMode, 'D', "real_mode_header"});
    const auto encoded = guest_linux::fakes::KallsymsWriter(symbols, {}, kStext + kTables).write();
    keys_ = encoded.keys;
    put(image_ + kTables, encoded.image);
    put64(image_ + kCount, keys_.count);
    write_info();
  }

  CopiedBytes* bytes_;
  HostAddress where_;
  std::uint64_t image_, end_;
  guest_linux::KallsymsKeys keys_;
};

}  // namespace ringside::vmm
