// In this file, top to bottom: libvirt's header, the stream's sections, the section "ram", the file
// that RAM goes to.
#include "vmm/saved/migration_stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"
#include "vmm/saved/stream_input.h"

namespace ringside::vmm {
namespace {

constexpr std::string_view kQemuMagic = "QEVM", kLibvirtMagic = "LibvirtQemudSave";
constexpr std::uint32_t kQemuVersion = 3, kRamVersion = 4;
constexpr std::uint64_t kMostRam = std::uint64_t{64} << 40;
/// More than this no stream has: blocks of RAM, other kinds of sections.
constexpr std::size_t kMostBlocks = 4096;
constexpr std::string_view kWayOut =
    "; restore it, and write an ELF core instead: virsh dump --memory-only, or dump-guest-memory";

enum SectionType : std::uint8_t {
  Eof = 0,
  Start = 1,
  Part = 2,
  End = 3,
  Full = 4,
  Configuration = 7,
  Command = 8,
  Footer = 0x7e,
};

enum PageFlag : std::uint64_t {
  Zero = 0x02,
  MemSize = 0x04,
  Page = 0x08,
  EndOfSection = 0x10,
  Continue = 0x20,
  Xbzrle = 0x40,
  MultifdFlush = 0x200,
};

constexpr std::string_view kWhat = "its migration stream";

Error damaged(std::string_view what) {
  return StreamInput::damaged(kWhat, what);
}

Error unsupported(std::string_view what) {
  return {ErrorCode::Unsupported, fmt::format("{}{}", what, kWayOut)};
}

struct LibvirtHeader {
  char magic[16];
  std::uint32_t version, data_bytes, was_running, compression, cookie, unused[14];
};
static_assert(sizeof(LibvirtHeader) == 92);

Result<void> skip_libvirt_header(StreamInput& input) {
  LibvirtHeader header;
  TRY(input.read(std::as_writable_bytes(std::span(&header, 1))));
  constexpr std::array<std::string_view, 5> kCompressed{"gzip", "bzip2", "xz", "lzop", "zstd"};
  if (header.compression != 0) {
    const bool known = header.compression <= kCompressed.size();
    return Unexpected<Error>(unsupported(
        fmt::format("it is a compressed libvirt save image ({})",
                    known ? kCompressed.at(header.compression - 1) : "in a form not known")));
  }
  return input.skip(header.data_bytes);
}

/// XBZRLE's changes of a page: runs that stay as they were and runs that are new, each after its
/// length as ULEB128 (QEMU's migration/xbzrle.c).
Result<void> apply_differences(std::span<const std::byte> differences, std::span<std::byte> page) {
  std::size_t at = 0, to = 0;
  const auto length = [&]() -> std::optional<std::size_t> {
    std::size_t value = 0;
    for (unsigned shift = 0; shift < 14 && at < differences.size(); shift += 7) {
      const auto byte = std::to_integer<std::size_t>(differences[at++]);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  };
  while (at < differences.size()) {
    const auto same = length();
    if (!same || *same > page.size() - to) break;
    to += *same;
    if (at == differences.size()) return {};  // the rest is as it was
    const auto changed = length();
    if (!changed || *changed > page.size() - to || *changed > differences.size() - at) break;
    std::ranges::copy(differences.subspan(at, *changed), page.subspan(to).begin());
    at += *changed;
    to += *changed;
    if (at == differences.size()) return {};
  }
  return Unexpected<Error>(damaged("a page's differences are no such"));
}

class StreamReader {
 public:
  explicit StreamReader(StreamInput& input) : input_(input) {}

  Result<StreamedRam> read() {
    std::array<char, 4> magic{};
    TRY(input_.read(std::as_writable_bytes(std::span(magic))));
    if (std::string_view(magic.data(), magic.size()) != kQemuMagic) {
      return Unexpected<Error>(damaged("it does not begin with QEVM"));
    }
    if (TRY(input_.number<std::uint32_t>()) != kQemuVersion) {
      return Unexpected<Error>(unsupported("its migration stream is of another version"));
    }
    ram_.file = TRY(ScratchFile::open());
    while (!complete_) TRY(read_section());
    if (ftruncate(ram_.file.get(), static_cast<off_t>(ram_.size)) != 0) return no_room();
    return std::move(ram_);
  }

 private:
  /// [begin, begin + size) of the file.
  struct Block {
    std::uint64_t begin = 0, size = 0;
    bool kept = false;  // it is RAM and not a device's
  };

  Result<void> read_section();
  Result<void> read_configuration();
  Result<void> read_first(SectionType type);
  Result<void> read_more(SectionType type);
  Result<void> read_blocks(std::uint64_t bytes);
  Result<void> place_blocks();
  Result<void> read_ram();
  Result<Block> block_of(std::uint64_t header);
  Result<void> take_page(const Block& block, std::uint64_t at, std::uint64_t flags);
  Result<void> take_differences(const Block& block, std::uint64_t at);
  Result<void> store(const Block& block, std::uint64_t at, std::span<const std::byte> page);
  static Unexpected<Error> no_room() { return Unexpected<Error>(ScratchFile::no_room()); }

  StreamInput& input_;
  StreamedRam ram_;
  std::optional<std::uint32_t> ram_section_;
  std::vector<std::pair<std::string, Block>> blocks_;
  std::string last_block_;
  bool complete_ = false;
};

Result<void> StreamReader::read_section() {
  const auto type = static_cast<SectionType>(TRY(input_.number<std::uint8_t>()));
  switch (type) {
    case Configuration: return read_configuration();
    case Start:
    case Full: return read_first(type);
    case Part:
    case End: return read_more(type);
    case Footer: TRY(input_.number<std::uint32_t>()); return {};
    case Command: {
      TRY(input_.number<std::uint16_t>());
      return input_.skip(TRY(input_.number<std::uint16_t>()));
    }
    case Eof: break;
  }
  return Unexpected<Error>(damaged(type == Eof ? "there is no RAM in it" : "an unknown section"));
}

/// The machine's type; then, from 4.0 on, subsections until another section begins. Those that QEMU
/// writes for x86 are the capabilities and the machine's UUID.
Result<void> StreamReader::read_configuration() {
  return input_.skip(TRY(input_.number<std::uint32_t>()));
}

Result<void> StreamReader::read_first(SectionType type) {
  const auto id = TRY(input_.number<std::uint32_t>());
  const std::string name = TRY(input_.name());
  TRY(input_.number<std::uint32_t>());  // instance
  const auto version = TRY(input_.number<std::uint32_t>());
  if (name != "ram" || type != Start) {
    return Unexpected<Error>(unsupported(
        fmt::format("its migration stream has '{}' before RAM", printable(name).substr(0, 60))));
  }
  if (version != kRamVersion) {
    return Unexpected<Error>(unsupported("its RAM is in another version's form"));
  }
  if (ram_section_) return Unexpected<Error>(damaged("it has RAM twice"));
  ram_section_ = id;
  return read_ram();
}

Result<void> StreamReader::read_more(SectionType type) {
  const auto id = TRY(input_.number<std::uint32_t>());
  if (!ram_section_ || id != *ram_section_) {
    return Unexpected<Error>(damaged("a section that never began"));
  }
  TRY(read_ram());
  complete_ = type == End;
  return {};
}

Result<void> StreamReader::read_blocks(std::uint64_t bytes) {
  if (!blocks_.empty()) return Unexpected<Error>(damaged("it has its blocks of RAM twice"));
  while (bytes != 0) {
    std::string name = TRY(input_.name());
    const auto size = TRY(input_.number<std::uint64_t>());
    const bool fits = size <= bytes && size <= kMostRam && size % arch::kPageSize == 0 && size != 0;
    if (!fits || blocks_.size() == kMostBlocks) {
      return Unexpected<Error>(damaged("a block of RAM has no such size"));
    }
    bytes -= size;
    blocks_.emplace_back(std::move(name), Block{0, size, false});
  }
  return place_blocks();
}

/// Where a block of main memory lies among the others; empty for a device's. It has the board's
/// name, "ram-nodeN" where there are NUMA nodes, or that of an object of the owner's (`-object
/// memory-backend-ram,id=...`); devices' names have a dot or a slash.
std::optional<unsigned> place_of(std::string_view name) {
  constexpr std::string_view kNode = "ram-node";
  if (name == "pc.ram" || name == "microvm.ram") return 0;
  if (name.starts_with("/objects/")) name.remove_prefix(std::strlen("/objects/"));
  if (name.starts_with(kNode)) {
    const std::string number(name.substr(kNode.size()));
    return static_cast<unsigned>(std::strtoul(number.c_str(), nullptr, 10));
  }
  if (name.find_first_of("./") != std::string_view::npos) return std::nullopt;
  return 0;
}

/// The guest sees main memory as one piece with a hole. Only its device knows
/// where plugged memory lies.
Result<void> StreamReader::place_blocks() {
  std::map<unsigned, Block*> places;
  for (auto& [name, block] : blocks_) {
    const auto place = place_of(name);
    if (!place) continue;
    if (!places.try_emplace(*place, &block).second) {
      return Unexpected<Error>(unsupported(fmt::format(
          "it has memory ('{}') whose place the stream does not tell: it was plugged in",
          printable(name).substr(0, 60))));
    }
  }
  for (auto& [place, block] : places) {
    block->kept = true;
    block->begin = ram_.size;
    ram_.size += block->size;
  }
  if (ram_.size != 0 && ram_.size <= kMostRam) return {};
  return Unexpected<Error>(unsupported("none of its blocks of RAM is a PC's main memory"));
}

Result<StreamReader::Block> StreamReader::block_of(std::uint64_t header) {
  if ((header & Continue) == 0) last_block_ = TRY(input_.name());
  for (const auto& [name, block] : blocks_) {
    const std::uint64_t at = round_down(header, arch::kPageSize);
    if (name == last_block_ && at < block.size) return block;
  }
  return Unexpected<Error>(damaged("a page is in no block of RAM"));
}

/// Until the section's end.
Result<void> StreamReader::read_ram() {
  for (;;) {
    const auto header = TRY(input_.number<std::uint64_t>());
    const std::uint64_t flags = header % arch::kPageSize, at = round_down(header, arch::kPageSize);
    switch (flags & ~std::uint64_t{Continue}) {
      case EndOfSection: return {};
      case MemSize: TRY(read_blocks(at)); break;
      case MultifdFlush: break;
      case Zero:
      case Page:
      case Xbzrle: TRY(take_page(TRY(block_of(header)), at, flags)); break;
      default:
        return Unexpected<Error>(unsupported(
            fmt::format("its pages of RAM are in a form (flags {:#x}) that is not read", flags)));
    }
  }
}

Result<void> StreamReader::take_page(const Block& block, std::uint64_t at, std::uint64_t flags) {
  std::array<std::byte, arch::kPageSize> page;
  if ((flags & Xbzrle) != 0) return take_differences(block, at);
  if ((flags & Page) != 0) {
    TRY(input_.read(page));
  } else {
    page.fill(std::byte{TRY(input_.number<std::uint8_t>())});
  }
  return store(block, at, page);
}

Result<void> StreamReader::take_differences(const Block& block, std::uint64_t at) {
  constexpr std::uint8_t kXbzrleForm = 1;
  const auto form = TRY(input_.number<std::uint8_t>());
  const auto size = TRY(input_.number<std::uint16_t>());
  if (form != kXbzrleForm || size > arch::kPageSize) {
    return Unexpected<Error>(damaged("a page's differences are no such"));
  }
  std::vector<std::byte> differences(size);
  TRY(input_.read(differences));
  if (!block.kept) return {};
  std::array<std::byte, arch::kPageSize> page{};
  const auto offset = static_cast<off_t>(block.begin + at);
  if (pread(ram_.file.get(), page.data(), page.size(), offset) < 0) return no_room();
  TRY(apply_differences(differences, page));
  return store(block, at, page);
}

/// Zeros where there is a hole stay one.
Result<void> StreamReader::store(const Block& block, std::uint64_t at,
                                 std::span<const std::byte> page) {
  if (!block.kept) return {};
  const auto offset = static_cast<off_t>(block.begin + at);
  if (std::ranges::all_of(page, [](std::byte byte) { return byte == std::byte{0}; })) {
    const off_t data = lseek(ram_.file.get(), offset, SEEK_DATA);
    if (data < 0 || data >= offset + static_cast<off_t>(page.size())) return {};
  }
  const ssize_t written = pwrite(ram_.file.get(), page.data(), page.size(), offset);
  return written == static_cast<ssize_t>(page.size()) ? Result<void>() : no_room();
}

}  // namespace

bool is_migration_stream(std::span<const std::byte> start) {
  return begins_with(start, kQemuMagic) || begins_with(start, kLibvirtMagic);
}

Result<StreamedRam> read_migration_stream(int fd, std::uint64_t size) {
  std::array<char, kLibvirtMagic.size()> magic{};
  const ssize_t got = pread(fd, magic.data(), magic.size(), 0);
  StreamInput input(fd, size, kWhat);
  if (got == static_cast<ssize_t>(magic.size()) &&
      std::string_view(magic.data(), magic.size()) == kLibvirtMagic) {
    TRY(skip_libvirt_header(input));
  }
  return StreamReader(input).read();
}

}  // namespace ringside::vmm
