// One function a packing; all write into a buffer of the size that the payload's trailer gives.
#include "vmm/kernel_file/unpack.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

using Bytes = std::span<const std::byte>;
using Buffer = std::span<std::byte>;

/// Unpacks the stream into `out`; returns how many bytes, or empty for bad data.
using Unpacker = std::optional<std::size_t> (*)(Bytes packed, Buffer out);

// The libraries take bytes of their own type. SAFETY (both): unsigned char and char may alias.
std::uint8_t* octets(Buffer bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}
const std::uint8_t* octets(Bytes bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

std::optional<std::size_t> unpack_gzip(Bytes packed, Buffer out) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return std::nullopt;  // 16: gzip's framing
  stream.next_in = const_cast<std::uint8_t*>(octets(packed));              // it only reads
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = octets(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = inflate(&stream, Z_FINISH);
  const std::size_t size = stream.total_out;
  inflateEnd(&stream);
  if (end != Z_STREAM_END) return std::nullopt;
  return size;
}

std::optional<std::size_t> run_lzma(lzma_stream& stream, Bytes packed, Buffer out) {
  stream.next_in = octets(packed);
  stream.avail_in = packed.size();
  stream.next_out = octets(out);
  stream.avail_out = out.size();
  lzma_ret end = lzma_code(&stream, LZMA_RUN);
  const std::size_t size = stream.total_out;
  std::uint8_t spare = 0;
  if (end == LZMA_OK && stream.avail_out == 0) {  // the end may come after the last byte
    stream.next_out = &spare;
    stream.avail_out = 1;
    end = lzma_code(&stream, LZMA_RUN);
  }
  const bool whole = end == LZMA_STREAM_END && stream.total_out == size;
  lzma_end(&stream);
  if (!whole) return std::nullopt;
  return size;
}

constexpr std::uint64_t kDictionaryMemory = 256 << 20;  // a kernel's takes 32 MiB of dictionary

std::optional<std::size_t> unpack_xz(Bytes packed, Buffer out) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kDictionaryMemory, 0) != LZMA_OK) return std::nullopt;
  return run_lzma(stream, packed, out);
}

std::optional<std::size_t> unpack_lzma(Bytes packed, Buffer out) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_alone_decoder(&stream, kDictionaryMemory) != LZMA_OK) return std::nullopt;
  return run_lzma(stream, packed, out);
}

std::optional<std::size_t> unpack_zstd(Bytes packed, Buffer out) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) != 0) return std::nullopt;
  const std::size_t size = ZSTD_decompress(out.data(), out.size(), packed.data(), frame);
  if (ZSTD_isError(size) != 0) return std::nullopt;
  return size;
}

std::optional<std::size_t> unpack_bzip2(Bytes packed, Buffer out) {
  bz_stream stream{};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return std::nullopt;
  // SAFETY: char may alias; the library only reads its input.
  stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(packed.data()));
  stream.avail_in = static_cast<unsigned>(packed.size());
  stream.next_out = reinterpret_cast<char*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  const int end = BZ2_bzDecompress(&stream);
  const std::size_t size = out.size() - stream.avail_out;
  BZ2_bzDecompressEnd(&stream);
  if (end != BZ_STREAM_END) return std::nullopt;
  return size;
}

/// The legacy frame (lz4 -l): a magic number, then blocks with their packed size before them.
std::optional<std::size_t> unpack_lz4(Bytes packed, Buffer out) {
  constexpr std::size_t kMostBlock = std::size_t{8} << 20;  // unpacked, by the frame's definition
  std::size_t done = 0;
  packed = packed.subspan(4);
  while (packed.size() > 4 && done < out.size()) {  // the last four bytes are the trailer
    const auto size = load_at<std::uint32_t>(packed, 0);
    packed = packed.subspan(4);
    if (size > packed.size() || size > std::numeric_limits<int>::max()) return std::nullopt;
    const std::size_t room = std::min(kMostBlock, out.size() - done);
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
  Unpacker unpacker;
};

using std::string_view_literals::operator""sv;
constexpr std::array kPackings{
    Packing{"gzip", "\x1f\x8b"sv, unpack_gzip},
    Packing{"xz",
            "\xfd"
            "7zXZ\0"sv,
            unpack_xz},
    Packing{"zstd", "\x28\xb5\x2f\xfd"sv, unpack_zstd},
    Packing{"lz4", "\x02\x21\x4c\x18"sv, unpack_lz4},
    Packing{"bzip2", "BZh"sv, unpack_bzip2},
    Packing{"lzma", "\x5d\0\0"sv, unpack_lzma},
    Packing{"LZO", "\x89LZO"sv, nullptr},
};

const Packing* find_packing(Bytes bytes) {
  for (const Packing& packing : kPackings) {
    if (bytes.size() >= packing.magic.size() &&
        std::memcmp(bytes.data(), packing.magic.data(), packing.magic.size()) == 0)
      return &packing;
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
  if (packing->unpacker == nullptr) {
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
  const auto got = packing->unpacker(packed, bytes);
  if (!got || *got != size) return damaged();
  return bytes;
}

}  // namespace ringside::vmm
