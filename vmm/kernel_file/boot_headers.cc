// The setup header of a bzImage, offsets from "The Real-Mode Kernel Header" of boot.rst;
// Multiboot's header.
#include "vmm/kernel_file/boot_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kMagicAt = 0x202;
constexpr std::uint32_t kMagic = 0x53726448;  // "HdrS"
constexpr std::size_t kHeaderLengthAt = 0x201;
constexpr std::size_t kLeastHeader = 0x264;  // up to init_size, which 2.10 added
constexpr std::size_t kSector = 512;
constexpr std::uint16_t kXlfKernel64 = 1;

}  // namespace

bool is_bz_image(std::span<const std::byte> file) {
  return file.size() >= kMagicAt + 4 && load_at<std::uint32_t>(file, kMagicAt) == kMagic;
}

Result<BzImage> read_bz_image(std::span<const std::byte> file, std::string_view name) {
  const auto cut_short = [&] {
    return fail(ErrorCode::Invalid, fmt::format("{}: the bzImage is cut short after {} bytes: copy "
                                                "it again",
                                                name, file.size()));
  };
  if (!is_bz_image(file) || file.size() < kLeastHeader) return cut_short();
  BzImage image;
  image.version = load_at<std::uint16_t>(file, 0x206);
  // Earlier ones lack fields that are read below; nobody has had such a kernel since 2013.
  if (image.version < 0x020c) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: a kernel with boot protocol {}.{:02}: it takes 2.12 (Linux 3.8) "
                            "or later",
                            name, image.version >> 8, image.version & 0xff));
  }
  image.kernel_64 = (load_at<std::uint16_t>(file, 0x236) & kXlfKernel64) != 0;
  image.relocatable = load_at<std::uint8_t>(file, 0x234) != 0;
  image.alignment = load_at<std::uint32_t>(file, 0x230);
  image.command_line = load_at<std::uint32_t>(file, 0x238);
  image.initrd_last = load_at<std::uint32_t>(file, 0x22c);
  image.preferred_start = load_at<std::uint64_t>(file, 0x258);
  image.init_size = load_at<std::uint32_t>(file, 0x260);

  const std::size_t header_end = kMagicAt + load_at<std::uint8_t>(file, kHeaderLengthAt);
  const std::size_t sectors = std::max<std::size_t>(load_at<std::uint8_t>(file, kSetupHeader), 1);
  const std::size_t start = (sectors + 1) * kSector;  // the boot sector is not counted
  const std::uint64_t size = std::uint64_t{load_at<std::uint32_t>(file, 0x1f4)} * 16;
  if (header_end > file.size() || start >= file.size() || size > file.size() - start)
    return cut_short();
  image.header = file.subspan(kSetupHeader, header_end - kSetupHeader);
  image.protected_mode = file.subspan(start);
  const std::uint64_t payload = load_at<std::uint32_t>(file, 0x248);
  const std::uint64_t payload_size = load_at<std::uint32_t>(file, 0x24c);
  if (payload + payload_size > image.protected_mode.size()) return cut_short();
  image.payload = image.protected_mode.subspan(payload, payload_size);
  return image;
}

namespace {

constexpr std::size_t kSearched = 8192;
constexpr std::uint32_t kMultibootMagic = 0x1bad'b002;
constexpr std::uint32_t kHasAddresses = 1 << 16;

}  // namespace

std::optional<MultibootHeader> find_multiboot_header(std::span<const std::byte> file) {
  const auto searched = file.first(std::min(file.size(), kSearched));
  std::array<std::uint32_t, 3> words;
  for (std::size_t at = 0; at + sizeof words <= searched.size(); at += 4) {
    std::memcpy(words.data(), searched.data() + at, sizeof words);
    if (words[0] != kMultibootMagic || words[0] + words[1] + words[2] != 0) continue;
    MultibootHeader header{at, words[1], std::nullopt};
    if ((header.flags & kHasAddresses) == 0) return header;
    MultibootHeader::Addresses addresses;
    if (at + sizeof words + sizeof addresses > searched.size()) return std::nullopt;
    std::memcpy(&addresses, searched.data() + at + sizeof words, sizeof addresses);
    header.addresses = addresses;
    return header;
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
