// In this file, top to bottom: fields of either class, the headers, segments and sections, symbols,
// reading.
#include "vmm/linux/text/elf_image.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "vmm/linux/image_view.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint32_t kLoad = 1;         // PT_LOAD
constexpr std::uint32_t kExecutable = 1;   // PF_X
constexpr std::uint32_t kSymbolTable = 2;  // SHT_SYMTAB
constexpr std::uint32_t kNoBits = 8;       // SHT_NOBITS
constexpr std::uint64_t kWrite = 1, kExec = 4;
constexpr std::uint16_t kUndefined = 0, kAbsolute = 0xfff1;
constexpr std::size_t kLongestName = 512;

tl::unexpected<Error> bad(const char* why) {
  return fail(ErrorCode::Invalid, why);
}

/// One structure's fields, whose words are 4 or 8 bytes by the file's class.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool is_64) : bytes_(bytes), is_64_(is_64) {}

  template <class T>
  T at(std::size_t at32, std::size_t at64) const {
    return load_at<T>(bytes_, is_64_ ? at64 : at32);
  }
  std::uint64_t word(std::size_t at32, std::size_t at64) const {
    return is_64_ ? load_at<std::uint64_t>(bytes_, at64) : load_at<std::uint32_t>(bytes_, at32);
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_64_;
};

}  // namespace

/// What is used of Elf32_Ehdr and Elf64_Ehdr.
struct ElfImage::Header {
  std::uint64_t segments = 0, sections = 0;  // offsets in the file
  std::uint16_t segment_bytes = 0, segment_count = 0;
  std::uint16_t section_bytes = 0, section_count = 0, names = 0;
};

std::span<const std::byte> ElfImage::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(offset, size);
}

Result<ElfImage::Header> ElfImage::read_header() const {
  const Fields f(bytes_, is_64_);
  Header h;
  h.segments = f.word(28, 32);
  h.sections = f.word(32, 40);
  h.segment_bytes = f.at<std::uint16_t>(42, 54);
  h.segment_count = f.at<std::uint16_t>(44, 56);
  h.section_bytes = f.at<std::uint16_t>(46, 58);
  h.section_count = f.at<std::uint16_t>(48, 60);
  h.names = f.at<std::uint16_t>(50, 62);
  const std::size_t least_segment = is_64_ ? 56 : 32, least_section = is_64_ ? 64 : 40;
  if (h.segment_bytes < least_segment || h.segment_count == 0 || h.segment_count > kMaxSegments) {
    return bad("it is an ELF file that has no segments to load");
  }
  if (h.section_bytes < least_section || h.section_count > kMaxSections) h.section_count = 0;
  return h;
}

Result<void> ElfImage::read_segments(const Header& header) {
  for (std::size_t i = 0; i < header.segment_count; ++i) {
    const auto entry = part(header.segments + i * header.segment_bytes, header.segment_bytes);
    if (entry.empty()) return bad("its ELF program headers lie outside the file");
    const Fields f(entry, is_64_);
    if (f.at<std::uint32_t>(0, 0) != kLoad) continue;
    Segment s;
    s.address = f.word(8, 16);
    s.physical = f.word(12, 24);
    const std::uint64_t in_file = f.word(16, 32);
    s.size = f.word(20, 40);
    s.bytes = part(f.word(4, 8), std::min(in_file, s.size));
    s.executable = (f.at<std::uint32_t>(24, 4) & kExecutable) != 0;
    if (s.bytes.size() != std::min(in_file, s.size)) return bad("an ELF segment is cut off");
    if (s.size > UINT64_MAX - s.address) return bad("an ELF segment wraps around");
    if (s.size != 0) segments_.push_back(s);
  }
  if (segments_.empty()) return bad("it is an ELF file that has no segments to load");
  return {};
}

void ElfImage::read_sections(const Header& header) {
  std::vector<std::uint32_t> names;
  for (std::size_t i = 0; i < header.section_count; ++i) {
    const auto entry = part(header.sections + i * header.section_bytes, header.section_bytes);
    if (entry.empty()) break;
    const Fields f(entry, is_64_);
    Section s;
    names.push_back(f.at<std::uint32_t>(0, 0));
    s.type = f.at<std::uint32_t>(4, 4);
    s.flags = f.word(8, 8);
    s.address = f.word(12, 16);
    s.size = f.word(20, 32);
    s.link = f.at<std::uint32_t>(24, 40);
    if (s.type != kNoBits) s.bytes = part(f.word(16, 24), s.size);
    sections_.push_back(s);
  }
  if (header.names >= sections_.size()) return;
  const auto strings = sections_[header.names].bytes;
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    sections_[i].name = string_at(strings, names[i]);
  }
}

Result<ElfImage> ElfImage::parse(std::span<const std::byte> bytes) {
  constexpr std::byte kMagic[] = {std::byte{0x7f}, std::byte{'E'}, std::byte{'L'}, std::byte{'F'}};
  constexpr std::size_t kHeaderBytes = 64;  // the smaller class's is 52, with something behind
  if (bytes.size() < kHeaderBytes ||
      !std::equal(std::begin(kMagic), std::end(kMagic), bytes.data())) {
    return bad("it is no ELF file");
  }
  const auto file_class = std::to_integer<unsigned>(bytes[4]);
  if (file_class != 1 && file_class != 2) return bad("it is an ELF file of no known class");
  if (bytes[5] != std::byte{1}) return bad("it is a big-endian ELF file");
  ElfImage image(bytes);
  image.is_64_ = file_class == 2;
  const Header header = TRY(image.read_header());
  TRY(image.read_segments(header));
  image.read_sections(header);
  return image;
}

const ElfImage::Section* ElfImage::section(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& section) { return section.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

std::string_view ElfImage::string_at(std::span<const std::byte> strings,
                                     std::uint64_t offset) const {
  if (offset >= strings.size()) return {};
  const auto rest = strings.subspan(offset, std::min(strings.size() - offset, kLongestName));
  const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
  if (end == rest.end()) return {};
  // SAFETY: char may alias any bytes; the range was found inside the file.
  return {reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())};
}

char ElfImage::letter(std::uint8_t info, std::uint16_t section) const {
  char type = 'd';
  if (section < sections_.size()) {
    const Section& in = sections_[section];
    if ((in.flags & kExec) != 0) {
      type = 't';
    } else if (in.type == kNoBits) {
      type = 'b';
    } else if ((in.flags & kWrite) == 0) {
      type = 'r';
    }
  }
  // A bare label may stand before data or in 16-bit code: no function, unless it says so.
  if (type == 't' && (info & 15) == 0) return 'n';  // STT_NOTYPE
  const unsigned binding = info >> 4;
  if (binding == 2) return type == 't' ? 'W' : 'V';  // STB_WEAK
  const bool local = binding == 0;                   // STB_LOCAL
  return local ? type : static_cast<char>(std::toupper(static_cast<unsigned char>(type)));
}

std::vector<ElfImage::ElfSymbol> ElfImage::symbols() const {
  const auto table = std::find_if(sections_.begin(), sections_.end(), [](const Section& section) {
    return section.type == kSymbolTable;
  });
  if (table == sections_.end() || table->link >= sections_.size()) return {};
  const auto strings = sections_[table->link].bytes;
  const std::size_t entry_bytes = is_64_ ? 24 : 16;
  const std::size_t count = std::min(table->bytes.size() / entry_bytes, kMaxSymbols);
  std::vector<ElfSymbol> symbols;
  for (std::size_t i = 0; i < count; ++i) {
    const Fields f(table->bytes.subspan(i * entry_bytes, entry_bytes), is_64_);
    const auto info = f.at<std::uint8_t>(12, 4);
    const auto section = f.at<std::uint16_t>(14, 6);
    constexpr unsigned kHighestKind = 2;  // STT_NOTYPE, STT_OBJECT, STT_FUNC
    if ((info & 15) > kHighestKind || section == kUndefined) continue;
    if (section == kAbsolute) continue;  // a number that the assembler knew, no place
    const std::string_view name = string_at(strings, f.at<std::uint32_t>(0, 0));
    if (name.empty() || name.starts_with(".L")) continue;
    symbols.push_back({name, f.word(4, 8), f.word(8, 16), letter(info, section)});
  }
  return symbols;
}

const ElfImage::Segment* ElfImage::segment_of(std::uint64_t at) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return at - segment.address < segment.size;  // huge below it
  });
  return found == segments_.end() ? nullptr : &*found;
}

Result<void, Fault> ElfImage::read(std::uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const Segment* segment = segment_of(at);
    if (segment == nullptr) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at});
    const std::uint64_t offset = at - segment->address;
    const std::size_t size = std::min<std::uint64_t>(out.size(), segment->size - offset);
    const std::size_t in_file = offset < segment->bytes.size()
                                    ? std::min<std::uint64_t>(size, segment->bytes.size() - offset)
                                    : 0;
    if (in_file != 0) std::memcpy(out.data(), segment->bytes.data() + offset, in_file);
    std::fill_n(out.data() + in_file, size - in_file, std::byte{0});
    out = out.subspan(size);
    at += size;
  }
  return {};
}

std::optional<std::span<const std::byte>> ElfImage::bytes_at(std::uint64_t at,
                                                             std::uint64_t size) const {
  const Segment* segment = segment_of(at);
  if (segment == nullptr) return std::nullopt;
  const std::uint64_t offset = at - segment->address;
  if (offset > segment->bytes.size() || size > segment->bytes.size() - offset) return std::nullopt;
  return segment->bytes.subspan(offset, size);
}

void ElfImage::forget_bytes() {
  bytes_ = {};
  sections_ = {};
  for (Segment& segment : segments_) segment.bytes = {};
}

std::optional<std::uint64_t> ElfImage::physical(std::uint64_t address) const {
  const Segment* segment = segment_of(address);
  if (segment == nullptr) return std::nullopt;
  return segment->physical + (address - segment->address);
}

}  // namespace ringside::guest_linux
