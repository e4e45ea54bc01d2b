// In this file, top to bottom: the headers, unpacking a page, the pages as memory, the whole,
// flattened dumps.
#include "vmm/saved/compressed_dump.h"

#include <fmt/format.h>
#include <lzo/lzo1x.h>
#include <snappy-c.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/copied_bytes.h"
#include "vmm/saved/elf_core.h"
#include "vmm/saved/stream_input.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kBlock = arch::kPageSize;
constexpr std::uint64_t kMostPages = std::uint64_t{1} << 31;  // 8 TiB
/// Struct disk_dump_header and struct kdump_sub_header.
constexpr std::size_t kVersionAt = 8, kBlockSizeAt = 428, kPagesAt = 440;
constexpr std::size_t kNotesAt = 48, kWidePagesAt = 96;
constexpr std::uint32_t kFirstVersion = 1, kLastVersion = 6, kWithNotes = 4, kWithWidePages = 6;
/// Bit of the dump level: pages of zeros are left out.
constexpr std::uint32_t kZerosLeftOut = 1;

using Page = std::array<std::byte, kBlock>;

Unexpected<Error> damaged(std::string_view how) {
  return Unexpected<Error>(StreamInput::damaged("its compressed dump", how));
}

/// The numbers of both headers, as far as they are used.
struct Headers {
  std::uint64_t pages = 0;
  std::uint64_t bitmaps = 0, bitmap_bytes = 0;  // in the file: the first one's place, size of each
  std::uint64_t descriptors = 0;                // their place
  std::uint32_t level = 0;
  ByteExtent notes;
};

Result<Headers> read_headers(const FileMemory& file, std::uint64_t size) {
  std::array<std::byte, 2 * kBlock> bytes;
  const CopyPart whole{0, bytes};
  if (size < bytes.size() || !file.read({&whole, 1})) return damaged("it ends within its headers");
  const std::span<const std::byte> sub = std::span(bytes).subspan(kBlock);
  const auto version = load_at<std::uint32_t>(bytes, kVersionAt);
  const auto [block_size, sub_blocks, bitmap_blocks] =
      load_at<std::array<std::uint32_t, 3>>(bytes, kBlockSizeAt);
  if (version < kFirstVersion || version > kLastVersion || block_size != kBlock) {
    return fail(ErrorCode::Unsupported,
                fmt::format("it is a compressed dump of version {} with pages of {} bytes, and not "
                            "of an x86-64 machine; dump the guest as an ELF core instead",
                            version, block_size));
  }
  const auto [level, split] = load_at<std::array<std::uint32_t, 2>>(sub, 8);
  if (split != 0) {
    return fail(ErrorCode::Unsupported,
                "it is one part of a dump; join them: makedumpfile --reassemble");
  }
  Headers headers;
  headers.level = level;
  headers.pages = version >= kWithWidePages ? load_at<std::uint64_t>(sub, kWidePagesAt)
                                            : load_at<std::uint32_t>(bytes, kPagesAt);
  headers.bitmaps = (std::uint64_t{1} + sub_blocks) * kBlock;
  headers.bitmap_bytes = std::uint64_t{bitmap_blocks} * kBlock / 2;
  headers.descriptors = headers.bitmaps + 2 * headers.bitmap_bytes;
  if (version >= kWithNotes) {
    const auto [at, bytes_of] = load_at<std::array<std::uint64_t, 2>>(sub, kNotesAt);
    headers.notes = {at, bytes_of};
  }
  if (headers.pages > kMostPages) return damaged("it has too many pages");
  if (headers.descriptors > size) return damaged("it ends within its bitmaps");
  if (headers.pages > headers.bitmap_bytes * 8) return damaged("its bitmaps are too small");
  return headers;
}

/// How a page is packed: the flags of its descriptor, without those that say nothing of it.
enum Packing : std::uint32_t { AsItIs = 0, Zlib = 1, Lzo = 2, Snappy = 4, Zstd = 0x20 };
constexpr std::uint32_t kPackings = Zlib | Lzo | Snappy | Zstd;

struct Descriptor {
  std::uint64_t offset;
  std::uint32_t size, flags;
  std::uint64_t page_flags;
};
static_assert(sizeof(Descriptor) == 24);

/// False for bytes that do not give a whole page.
bool unpack(std::uint32_t packing, std::span<const std::byte> packed, Page& page) {
  // SAFETY: the libraries take bytes by their own names for them.
  const auto* in = reinterpret_cast<const unsigned char*>(packed.data());
  auto* out = reinterpret_cast<unsigned char*>(page.data());
  std::size_t size = page.size();
  switch (packing) {
    case AsItIs:
      if (packed.size() != page.size()) return false;
      std::ranges::copy(packed, page.begin());
      return true;
    case Zlib: {
      uLongf filled = page.size();
      return uncompress(out, &filled, in, packed.size()) == Z_OK && filled == page.size();
    }
    case Lzo: {
      lzo_uint filled = page.size();
      return lzo1x_decompress_safe(in, packed.size(), out, &filled, nullptr) == LZO_E_OK &&
             filled == page.size();
    }
    case Snappy:
      return snappy_uncompress(reinterpret_cast<const char*>(in), packed.size(),
                               reinterpret_cast<char*>(out), &size) == SNAPPY_OK &&
             size == page.size();
    case Zstd: return ZSTD_decompress(out, size, in, packed.size()) == size;
    default: return false;
  }
}

/// A bit a page.
class Bitmap {
 public:
  /// False when the file has not all of it.
  bool read(const FileMemory& file, std::uint64_t at, std::uint64_t pages) {
    words_.resize(divide_up(pages, 64U));
    const CopyPart whole{at, std::as_writable_bytes(std::span(words_))};
    if (pages == 0 || !file.read({&whole, 1})) return false;
    if (pages % 64 != 0) words_.back() &= (std::uint64_t{1} << pages % 64) - 1;
    return true;
  }
  bool has(std::uint64_t page) const {
    return page / 64 < words_.size() && (words_[page / 64] >> page % 64 & 1) != 0;
  }
  /// The first page from `page` on that is set, or is not; the end of all where there is none.
  std::uint64_t next(std::uint64_t page, bool set) const {
    for (std::uint64_t at = page / 64; at < words_.size(); ++at) {
      std::uint64_t word = set ? words_[at] : ~words_[at];
      if (at == page / 64) word &= ~std::uint64_t{0} << page % 64;
      if (word != 0) return at * 64 + static_cast<unsigned>(std::countr_zero(word));
    }
    return words_.size() * 64;
  }
  std::span<const std::uint64_t> words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

/// The pages in the file as memory, whose offsets are guest-physical addresses. Unpacks what is
/// asked for, and keeps what it unpacked last. Does not: write.
class DumpPages final : public CopiedBytes {
 public:
  DumpPages(FileMemory file, std::uint64_t size, Headers headers)
      : file_(std::move(file)), size_(size), headers_(headers), kept_(kKeptPages) {}

  Result<void> read_bitmaps();
  Result<std::vector<ByteExtent>> ram() const;
  /// Bytes of RAM that are not in the file.
  std::uint64_t absent() const;
  /// Bytes of pages whose descriptors lead past the file's end.
  std::uint64_t missing() const;

  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override;
  [[nodiscard]] bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  std::vector<ByteExtent> extents(ByteExtent of) const override;

 private:
  /// Direct-mapped: a page has one place.
  static constexpr std::size_t kKeptPages = 1024;
  static constexpr std::uint64_t kNone = UINT64_MAX;
  struct Kept {
    std::uint64_t number = kNone;
    Page page;
  };

  bool is_whole(const Descriptor& of) const {
    return of.size <= kBlock && of.offset <= size_ && of.size <= size_ - of.offset;
  }
  /// As many of the descriptors from number `first` on as `out` has room for; fewer at the end of
  /// the file.
  std::span<Descriptor> descriptors(std::uint64_t first, std::span<Descriptor> out) const;
  std::optional<std::uint64_t> rank(std::uint64_t number) const;
  bool unpack_page(std::uint64_t number, Page& page) const;
  const Page* page(std::uint64_t number) const;

  FileMemory file_;
  std::uint64_t size_;
  Headers headers_;
  Bitmap is_ram_, is_there_;
  std::vector<std::uint64_t> ranks_;  // of the first page of each word of is_there_; one more
  mutable std::mutex lock_;           // of kept_
  mutable std::vector<Kept> kept_;
};

Result<void> DumpPages::read_bitmaps() {
  if (!is_ram_.read(file_, headers_.bitmaps, headers_.pages) ||
      !is_there_.read(file_, headers_.bitmaps + headers_.bitmap_bytes, headers_.pages)) {
    return damaged("its bitmaps cannot be read");
  }
  ranks_.push_back(0);
  for (const std::uint64_t word : is_there_.words()) {
    ranks_.push_back(ranks_.back() + static_cast<unsigned>(std::popcount(word)));
  }
  return {};
}

Result<std::vector<ByteExtent>> DumpPages::ram() const {
  std::vector<ByteExtent> runs;
  for (std::uint64_t begin = is_ram_.next(0, true); begin < headers_.pages;) {
    const std::uint64_t end = std::min(is_ram_.next(begin, false), headers_.pages);
    if (runs.size() == ElfCore::kMaxSegments) return damaged("its memory has too many holes");
    runs.push_back({begin * kBlock, (end - begin) * kBlock});
    begin = is_ram_.next(end, true);
  }
  if (runs.empty()) return damaged("it has no memory");
  return runs;
}

std::uint64_t DumpPages::absent() const {
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < is_ram_.words().size(); ++i) {
    pages += static_cast<unsigned>(std::popcount(is_ram_.words()[i] & ~is_there_.words()[i]));
  }
  return pages * kBlock;
}

std::span<Descriptor> DumpPages::descriptors(std::uint64_t first, std::span<Descriptor> out) const {
  const std::uint64_t at = headers_.descriptors + first * sizeof(Descriptor);
  const std::uint64_t in_file = at < size_ ? (size_ - at) / sizeof(Descriptor) : 0;
  out = out.first(std::min({std::uint64_t{out.size()}, ranks_.back() - first, in_file}));
  const CopyPart part{at, std::as_writable_bytes(out)};
  return file_.read({&part, 1}) ? out : out.first(0);
}

std::uint64_t DumpPages::missing() const {
  std::vector<Descriptor> room(kBlock);
  std::uint64_t pages = 0;
  for (std::uint64_t at = 0; at < ranks_.back();) {
    const auto found = descriptors(at, room);
    if (found.empty()) return (pages + ranks_.back() - at) * kBlock;
    pages += static_cast<std::uint64_t>(
        std::ranges::count_if(found, [&](const Descriptor& one) { return !is_whole(one); }));
    at += found.size();
  }
  return pages * kBlock;
}

/// The number of its descriptor.
std::optional<std::uint64_t> DumpPages::rank(std::uint64_t number) const {
  if (!is_there_.has(number)) return std::nullopt;
  const std::uint64_t before = (std::uint64_t{1} << number % 64) - 1;
  return ranks_[number / 64] +
         static_cast<unsigned>(std::popcount(is_there_.words()[number / 64] & before));
}

bool DumpPages::unpack_page(std::uint64_t number, Page& page) const {
  const auto at = rank(number);
  if (!at) {
    page.fill({});
    return is_ram_.has(number) && (headers_.level & kZerosLeftOut) != 0;
  }
  std::array<Descriptor, 1> descriptor;
  if (descriptors(*at, descriptor).empty() || !is_whole(descriptor[0])) return false;
  Page packed;
  const CopyPart part{descriptor[0].offset, std::span(packed).first(descriptor[0].size)};
  return file_.read({&part, 1}) && unpack(descriptor[0].flags & kPackings, part.out, page);
}

/// Null when it cannot be read. Good until the next call.
const Page* DumpPages::page(std::uint64_t number) const {
  Kept& kept = kept_[number % kKeptPages];
  if (kept.number != number) {
    kept.number = kNone;
    if (!unpack_page(number, kept.page)) return nullptr;
    kept.number = number;
  }
  return &kept.page;
}

bool DumpPages::read(std::span<const CopyPart> parts) const {
  const std::lock_guard guard(lock_);
  for (CopyPart part : parts) {
    while (!part.out.empty()) {
      const Page* const from = page(part.offset / kBlock);
      if (from == nullptr) return false;
      const std::size_t begin = part.offset % kBlock;
      const std::size_t some = std::min(part.out.size(), kBlock - begin);
      std::memcpy(part.out.data(), from->data() + begin, some);
      part.out = part.out.subspan(some);
      part.offset += some;
    }
  }
  return true;
}

std::vector<ByteExtent> DumpPages::extents(ByteExtent of) const {
  std::vector<ByteExtent> found;
  const std::uint64_t end = of.offset + of.size;  // a region of ram(): no sum wraps
  for (std::uint64_t at = of.offset; at < end;) {
    const std::uint64_t first = is_there_.next(at / kBlock, true);
    const std::uint64_t begin = std::max(at, first * kBlock);
    if (begin >= end) break;
    at = std::min(end, is_there_.next(first, false) * kBlock);
    found.push_back({begin, at - begin});
  }
  return found;
}

core_notes::NotedVcpus read_notes(const FileMemory& file, ByteExtent at, std::uint64_t size) {
  core_notes::NoteReader notes;
  if (at.size <= core_notes::kMaxNoteBytes && at.offset <= size && at.size <= size - at.offset) {
    std::vector<std::byte> bytes(at.size);
    const CopyPart part{at.offset, bytes};
    if (file.read({&part, 1})) notes.read(bytes);
  }
  return std::move(notes).vcpus();
}

}  // namespace

bool is_compressed_dump(std::span<const std::byte> start) {
  return begins_with(start, "KDUMP   ");
}

Result<CompressedDump> read_compressed_dump(UniqueFd fd, std::uint64_t size) {
  FileMemory file(std::move(fd));
  const Headers headers = TRY(read_headers(file, size));
  CompressedDump read;
  read.vcpus = read_notes(file, headers.notes, size);
  auto pages = std::make_shared<DumpPages>(std::move(file), size, headers);
  TRY(pages->read_bitmaps());
  read.ram = TRY(pages->ram());
  read.missing = pages->missing();
  if ((headers.level & ~kZerosLeftOut) != 0) read.left_out = pages->absent();
  read.memory = std::move(pages);
  return read;
}

bool is_flattened_dump(std::span<const std::byte> start) {
  return begins_with(start, "makedumpfile");
}

Result<UnflattenedDump> unflatten(int fd, std::uint64_t size) {
  constexpr std::uint64_t kEnd = UINT64_MAX;
  constexpr std::uint64_t kMostBytes = kMostPages * kBlock;
  StreamInput input(fd, size, "its flattened dump");
  TRY(input.skip(kBlock));
  UnflattenedDump out{TRY(ScratchFile::open())};
  std::vector<std::byte> bytes;
  for (;;) {
    const auto at = TRY(input.number<std::uint64_t>());
    const auto length = TRY(input.number<std::uint64_t>());
    if (at == kEnd) return out;
    if (length > size || at > kMostBytes - size) {
      return Unexpected<Error>(StreamInput::damaged("its flattened dump", "a piece lies nowhere"));
    }
    bytes.resize(length);
    TRY(input.read(bytes));
    const ssize_t put = pwrite(out.file.get(), bytes.data(), length, static_cast<off_t>(at));
    if (put != static_cast<ssize_t>(length)) return Unexpected<Error>(ScratchFile::no_room());
    out.size = std::max(out.size, at + length);
  }
}

}  // namespace ringside::vmm
