#include "vmm/kernel_file/unpack.h"

#include <archive.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>

#include "vmm/base/bytes.h"

namespace ringside::vmm {
namespace {

using Bytes = std::span<const std::byte>;
constexpr std::size_t kTrailer = sizeof(std::uint32_t);  // the unpacked size

/// `add` lets libarchive read this packing, and no other. Null where nobody can.
struct Packing {
  std::string_view name, magic;
  int (*add)(archive*);
  std::size_t after;  // bytes that follow the stream and are no part of it
};

using std::string_view_literals::operator""sv;
constexpr std::array kPackings{
    Packing{"gzip", "\x1f\x8b"sv, archive_read_support_filter_gzip, 0},
    Packing{"xz",
            "\xfd"
            "7zXZ\0"sv,
            archive_read_support_filter_xz, kTrailer},
    Packing{"zstd", "\x28\xb5\x2f\xfd"sv, archive_read_support_filter_zstd, kTrailer},
    Packing{"lz4", "\x02\x21\x4c\x18"sv, archive_read_support_filter_lz4, kTrailer},
    Packing{"bzip2", "BZh"sv, archive_read_support_filter_bzip2, kTrailer},
    Packing{"lzma", "\x5d\0\0"sv, archive_read_support_filter_lzma, kTrailer},
    Packing{"LZO", "\x89LZO"sv, nullptr, 0},
};

const Packing* find_packing(Bytes bytes) {
  for (const Packing& packing : kPackings) {
    if (bytes.size() >= packing.magic.size() &&
        std::memcmp(bytes.data(), packing.magic.data(), packing.magic.size()) == 0)
      return &packing;
  }
  return nullptr;
}

/// Whether the stream holds just as many bytes as `out` has room for, which are there then.
bool fill(const Packing& packing, Bytes stream, std::span<std::byte> out) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_entry* entry = nullptr;
  if (!reader || packing.add(reader.get()) != ARCHIVE_OK ||
      archive_read_support_format_raw(reader.get()) != ARCHIVE_OK ||
      archive_read_open_memory(reader.get(), stream.data(), stream.size()) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK ||
      archive_filter_code(reader.get(), 0) == ARCHIVE_FILTER_NONE) {
    return false;
  }
  while (!out.empty()) {
    const la_ssize_t got = archive_read_data(reader.get(), out.data(), out.size());
    if (got <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(got));
  }
  std::byte more{};  // also reads what ends the stream, and its checksum
  return archive_read_data(reader.get(), &more, 1) == 0;
}

}  // namespace

std::string_view packing_of(Bytes bytes) {
  const Packing* packing = find_packing(bytes);
  return packing == nullptr ? std::string_view() : packing->name;
}

Result<std::vector<std::byte>> unpack(Bytes packed) {
  const Packing* packing = find_packing(packed);
  if (packing == nullptr) return fail(ErrorCode::Unsupported, "packed in a way we do not know");
  if (packing->add == nullptr) {
    return fail(ErrorCode::Unsupported,
                fmt::format("packed with {}, which we cannot read", packing->name));
  }
  const auto damaged = [&] {
    return fail(ErrorCode::Invalid, fmt::format("the {} data is damaged", packing->name));
  };
  if (packed.size() < 16 || packed.size() > kMostUnpacked) return damaged();
  const auto size = load_at<std::uint32_t>(packed, packed.size() - kTrailer);
  // Real kernels pack to a fourth or less. A file of a few bytes may not make us take a gigabyte.
  if (size == 0 || size > kMostUnpacked || size / 1024 > packed.size()) return damaged();
  std::vector<std::byte> bytes(size);
  if (!fill(*packing, packed.first(packed.size() - packing->after), bytes)) return damaged();
  return bytes;
}

}  // namespace ringside::vmm
