// In this file, top to bottom: reading the file in order, libvirt's header, the stream's sections,
// the section "ram", the file that RAM goes to.
#include "vmm/saved/migration_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr std::string_view kQemuMagic = "QEVM", kLibvirtMagic = "LibvirtQemudSave";
constexpr std::uint32_t kQemuVersion = 3, kRamVersion = 4;
constexpr std::uint64_t kMostRam = std::uint64_t{64} << 40;
/// More than this no stream has: blocks of RAM, other kinds of sections.
constexpr std::size_t kMostBlocks = 4096, kMostText = 64 << 20;
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

Error damaged(std::string_view what) {
  return {ErrorCode::Invalid, fmt::format("its migration stream is damaged: {}", what)};
}

Error unsupported(std::string_view what) {
  return {ErrorCode::Unsupported, fmt::format("{}{}", what, kWayOut)};
}

/// The file from a place on, once through.
class Input {
 public:
  Input(int fd, std::uint64_t size) : fd_(fd), left_(size), buffer_(1 << 20) {}

  Result<void> read(std::span<std::byte> out) {
    while (!out.empty()) {
      if (begin_ == end_) TRY(fill());
      const std::size_t some = std::min(out.size(), end_ - begin_);
      std::memcpy(out.data(), buffer_.data() + begin_, some);
      begin_ += some;
      out = out.subspan(some);
    }
    return {};
  }
  template <class T>
  Result<T> number() {
    std::array<std::byte, sizeof(T)> bytes;
    TRY(read(bytes));
    T value = 0;
    for (const std::byte byte : bytes)
      value = static_cast<T>(value << 8 | std::to_integer<T>(byte));
    return value;
  }
  Result<void> skip(std::uint64_t size) {
    if (size > kMostText) return Unexpected<Error>(damaged("a length is absurd"));
    std::vector<std::byte> bytes(size);
    return read(bytes);
  }
  /// A name with its length before it.
  Result<std::string> name() {
    std::string text(TRY(number<std::uint8_t>()), '\0');
    TRY(read(std::as_writable_bytes(std::span(text))));
    return text;
  }

 private:
  Result<void> fill() {
    if (left_ == 0) return Unexpected<Error>(damaged("it ends too early"));
    const std::size_t wanted = std::min<std::uint64_t>(buffer_.size(), left_);
    const ssize_t got = pread(fd_, buffer_.data(), wanted, static_cast<off_t>(at_));
    if (got <= 0) return fail(ErrorCode::Io, "it cannot be read");
    at_ += static_cast<std::uint64_t>(got);
    left_ -= static_cast<std::uint64_t>(got);
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    return {};
  }

  int fd_;
  std::uint64_t at_ = 0, left_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

struct LibvirtHeader {
  char magic[16];
  std::uint32_t version, data_bytes, was_running, compression, cookie, unused[14];
};
static_assert(sizeof(LibvirtHeader) == 92);

Result<void> skip_libvirt_header(Input& input) {
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

/// A file without a name, in a folder where large ones go.
Result<UniqueFd> nameless_file() {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path = folder != nullptr && *folder != '\0' ? folder : "/var/tmp";
  UniqueFd fd(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  return fail(ErrorCode::Io,
              fmt::format("cannot make a file in {} for its RAM: {}", path, std::strerror(errno)));
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
  explicit StreamReader(Input& input) : input_(input) {}

  Result<StreamedRam> read() {
    std::array<char, 4> magic{};
    TRY(input_.read(std::as_writable_bytes(std::span(magic))));
    if (std::string_view(magic.data(), magic.size()) != kQemuMagic) {
      return Unexpected<Error>(damaged("it does not begin with QEVM"));
    }
    if (TRY(input_.number<std::uint32_t>()) != kQemuVersion) {
      return Unexpected<Error>(unsupported("its migration stream is of another version"));
    }
    ram_.file = TRY(nameless_file());
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
  static Unexpected<Error> no_room() {
    return Unexpected<Error>(
        Error{ErrorCode::Io,
              fmt::format("cannot write its RAM to a file in TMPDIR: {}", std::strerror(errno))});
  }

  Input& input_;
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
  const auto begins = [&](std::string_view magic) {
    return start.size() >= magic.size() &&
           std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  };
  return begins(kQemuMagic) || begins(kLibvirtMagic);
}

Result<StreamedRam> read_migration_stream(int fd, std::uint64_t size) {
  std::array<char, kLibvirtMagic.size()> magic{};
  const ssize_t got = pread(fd, magic.data(), magic.size(), 0);
  Input input(fd, size);
  if (got == static_cast<ssize_t>(magic.size()) &&
      std::string_view(magic.data(), magic.size()) == kLibvirtMagic) {
    TRY(skip_libvirt_header(input));
  }
  return StreamReader(input).read();
}

}  // namespace ringside::vmm
