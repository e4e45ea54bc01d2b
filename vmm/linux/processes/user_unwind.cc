// In this file, top to bottom: layouts, rules in their short form, images, reading an image, the
// walk.
#include "vmm/linux/processes/user_unwind.h"

#include <elf.h>

#include <algorithm>

#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/processes/user_elf.h"

namespace ringside::guest_linux {
namespace {

using arch::kPageSize;

constexpr std::size_t kImages = 32, kRules = 4096;  // powers of two
constexpr std::uint32_t kStepsOfWalk = 1 << 15;
constexpr std::uint32_t kStepsOfMapping = 64;  // as long as it takes to find one
constexpr std::uint64_t kMostVdso = 1 << 16;

constexpr auto kFp = arch::kDwarfFramePointer, kSp = arch::kDwarfStackPointer,
               kPc = arch::kDwarfReturnAddress;

/// Spreads numbers over all bits (the finalizer of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t n) {
  n = (n ^ n >> 30) * 0xbf58'476d'1ce4'e5b9;
  n = (n ^ n >> 27) * 0x94d0'49bb'1331'11eb;
  return n ^ n >> 31;
}

std::uint64_t key_of(const FileIdentity& file) {
  std::uint64_t key = 0;
  for (const std::uint64_t part :
       {file.inode, file.number, file.size, file.changed, file.changed_part}) {
    key = mix(key ^ part);
  }
  return key;
}

}  // namespace

std::optional<UserUnwindLayout> UserUnwindLayout::from(const TypeGraph& types,
                                                       const SymbolTable& symbols) {
  const auto process = ProcessLayout::from(types);
  const auto pages = PageCacheLayout::from(types, symbols);
  if (!process || !pages) return std::nullopt;
  UserUnwindLayout layout{*process, *pages, {}, {}, {}};
  const auto size = number_of(types, "vdso_image", {"size"});
  if (size) {
    layout.vdso_size = *size;
    layout.mm_vdso_image = offset_of(types, "mm_struct", {"context", "vdso_image"});
    layout.vdso_data = offset_of(types, "vdso_image", {"data"});
  }
  return layout;
}

/// The rules of nearly all code, in 32 bytes: the CFA by a register, and the registers that
/// functions save at words below it. Or that there are none.
struct UserUnwinder::ShortRules {
  static constexpr std::array<std::uint8_t, 7> kTracked = {3, kFp, 12, 13, 14, 15, kPc};
  static constexpr std::int16_t kUnchanged = INT16_MAX, kUndefined = INT16_MAX - 1;

  std::uint64_t key = 0;  // 0: an empty place
  std::int32_t cfa_offset = 0;
  std::uint8_t cfa_register = 0;
  bool is_covered = false;
  std::array<std::int16_t, kTracked.size()> words{};  // where, from the CFA

  static ShortRules none(std::uint64_t key) {
    ShortRules result;
    result.key = key;
    return result;
  }
  /// Empty when they have no short form.
  static std::optional<ShortRules> of(const FrameRules& rules, std::uint64_t key) {
    using Kind = RegisterRule::Kind;
    ShortRules result;
    const std::int64_t offset = rules.cfa.value;
    if (rules.is_signal || rules.cfa.kind != Kind::IsOffset) return std::nullopt;
    if (offset < INT32_MIN || offset > INT32_MAX) return std::nullopt;
    result.key = key;
    result.is_covered = true;
    result.cfa_offset = static_cast<std::int32_t>(offset);
    result.cfa_register = rules.cfa_register;
    for (std::size_t n = 0; n < rules.registers.size(); ++n) {
      const RegisterRule& rule = rules.registers[n];
      const auto tracked = std::ranges::find(kTracked, n);
      if (tracked == kTracked.end()) {
        // No caller relies on those.
        if (n != kSp || rule.kind == Kind::Unchanged) continue;
        return std::nullopt;
      }
      std::int16_t& word = result.words[static_cast<std::size_t>(tracked - kTracked.begin())];
      switch (rule.kind) {
        case Kind::Unchanged: word = kUnchanged; break;
        case Kind::Undefined: word = kUndefined; break;
        case Kind::AtOffset:
          if (rule.value % 8 != 0 || rule.value >= 0 || rule.value / 8 < INT16_MIN) {
            return std::nullopt;
          }
          word = static_cast<std::int16_t>(rule.value / 8);
          break;
        default: return std::nullopt;
      }
    }
    if (result.words.back() == kUnchanged) return std::nullopt;
    return result;
  }

  FrameStep step_up(const GuestReader& process, FrameRegisters& registers) const {
    if (words.back() == kUndefined) return FrameStep::Outermost;
    constexpr std::size_t kBlock = 16;  // words that one read takes
    const std::uint64_t cfa =
        registers[cfa_register] + static_cast<std::uint64_t>(std::int64_t{cfa_offset});
    const auto is_read = [](std::int16_t word) { return word < kUndefined; };
    std::int64_t lowest = -1;
    for (const std::int16_t word : words) {
      if (is_read(word)) lowest = std::min<std::int64_t>(lowest, word);
    }
    std::array<std::uint64_t, kBlock> block;
    const bool is_block = -lowest <= static_cast<std::int64_t>(kBlock);
    const auto part = std::span(block).first(is_block ? static_cast<std::size_t>(-lowest) : 0);
    const auto address = [cfa](std::int64_t word) {
      return GuestVirt(cfa + static_cast<std::uint64_t>(word * 8));
    };
    if (is_block && !process.read(address(lowest), std::as_writable_bytes(part))) {
      return FrameStep::Failed;
    }
    for (std::size_t n = 0; n < words.size(); ++n) {
      if (!is_read(words[n])) continue;
      std::uint64_t& value = registers[kTracked[n]];
      if (is_block) {
        value = block[static_cast<std::size_t>(words[n] - lowest)];
      } else if (const auto word = load<std::uint64_t>(process, address(words[n]))) {
        value = *word;
      } else {
        return FrameStep::Failed;
      }
    }
    registers[kSp] = cfa;
    return FrameStep::Up;
  }
};

/// The headers of a file, by its own addresses.
struct UserUnwinder::Image {
  struct Segment {
    std::uint64_t at = 0, offset = 0, size = 0;  // in memory, in the file, bytes
    bool is_code = false;
    bool has_offset(std::uint64_t where) const { return where - offset < size; }
    bool has_page_of(std::uint64_t where) const {
      return where >= round_down(offset, kPageSize) && where < round_up(offset + size, kPageSize);
    }
  };
  enum class Index : std::uint8_t { Unread, None, Known };

  FileIdentity identity;
  std::uint64_t key = 0;    // of the identity; 0: an empty place
  bool is_of_file = false;  // else of what the process has in memory, and not cached
  std::array<Segment, 8> segments;
  std::size_t segment_count = 0;
  std::uint64_t header = 0;  // .eh_frame_hdr
  Index index_state = Index::None;
  EhFrameIndex index;  // without its header's address

  /// By a copy of its first page.
  void read_headers(std::span<const std::byte, kPageSize> page) {
    const auto elf = load_at<Elf64_Ehdr>(page, 0);
    if (!is_user_elf(elf)) return;
    for (std::size_t n = 0; n < elf.e_phnum; ++n) {
      const auto each = load_at<Elf64_Phdr>(page, elf.e_phoff + n * sizeof(Elf64_Phdr));
      if (each.p_type == PT_GNU_EH_FRAME) {
        header = each.p_vaddr;
        index_state = Index::Unread;
      }
      const bool is_loaded = each.p_type == PT_LOAD && each.p_filesz != 0;
      if (!is_loaded || segment_count == segments.size()) continue;
      if (each.p_offset + each.p_filesz < each.p_offset) continue;
      segments[segment_count++] = {each.p_vaddr, each.p_offset, each.p_filesz,
                                   (each.p_flags & PF_X) != 0};
    }
  }
  /// The image's own address of code at this place of the file.
  std::optional<std::uint64_t> code_at(std::uint64_t offset) const {
    const auto all = std::span(segments).first(segment_count);
    const Segment* found = nullptr;
    for (const Segment& each : all) {
      if (!each.is_code) continue;
      if (each.has_offset(offset)) found = &each;
      if (found == nullptr && each.has_page_of(offset)) found = &each;
    }
    if (found == nullptr) return std::nullopt;
    return found->at + (offset - found->offset);
  }
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    for (const Segment& each : std::span(segments).first(segment_count)) {
      if (address - each.at < each.size) return each.offset + (address - each.at);
    }
    return std::nullopt;
  }
};

UserUnwinder::UserUnwinder(const vmm::GuestMemory& memory, const UserUnwindLayout& layout,
                           HostUnwindTables* host)
    : memory_(memory), layout_(layout), host_(host), images_(kImages), rules_(kRules) {}

UserUnwinder::~UserUnwinder() = default;

/// One walk. The guest's other CPUs run, so what is known of mappings is known only during it.
class UserUnwinder::Walk {
 public:
  Walk(UserUnwinder& own, const Process& process) : own_(own), process_(process) {}

  std::size_t run(const Registers& from, std::span<std::uint64_t> frames) {
    for (std::size_t n = 0; n < registers_.size(); ++n) registers_[n] = from.*arch::kByDwarf[n];
    std::size_t count = 0;
    while (count < frames.size() && registers_[kPc] != 0) {
      frames[count++] = registers_[kPc];
      if (count == frames.size() || !go_up()) break;
    }
    return count;
  }

 private:
  /// A file's mapping that has code of the stack.
  struct Mapped {
    FileMapping mapping;
    Image* image = nullptr;         // null: none can be read here
    std::optional<FilePages> file;  // empty: the vdso
    GuestVirt copy;                 // of the vdso, in the kernel
    std::uint64_t copy_size = 0;
    std::uint64_t bias = 0;  // added to the image's own addresses
  };

  /// The image's bytes at the process's addresses: from the file or its copy on the host, else from
  /// the process, which may have changed its own copy. What was read from the process must not be
  /// cached, because rules are used for other processes, too.
  class ImageReader final : public GuestReader {
   public:
    ImageReader(const UserUnwinder& own, const Process& process, const Mapped& mapped)
        : own_(own), process_(process), mapped_(mapped) {}
    Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
      while (!out.empty()) {
        const std::size_t length = std::min<std::size_t>(out.size(), arch::left_in_page(at.raw()));
        const std::size_t done = read_part(at, out.first(length));
        at = at.wrapping_add(done);
        if (done < length) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
        out = out.subspan(length);
      }
      return {};
    }

    bool is_of_file() const { return !used_process_; }

   private:
    /// How many bytes from the first on.
    std::size_t read_part(GuestVirt at, std::span<std::byte> out) const {
      const std::size_t done = read_file(at, out);
      if (done != 0) return done;
      used_process_ = true;
      return read_available(process_.memory, at, out);
    }
    std::size_t read_file(GuestVirt at, std::span<std::byte> out) const {
      const auto offset = mapped_.image->offset_of(at.raw() - mapped_.bias);
      if (!offset) return 0;
      if (mapped_.file) {
        const std::size_t done = mapped_.file->read(*offset, out);
        return done != 0 ? done : read_host(*offset, out);
      }
      if (*offset >= mapped_.copy_size) return 0;
      const auto part = out.first(std::min<std::uint64_t>(out.size(), mapped_.copy_size - *offset));
      return read_available(process_.kernel, mapped_.copy.wrapping_add(*offset), part);
    }
    std::size_t read_host(std::uint64_t offset, std::span<std::byte> out) const {
      if (own_.host_ == nullptr) return 0;
      const FileIdentity& file = mapped_.file->identity();
      const auto tables = own_.host_->tables_of(file);
      if (tables) return *tables != nullptr ? (*tables)->read(offset, out) : 0;
      const auto path =
          file_path_place(process_.kernel, own_.layout_.process, mapped_.mapping.file);
      if (path) own_.host_->want(file, *path);
      return 0;
    }

    const UserUnwinder& own_;
    const Process& process_;
    const Mapped& mapped_;
    mutable bool used_process_ = false;
  };

  bool go_up() {
    const std::uint64_t sp = registers_[kSp];
    bool is_signal = false;
    const auto by_tables = step_by_tables(is_signal);
    if (by_tables) {
      // Where the tables are right, a guess by the frame pointer can only be wrong.
      if (*by_tables != FrameStep::Up) return false;
    } else {
      is_signal = step_by_signal_return();
      if (!is_signal && !step_by_frame_pointer()) return false;
    }
    if (!is_signal && registers_[kSp] <= sp) return false;
    is_after_call_ = !is_signal;
    return !budget_.is_empty();
  }

  /// Empty if there are no rules for this place, or they cannot be read; then nothing has changed.
  std::optional<FrameStep> step_by_tables(bool& is_signal) {
    // A return address may be that of the next function, if the call never returns.
    const GuestVirt pc(registers_[kPc] - (is_after_call_ ? 1 : 0));
    Mapped* const mapped = find(pc);
    if (mapped == nullptr || mapped->image == nullptr) return std::nullopt;
    Image& image = *mapped->image;
    if (image.index_state == Image::Index::None) return std::nullopt;
    const std::uint64_t key =
        std::max<std::uint64_t>(mix(image.key ^ (pc.raw() - mapped->bias)), 1);
    ShortRules& cached = own_.rules_[key % kRules];
    if (cached.key == key && image.is_of_file) {
      ++own_.counts_.cached;
      if (!cached.is_covered) return std::nullopt;
      return cached.step_up(process_.memory, registers_);
    }
    ++own_.counts_.read;
    const ImageReader reader(own_, process_, *mapped);
    const auto index = index_of(*mapped, reader);
    if (!index) return std::nullopt;
    const auto rules = find_frame_rules(reader, *index, pc, budget_);
    const bool may_cache = image.is_of_file && reader.is_of_file();
    if (!rules) {
      if (may_cache && rules.error() == NoRules::NotCovered) cached = ShortRules::none(key);
      return std::nullopt;
    }
    is_signal = rules->is_signal;
    const auto brief = ShortRules::of(*rules, key);
    if (!brief) return step_up(*rules, reader, process_.memory, registers_, budget_);
    if (may_cache) cached = *brief;
    return brief->step_up(process_.memory, registers_);
  }

  /// At the process's addresses.
  static std::optional<EhFrameIndex> index_of(const Mapped& mapped, const ImageReader& reader) {
    Image& image = *mapped.image;
    const GuestVirt header(image.header + mapped.bias);
    if (image.index_state == Image::Index::Known) {
      return EhFrameIndex{header, image.index.first, image.index.count};
    }
    const auto index = EhFrameIndex::read(reader, header);
    if (reader.is_of_file() && (index || index.error().kind != FaultKind::BadAddress)) {
      image.index_state = index ? Image::Index::Known : Image::Index::None;
      if (index) image.index = *index;
    }
    return index ? std::optional(*index) : std::nullopt;
  }

  /// Where a signal handler returns to, without a table.
  bool step_by_signal_return() {
    std::array<std::uint8_t, arch::kSignalReturn.size()> code{};
    const GuestVirt at(registers_[kPc]);
    if (!is_after_call_ || !read_code(at, std::as_writable_bytes(std::span(code)))) return false;
    if (code != arch::kSignalReturn) return false;
    std::array<std::uint64_t, arch::kSignalDwarfNumbers.size()> words{};
    const GuestVirt context(registers_[kSp] + arch::kSignalContext);
    if (!process_.memory.read(context, std::as_writable_bytes(std::span(words)))) return false;
    for (std::size_t n = 0; n < words.size(); ++n) {
      registers_[arch::kSignalDwarfNumbers[n]] = words[n];
    }
    return true;
  }
  /// That page may never have been touched, so that only the page cache has it.
  bool read_code(GuestVirt at, std::span<std::byte> out) {
    if (process_.memory.read(at, out)) return true;
    const Mapped* const mapped = find(at);
    return mapped != nullptr && mapped->image != nullptr &&
           ImageReader(own_, process_, *mapped).read(at, out);
  }

  bool step_by_frame_pointer() {
    const std::uint64_t at = registers_[kFp];
    if (at < registers_[kSp] || at % sizeof(std::uint64_t) != 0) return false;
    const auto frame = load<arch::FrameRecord>(process_.memory, GuestVirt(at));
    if (!frame) return false;
    registers_[kFp] = frame->frame_pointer;
    registers_[kPc] = frame->return_address;
    registers_[kSp] = at + sizeof(arch::FrameRecord);
    return true;
  }

  Mapped* find(GuestVirt pc) {
    for (Mapped& each : std::span(mapped_).first(std::min(mapped_count_, mapped_.size()))) {
      if (each.mapping.begin <= pc && pc < each.mapping.end) return &each;
    }
    if (!budget_.take(kStepsOfMapping)) return nullptr;
    const auto mapping = find_file_mapping(process_.kernel, own_.layout_.process, process_.mm, pc);
    if (!mapping) return nullptr;
    Mapped& place = mapped_[mapped_count_++ % mapped_.size()];
    place = {};
    place.mapping = *mapping;
    place.image = image_of(place);
    if (place.image == nullptr) return &place;
    const std::uint64_t offset = pc.offset_from(mapping->begin) + mapping->offset;
    const auto address = place.image->code_at(offset);
    if (address) {
      place.bias = pc.raw() - *address;
    } else {
      place.image = nullptr;
    }
    return &place;
  }

  /// Opens the mapping's file, and finds or reads the facts of its image.
  Image* image_of(Mapped& mapped) {
    std::optional<FileIdentity> identity;
    if (mapped.mapping.file.raw() == 0) {
      identity = open_vdso(mapped);
    } else {
      mapped.file = FilePages::of_file(own_.memory_, process_.kernel, own_.layout_.pages,
                                       mapped.mapping.file);
      if (mapped.file) identity = mapped.file->identity();
    }
    if (!identity) return nullptr;
    const std::uint64_t key = std::max<std::uint64_t>(key_of(*identity), 1);
    Image& image = own_.images_[key % kImages];
    if (image.key == key && image.identity == *identity) return &image;
    std::array<std::byte, kPageSize> page{};
    const bool is_of_file = read_first_page(mapped, page);
    if (!is_of_file && !read_first_page_of_process(mapped, page)) return nullptr;
    Image& place =
        is_of_file ? image : changed_[static_cast<std::size_t>(&mapped - mapped_.data())];
    // Another mapping of this walk may have had the place.
    for (Mapped& each : mapped_) {
      if (each.image == &place) each = {};
    }
    place = {};
    place.identity = *identity;
    place.key = key;
    place.is_of_file = is_of_file;
    place.read_headers(page);
    return &place;
  }

  std::optional<FileIdentity> open_vdso(Mapped& mapped) {
    const UserUnwindLayout& layout = own_.layout_;
    if (!layout.mm_vdso_image || !layout.vdso_data) return std::nullopt;
    const GuestReader& kernel = process_.kernel;
    const auto image = load_field<std::uint64_t>(kernel, process_.mm, *layout.mm_vdso_image);
    if (!image) return std::nullopt;
    const auto data = load_field<std::uint64_t>(kernel, GuestVirt(*image), *layout.vdso_data);
    const auto size = load_number(kernel, GuestVirt(*image), layout.vdso_size);
    if (!data || !size || *size > kMostVdso) return std::nullopt;
    mapped.copy = GuestVirt(*data);
    mapped.copy_size = *size;
    return FileIdentity{*image, *data, *size, 0, 0};
  }

  bool read_first_page(const Mapped& mapped, std::span<std::byte, kPageSize> page) const {
    if (mapped.file) {
      const std::size_t length = std::min<std::uint64_t>(mapped.file->size(), page.size());
      return mapped.file->read(0, page) == length;
    }
    return mapped.copy_size >= page.size() && process_.kernel.read(mapped.copy, page);
  }
  /// As linkers lay images out, the file lies in memory as one piece.
  bool read_first_page_of_process(const Mapped& mapped,
                                  std::span<std::byte, kPageSize> page) const {
    const std::uint64_t offset = mapped.mapping.offset;
    if (offset > mapped.mapping.begin.raw()) return false;
    return process_.memory.read(mapped.mapping.begin.wrapping_sub(offset), page).has_value();
  }

  UserUnwinder& own_;
  const Process& process_;
  FrameRegisters registers_{};
  bool is_after_call_ = false;
  StepBudget budget_{kStepsOfWalk};
  std::array<Mapped, 4> mapped_;
  std::array<Image, 4> changed_;  // for those of the same number
  std::size_t mapped_count_ = 0;
};

std::size_t UserUnwinder::walk(const Process& process, const Registers& from,
                               std::span<std::uint64_t> frames) {
  return Walk(*this, process).run(from, frames);
}

}  // namespace ringside::guest_linux
