// All packings write into a buffer of the size that the payload's trailer gives.
#include "vmm/kernel_file/unpack.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "vmm/base/bytes.h"
#include "vmm/kernel_file/packed_stream.h"

namespace ringside::vmm {
namespace {

using Bytes = std::span<const std::byte>;
using Buffer = std::span<std::byte>;

/// Unpacks into `out`; returns how many bytes, or empty for bad data.
using Unpacker = std::optional<std::size_t> (*)(Bytes packed, Buffer out);

std::optional<std::size_t> unpack_stream(PackedStream& stream, Bytes packed, Buffer out) {
  std::byte spare{};  // the end may come after the last byte
  const StreamEnd end = run_stream(stream, packed, [&](std::size_t unpacked) {
    if (unpacked > out.size()) return Buffer();
    return unpacked < out.size() ? out.subspan(unpacked) : Buffer(&spare, 1);
  });
  if (end.kind != StreamEnd::Kind::Whole) return std::nullopt;
  return end.unpacked;
}

std::optional<std::size_t> unpack_zstd(Bytes packed, Buffer out) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) != 0) return std::nullopt;
  const std::size_t size = ZSTD_decompress(out.data(), out.size(), packed.data(), frame);
  if (ZSTD_isError(size) != 0) return std::nullopt;
  return size;
}

/// The legacy frame (lz4 -l), of which the kernel's build makes one.
std::optional<std::size_t> unpack_lz4(Bytes packed, Buffer out) {
  std::size_t done = 0;
  packed = packed.subspan(4);
  while (packed.size() > 4 && done < out.size()) {  // the last four bytes are the trailer
    const auto size = load_at<std::uint32_t>(packed, 0);
    packed = packed.subspan(4);
    if (size > packed.size() || size > std::numeric_limits<int>::max()) return std::nullopt;
    const std::size_t room = std::min(kLz4MostUnpackedBlock, out.size() - done);
    // SAFETY: char may alias.
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()),
                                        reinterpret_cast<char*>(out.data() + done),
                                        static_cast<int>(size), static_cast<int>(room));
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
    packed = packed.subspan(size);
  }
  return done;
}

struct Packing {
  std::string_view name, magic;
  Unpacker unpacker = nullptr;  // none: PackedStream knows it, or nobody
};

using std::string_view_literals::operator""sv;
constexpr std::array kPackings{
    Packing{"gzip", "\x1f\x8b"sv},
    Packing{"xz",
            "\xfd"
            "7zXZ\0"sv},
    Packing{"zstd", "\x28\xb5\x2f\xfd"sv, unpack_zstd},
    Packing{"lz4", "\x02\x21\x4c\x18"sv, unpack_lz4},
    Packing{"bzip2", "BZh"sv},
    Packing{"lzma", "\x5d\0\0"sv},
    Packing{"LZO", "\x89LZO"sv},
};

const Packing* find_packing(Bytes bytes) {
  for (const Packing& packing : kPackings) {
    if (begins_with(bytes, packing.magic)) return &packing;
  }
  return nullptr;
}

}  // namespace

std::string_view packing_of(Bytes bytes) {
  const Packing* packing = find_packing(bytes);
  return packing == nullptr ? std::string_view() : packing->name;
}

Result<std::vector<std::byte>> unpack(Bytes packed) {
  const Packing* packing = find_packing(packed);
  if (packing == nullptr) return fail(ErrorCode::Unsupported, "packed in a way we do not know");
  const auto stream = PackedStream::open(packing->name);
  if (packing->unpacker == nullptr && stream == nullptr) {
    return fail(ErrorCode::Unsupported,
                fmt::format("packed with {}, which we cannot read", packing->name));
  }
  const auto damaged = [&] {
    return fail(ErrorCode::Invalid, fmt::format("the {} data is damaged", packing->name));
  };
  if (packed.size() < 16 || packed.size() > kMostUnpacked) return damaged();
  const auto size = load_at<std::uint32_t>(packed, packed.size() - sizeof(std::uint32_t));
  // Real kernels pack to a fourth or less. A file of a few bytes may not make us take a gigabyte.
  if (size == 0 || size > kMostUnpacked || size / 1024 > packed.size()) return damaged();
  std::vector<std::byte> bytes(size);
  const auto got =
      stream != nullptr ? unpack_stream(*stream, packed, bytes) : packing->unpacker(packed, bytes);
  if (!got || *got != size) return damaged();
  return bytes;
}

}  // namespace ringside::vmm
