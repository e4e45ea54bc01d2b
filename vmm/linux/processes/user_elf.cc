// In this file, top to bottom: the first page, the dynamic section, how many symbols there are, the
// symbols, looking one up.
#include "vmm/linux/processes/user_elf.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <tuple>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"

namespace ringside::guest_linux {
namespace {

using arch::kPageSize;
constexpr std::size_t kMaxSegments = 64;
constexpr std::uint64_t kMaxImage = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxDynamic = 16 << 10;
constexpr std::uint64_t kMaxUserSymbols = 1 << 18;
constexpr std::uint64_t kMaxBuckets = 1 << 18;
constexpr std::uint64_t kMaxBloom = 1 << 18;
constexpr std::uint64_t kMaxStrings = 32 << 20;
constexpr std::size_t kMaxUserSymbolName = 4096;
constexpr std::size_t kMostNested = 64;  // symbols inside others that are looked at

}  // namespace

bool is_elf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
         (header.e_type == ET_EXEC || header.e_type == ET_DYN) &&
         header.e_phentsize == sizeof(Elf64_Phdr);
}

bool is_user_elf(const Elf64_Ehdr& header) {
  return is_elf64(header) && header.e_phnum <= kMaxSegments &&
         header.e_phoff <= kPageSize - header.e_phnum * sizeof(Elf64_Phdr);
}

std::optional<UserElf> UserElf::read(const GuestReader& process, GuestVirt begin) {
  UserElf elf;
  elf.begin = begin;
  elf.page.resize(kPageSize);
  if (!process.read(begin, std::as_writable_bytes(std::span(elf.page)))) return std::nullopt;
  const auto page = std::as_bytes(std::span(elf.page));
  const auto header = load_at<Elf64_Ehdr>(page, 0);
  if (!is_user_elf(header)) return std::nullopt;
  std::optional<std::uint64_t> first;  // the image's own address of the file's first byte
  std::uint64_t end = 0;
  std::optional<Elf64_Phdr> dynamic;
  for (std::size_t n = 0; n < header.e_phnum; ++n) {
    const auto segment = load_at<Elf64_Phdr>(page, header.e_phoff + n * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_DYNAMIC) dynamic = segment;
    if (segment.p_type != PT_LOAD) continue;
    if (!first) first = segment.p_vaddr - segment.p_offset;
    end = std::max(end, segment.p_vaddr + segment.p_memsz);
  }
  if (!first || end < *first || end - *first > kMaxImage) return std::nullopt;
  elf.bias = begin.raw() - *first;
  elf.size = end - *first;
  if (dynamic && dynamic->p_vaddr - *first < elf.size) {
    elf.dynamic = dynamic->p_vaddr - *first;
    elf.dynamic_size = std::min({dynamic->p_memsz, kMaxDynamic, elf.size - elf.dynamic});
  }
  return elf;
}

/// Places are distances from the image's begin; those outside it read as absent.
class DynamicSymbols::Reader {
 public:
  Reader(const GuestReader& process, const UserElf& elf) : process_(process), elf_(elf) {}

  DynamicSymbols symbols() {
    DynamicSymbols found;
    find_tables();
    if (symbols_at_ && strings_at_) read_tables(*symbols_at_, *strings_at_, found);
    found.whole_ = whole_;
    return found;
  }

 private:
  void read_tables(std::uint64_t symbols_at, std::uint64_t strings_at, DynamicSymbols& found) {
    std::vector<Elf64_Sym> table(std::min(count_symbols(), kMaxUserSymbols));
    fill(symbols_at, std::as_writable_bytes(std::span(table)));
    found.names_.resize(std::min({strings_size_, kMaxStrings, elf_.size - strings_at}));
    fill(strings_at, std::as_writable_bytes(std::span(found.names_)));
    for (const Elf64_Sym& symbol : table) add(symbol, found);
    sort(found);
    found.bytes_ = table.size() * sizeof(Symbol) + found.names_.size();
  }

  /// Copies what is there, page by page; the rest is zero.
  void fill(std::uint64_t at, std::span<std::byte> out) {
    while (!out.empty()) {
      const GuestVirt from = elf_.begin.wrapping_add(at);
      const std::size_t length = std::min<std::size_t>(out.size(), arch::left_in_page(from.raw()));
      if (at >= elf_.size || length > elf_.size - at || !process_.read(from, out.first(length))) {
        std::ranges::fill(out.first(length), std::byte{0});
        whole_ = false;
      }
      at += length;
      out = out.subspan(length);
    }
  }

  template <class T>
  T get(std::uint64_t at) {
    T value;
    fill(at, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  /// The loader may have put addresses of memory in the place of the image's own.
  std::optional<std::uint64_t> place(std::uint64_t pointer) const {
    for (const std::uint64_t address : {pointer, pointer + elf_.bias}) {
      const std::uint64_t distance = address - elf_.begin.raw();
      if (distance < elf_.size) return distance;
    }
    return std::nullopt;
  }

  void find_tables() {
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= elf_.dynamic_size;
         at += sizeof(Elf64_Dyn)) {
      const auto entry = get<Elf64_Dyn>(elf_.dynamic + at);
      switch (entry.d_tag) {
        case DT_NULL: return;
        case DT_SYMTAB: symbols_at_ = place(entry.d_un.d_ptr); break;
        case DT_STRTAB: strings_at_ = place(entry.d_un.d_ptr); break;
        case DT_STRSZ: strings_size_ = entry.d_un.d_val; break;
        case DT_HASH: hash_at_ = place(entry.d_un.d_ptr); break;
        case DT_GNU_HASH: gnu_hash_at_ = place(entry.d_un.d_ptr); break;
        default: break;
      }
    }
  }

  std::uint64_t count_symbols() {
    if (gnu_hash_at_) return count_by_gnu_hash(*gnu_hash_at_);
    // nbucket, nchain: a chain for each symbol.
    return hash_at_ ? get<std::array<std::uint32_t, 2>>(*hash_at_)[1] : 0;
  }

  /// nbuckets, first symbol, words of the filter, shift; the filter; buckets; chains. The last
  /// bucket's chain ends with the last symbol, whose hash is odd.
  std::uint64_t count_by_gnu_hash(std::uint64_t at) {
    const auto [bucket_count, first, filter_words, shift] = get<std::array<std::uint32_t, 4>>(at);
    if (bucket_count > kMaxBuckets || filter_words > kMaxBloom) return 0;
    const std::uint64_t buckets_at = at + 16 + std::uint64_t{filter_words} * 8;
    std::vector<std::uint32_t> buckets(bucket_count);
    fill(buckets_at, std::as_writable_bytes(std::span(buckets)));
    std::uint64_t last = 0;
    for (const std::uint32_t bucket : buckets) last = std::max<std::uint64_t>(last, bucket);
    if (last < first) return first;  // nothing but what the image takes from others
    const std::uint64_t chains_at = buckets_at + std::uint64_t{bucket_count} * 4;
    while (last < kMaxUserSymbols && whole_ &&
           (get<std::uint32_t>(chains_at + (last - first) * 4) & 1) == 0) {
      ++last;
    }
    return last + 1;
  }

  void add(const Elf64_Sym& symbol, DynamicSymbols& to) const {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!function && type != STT_OBJECT) return;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) return;
    const std::uint64_t distance = symbol.st_value + elf_.bias - elf_.begin.raw();
    if (distance >= elf_.size || symbol.st_name >= to.names_.size()) return;
    const auto name = std::string_view(to.names_).substr(symbol.st_name, kMaxUserSymbolName);
    const std::size_t length = name.find('\0');
    const auto text = name.substr(0, length);
    const auto plain = [](char c) { return c > ' ' && c < 0x7f && c != '`'; };
    if (length == name.npos || length == 0 || !std::ranges::all_of(text, plain)) return;
    to.symbols_.push_back(
        {distance, symbol.st_size, symbol.st_name, static_cast<std::uint32_t>(length), function});
  }

  static void sort(DynamicSymbols& table) {
    const auto rank = [&](const Symbol& symbol) {
      const auto name = std::string_view(table.names_).substr(symbol.name, symbol.length);
      const auto letters = name.find_first_not_of('_');
      const auto underscores = static_cast<std::int64_t>(std::min(letters, name.size()));
      return std::tuple(symbol.begin, symbol.function, -underscores,
                        -static_cast<std::int64_t>(name.size()), name);
    };
    std::ranges::sort(table.symbols_, {}, rank);
  }

  const GuestReader& process_;
  const UserElf& elf_;
  std::optional<std::uint64_t> symbols_at_, strings_at_, hash_at_, gnu_hash_at_;
  std::uint64_t strings_size_ = 0;
  bool whole_ = true;
};

DynamicSymbols DynamicSymbols::read(const GuestReader& process, const UserElf& elf) {
  return Reader(process, elf).symbols();
}

std::optional<DynamicSymbols::Found> DynamicSymbols::at(std::uint64_t distance) const {
  const auto above = std::ranges::upper_bound(symbols_, distance, {}, &Symbol::begin);
  const auto candidates = static_cast<std::size_t>(above - symbols_.begin());
  for (std::size_t n = 0; n < std::min(candidates, kMostNested); ++n) {
    const Symbol& symbol = symbols_[candidates - 1 - n];
    const std::uint64_t offset = distance - symbol.begin;
    if (offset >= std::max<std::uint64_t>(symbol.size, 1)) continue;
    return Found{std::string_view(names_).substr(symbol.name, symbol.length), offset};
  }
  return std::nullopt;
}

}  // namespace ringside::guest_linux
