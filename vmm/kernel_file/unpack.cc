// In this file, top to bottom: streams (one class a library, the choice, the loop), unpacking. All
// packings write into a buffer of the size that the payload's trailer gives.
#include "vmm/kernel_file/unpack.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

using Bytes = std::span<const std::byte>;
using Buffer = std::span<std::byte>;

// The libraries take bytes of their own type. SAFETY (both): unsigned char may alias.
std::uint8_t* octets(Buffer bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}
const std::uint8_t* octets(Bytes bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

/// For libraries whose sizes are unsigned int.
unsigned counted(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

class GzipStream final : public PackedStream {
 public:
  GzipStream() : good_(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK) {}  // 16: gzip's framing
  ~GzipStream() override { inflateEnd(&stream_); }
  bool good() const { return good_; }

  Step step(Bytes in, Buffer out) override {
    const unsigned size = counted(in.size()), room = counted(out.size());
    stream_.next_in = const_cast<std::uint8_t*>(octets(in));  // it only reads
    stream_.avail_in = size;
    stream_.next_out = octets(out);
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    const bool goes_on = code == Z_OK || code == Z_BUF_ERROR;
    return {code == Z_STREAM_END ? Step::Ends : (goes_on ? Step::GoesOn : Step::Fails),
            size - stream_.avail_in, room - stream_.avail_out};
  }

 private:
  z_stream stream_{};
  const bool good_;
};

class Bzip2Stream final : public PackedStream {
 public:
  Bzip2Stream() : good_(BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK) {}
  ~Bzip2Stream() override { BZ2_bzDecompressEnd(&stream_); }
  bool good() const { return good_; }

  Step step(Bytes in, Buffer out) override {
    const unsigned size = counted(in.size()), room = counted(out.size());
    // SAFETY: char may alias; the library only reads its input.
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    stream_.avail_in = size;
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = room;
    const int code = BZ2_bzDecompress(&stream_);
    return {code == BZ_STREAM_END ? Step::Ends : (code == BZ_OK ? Step::GoesOn : Step::Fails),
            size - stream_.avail_in, room - stream_.avail_out};
  }

 private:
  bz_stream stream_{};
  const bool good_;
};

/// Of xz, and of lzma alone, the form before it.
class LzmaStream final : public PackedStream {
 public:
  enum class Form : std::uint8_t { Xz, Alone };
  explicit LzmaStream(Form form)
      : good_((form == Form::Xz ? lzma_stream_decoder(&stream_, kMemory, 0)
                                : lzma_alone_decoder(&stream_, kMemory)) == LZMA_OK) {}
  ~LzmaStream() override { lzma_end(&stream_); }
  bool good() const { return good_; }

  Step step(Bytes in, Buffer out) override {
    stream_.next_in = octets(in);
    stream_.avail_in = in.size();
    stream_.next_out = octets(out);
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, LZMA_RUN);
    const bool goes_on = code == LZMA_OK || code == LZMA_BUF_ERROR;
    return {code == LZMA_STREAM_END ? Step::Ends : (goes_on ? Step::GoesOn : Step::Fails),
            in.size() - stream_.avail_in, out.size() - stream_.avail_out};
  }

 private:
  static constexpr std::uint64_t kMemory = 256 << 20;  // a kernel's takes 32 MiB of dictionary
  lzma_stream stream_ = LZMA_STREAM_INIT;
  const bool good_;
};

template <class Stream, class... Arguments>
std::unique_ptr<PackedStream> open_as(Arguments... arguments) {
  auto made = std::make_unique<Stream>(arguments...);
  if (!made->good()) return nullptr;
  return made;
}

}  // namespace

std::unique_ptr<PackedStream> PackedStream::open(std::string_view packing) {
  if (packing == "gzip") return open_as<GzipStream>();
  if (packing == "bzip2") return open_as<Bzip2Stream>();
  if (packing == "xz") return open_as<LzmaStream>(LzmaStream::Form::Xz);
  if (packing == "lzma") return open_as<LzmaStream>(LzmaStream::Form::Alone);
  return nullptr;
}

StreamEnd run_stream(PackedStream& stream, Bytes packed, const Room& room) {
  using enum StreamEnd::Kind;
  std::size_t done = 0, unpacked = 0;
  while (true) {
    const Buffer out = room(unpacked);
    if (out.empty()) return {TooLong, done, unpacked};
    const PackedStream::Step step = stream.step(packed.subspan(done), out);
    done += step.taken;
    unpacked += step.filled;
    if (step.result == PackedStream::Step::Ends) return {Whole, done, unpacked};
    if (step.result == PackedStream::Step::Fails) return {Damaged, done, unpacked};
    if (done == packed.size() && step.filled < out.size()) return {CutOff, done, unpacked};
    if (step.taken == 0 && step.filled == 0) return {Damaged, done, unpacked};
  }
}

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
