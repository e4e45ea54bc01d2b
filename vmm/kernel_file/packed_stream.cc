// In this file, top to bottom: one class a library, the choice, the loop.
#include "vmm/kernel_file/packed_stream.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

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

}  // namespace ringside::vmm
