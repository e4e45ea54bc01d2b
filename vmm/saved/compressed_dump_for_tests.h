// Makes compressed dumps (compressed_dump.h) for tests and fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ringside::vmm {

class DumpBuilder {
 public:
  static constexpr std::size_t kBlock = 4096;
  std::uint32_t version = 6, level = 1, split = 0;
  std::uint64_t pages = 64;  // of guest-physical memory, from address 0 on
  std::vector<std::byte> notes;

  /// A page of RAM that is in the file as these bytes, packed as `flags` says.
  DumpBuilder& page(std::uint64_t number, std::uint32_t flags, std::span<const std::byte> bytes) {
    there_[number] = {flags, {bytes.begin(), bytes.end()}};
    ram_[number / 8] |= 1U << number % 8;
    return *this;
  }
  /// A page of RAM that is not in the file.
  DumpBuilder& left_out(std::uint64_t number) {
    ram_[number / 8] |= 1U << number % 8;
    return *this;
  }

  std::vector<std::byte> build() const {
    std::vector<std::byte> file(4 * kBlock);  // two headers and a block for each bitmap
    std::memcpy(file.data(), "KDUMP   ", 8);
    put(file, 8, version);
    put(file, 428, std::uint32_t{kBlock});
    put(file, 432, std::uint32_t{1});
    put(file, 436, std::uint32_t{2});
    put(file, 440, static_cast<std::uint32_t>(pages));
    put(file, kBlock + 8, level);
    put(file, kBlock + 12, split);
    put(file, kBlock + 96, pages);
    for (const auto& [byte, bits] : ram_) put(file, 2 * kBlock + byte, bits);
    std::uint64_t at = file.size() + there_.size() * 24;
    for (const auto& [number, page] : there_) {
      std::byte& bits = file[3 * kBlock + number / 8];
      bits |= std::byte{1} << number % 8;
    }
    for (const auto& [number, page] : there_) {
      const auto size = static_cast<std::uint32_t>(page.second.size());
      const std::size_t end = file.size();
      file.resize(end + 24);
      put(file, end, at);
      put(file, end + 8, size);
      put(file, end + 12, page.first);
      at += size;
    }
    for (const auto& [number, page] : there_) {
      file.insert(file.end(), page.second.begin(), page.second.end());
    }
    put(file, kBlock + 48, std::uint64_t{file.size()});
    put(file, kBlock + 56, std::uint64_t{notes.size()});
    file.insert(file.end(), notes.begin(), notes.end());
    return file;
  }

  /// The same in pieces of `piece` bytes, the last ones first.
  static std::vector<std::byte> flattened(std::span<const std::byte> file, std::size_t piece) {
    std::vector<std::byte> flat(kBlock);
    constexpr std::string_view kMagic = "makedumpfile";
    std::memcpy(flat.data(), kMagic.data(), kMagic.size());
    const auto add = [&](std::uint64_t number) {
      for (int shift = 56; shift >= 0; shift -= 8) {
        flat.push_back(static_cast<std::byte>(number >> shift));
      }
    };
    for (std::size_t end = file.size(); end != 0;) {
      const std::size_t size = (end - 1) % piece + 1;
      end -= size;
      add(end);
      add(size);
      flat.insert(flat.end(), file.begin() + static_cast<std::ptrdiff_t>(end),
                  file.begin() + static_cast<std::ptrdiff_t>(end + size));
    }
    add(UINT64_MAX);
    add(UINT64_MAX);
    return flat;
  }

 private:
  template <class T>
  static void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }

  std::map<std::uint64_t, std::uint8_t> ram_;  // bytes of the bitmap
  std::map<std::uint64_t, std::pair<std::uint32_t, std::vector<std::byte>>> there_;
};

}  // namespace ringside::vmm
