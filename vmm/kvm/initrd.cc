#include "vmm/kvm/initrd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lz4.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "vmm/base/numbers.h"
#include "vmm/base/unique_fd.h"
#include "vmm/guest_config.h"
#include "vmm/kernel_file/unpack.h"

namespace ringside::vmm::kvm {

Result<InitrdFile> InitrdFile::open(const std::string& path) {
  if (path.empty()) return InitrdFile(std::span<std::byte>{});
  const auto failed = [&](int reason) {
    return Unexpected<Error>(unreadable(GuestFile::Initrd, path, reason));
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return failed(errno);
  if (!S_ISREG(info.st_mode)) {
    return failed(S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
  }
  if (info.st_size == 0) {
    return fail(ErrorCode::Invalid,
                fmt::format("the initrd {} is empty: copy or build it again", path));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) return failed(errno);
  InitrdFile initrd({static_cast<std::byte*>(bytes), size});
  if (is_cut_off(initrd.bytes())) {
    return fail(
        ErrorCode::Invalid,
        fmt::format("the initrd {} is cut off after {} bytes: copy or build it again", path, size));
  }
  return initrd;
}

InitrdFile::~InitrdFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

// In this file, top to bottom: cpio, packings with lengths, those that have to be unpacked, the
// row. Formats: buffer-format.rst (cpio "newc"); The .xz File Format 1.1.0, 2.1.2.4 (the footer's
// magic bytes); RFC 8878 (zstd); lz4_Frame_format.md, "Legacy frame".

namespace {

using Bytes = std::span<const std::byte>;

/// How a part ends. Unknown: damaged, of a kind that we do not know, or too large to find out.
struct Part {
  enum End : std::uint8_t { Whole, CutOff, Unknown };
  End end = Unknown;
  std::size_t size = 0;  // of a whole one, not 0
};
constexpr Part kCutOff{Part::CutOff, 0}, kUnknown{};
Part whole(std::size_t size) {
  return {Part::Whole, size};
}

// SAFETY: char may alias.
std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::size_t> hex_field(std::string_view header, std::size_t index) {
  return parse_number<std::size_t>(header.substr(6 + index * 8, 8), 16);
}

constexpr std::size_t kStep = 4;  // each part is padded to a multiple of it

/// From header to header, up to the trailer, which need not be there.
Part read_cpio(Bytes bytes) {
  constexpr std::size_t kHeader = 110;
  constexpr std::string_view kMagic = "07070";  // and 1 or 2
  const std::string_view file = text_of(bytes);
  std::size_t at = 0;
  while (at < file.size() && kMagic.starts_with(file.substr(at, kMagic.size()))) {
    if (file.size() - at < kHeader) return kCutOff;
    const std::string_view header = file.substr(at, kHeader);
    const auto size = hex_field(header, 6), name_size = hex_field(header, 11);
    if (!size || !name_size) return kUnknown;
    const std::size_t name = at + kHeader, data = round_up(name + *name_size, kStep);
    if (*name_size > file.size() - name) return kCutOff;
    if (*size != 0 && (data > file.size() || *size > file.size() - data)) return kCutOff;
    at = std::min(round_up(data + *size, kStep),
                  file.size());  // zero bytes up to there may be missing
    if (file.substr(name).starts_with("TRAILER!!!")) break;
  }
  return whole(at);
}

Part read_zstd(Bytes bytes) {
  const std::size_t size = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  if (ZSTD_isError(size) == 0) return whole(size);
  return ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong ? kCutOff : kUnknown;
}

/// The legacy frame: its blocks are not unpacked, only passed, until a size that none can have. A
/// magic number among them begins another frame.
Part read_lz4(Bytes bytes) {
  constexpr std::size_t kMostBlock = LZ4_COMPRESSBOUND(kLz4MostUnpackedBlock);
  std::uint32_t magic = 0, size = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);  // there, or this would be no lz4
  std::size_t at = sizeof magic;
  while (bytes.size() - at >= sizeof size) {
    std::memcpy(&size, bytes.subspan(at).data(), sizeof size);
    if (size != magic && (size == 0 || size > kMostBlock)) break;
    at += sizeof size;
    if (size == magic) continue;
    if (size > bytes.size() - at) return kCutOff;
    at += size;
  }
  return whole(at);
}

/// Unpacks the stream and keeps nothing of it.
Part read_stream(std::string_view packing, Bytes bytes) {
  const auto stream = PackedStream::open(packing);
  if (!stream) return kUnknown;
  std::array<std::byte, 1 << 16> out;
  const StreamEnd end = run_stream(*stream, bytes, [&out](std::size_t unpacked) {
    return unpacked <= kMostUnpacked ? std::span<std::byte>(out) : std::span<std::byte>();
  });
  switch (end.kind) {
    case StreamEnd::Kind::Whole: return whole(end.packed);
    case StreamEnd::Kind::CutOff: return kCutOff;
    default: return kUnknown;
  }
}

Part read_xz(Bytes bytes) {
  const std::string_view file = text_of(bytes);
  const std::size_t last = file.find_last_not_of('\0');
  if (file.substr(0, last + 1).ends_with("YZ")) return whole(bytes.size());
  return read_stream("xz", bytes);
}

Part read_part(Bytes bytes) {
  if (bytes[0] == std::byte{'0'}) return read_cpio(bytes);
  const std::string_view packing = packing_of(bytes);
  if (packing == "xz") return read_xz(bytes);
  if (packing == "zstd") return read_zstd(bytes);
  if (packing == "lz4") return read_lz4(bytes);
  return read_stream(packing, bytes);
}

}  // namespace

bool is_cut_off(Bytes initrd) {
  while (!initrd.empty()) {
    const auto next = std::ranges::find_if(initrd, [](std::byte b) { return b != std::byte{0}; });
    initrd = initrd.subspan(static_cast<std::size_t>(next - initrd.begin()));
    if (initrd.empty()) return false;
    const Part part = read_part(initrd);
    if (part.end != Part::Whole || part.size == 0) return part.end == Part::CutOff;
    initrd = initrd.subspan(part.size);
  }
  return false;
}

}  // namespace ringside::vmm::kvm
