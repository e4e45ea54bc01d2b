// In this file, top to bottom: the file's bytes as guest text, symbols, what Linux adds, the
// kernel, kernel_from_file.
#include "vmm/linux/discovery/file_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "vmm/arch/arch.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/symbols/kallsyms.h"
#include "vmm/linux/text/boot_patches.h"
#include "vmm/linux/text/patched_sites.h"
#include "vmm/linux/text/relocations.h"
#include "vmm/linux/types/btf.h"
#include "vmm/linux/types/type_file.h"

namespace ringside::guest_linux {

namespace {

using arch::kPageSize;
constexpr std::uint32_t kMostSavedCpus = 256;  // cpu_of() looks at all of them

bool is_upper(std::uint64_t address) {
  return arch::in_kernel_half(GuestVirt(address));
}

/// Where `linked` runs. Values below the kernel's half are per-CPU offsets, which do not move.
std::uint64_t moved(std::uint64_t linked, std::int64_t slide) {
  return is_upper(linked) ? linked + static_cast<std::uint64_t>(slide) : linked;
}

class FileText final : public GuestReader {
 public:
  FileText(const vmm::ElfFile& image, Relocations relocations, std::int64_t slide)
      : image_(&image), relocations_(std::move(relocations)), slide_(slide) {}
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    if (image_ == nullptr) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
    const std::uint64_t linked = moved(at.raw(), -slide_);
    const auto done = image_->read(linked, out);
    if (done) {
      relocations_.apply(*image_, linked, out, slide_);
      return {};
    }
    Fault fault = done.error();
    fault.address = moved(fault.address, slide_);
    return Unexpected<Fault>(fault);
  }
  /// Every read fails from here on.
  void forget() {
    image_ = nullptr;
    relocations_ = {};
  }

 private:
  const vmm::ElfFile* image_;
  Relocations relocations_;  // none where nothing moved
  const std::int64_t slide_;
};

class ElfFileKernel final : public FileKernel {
 public:
  /// `image` is that of the file.
  ElfFileKernel(vmm::KernelFile file, vmm::ElfFile image, Relocations relocations, KaslrOffset move)
      : file_(std::move(file)),
        image_(std::move(image)),
        move_(move),
        text_(image_, std::move(relocations), move.slide) {}

  /// Invalid without symbols.
  Result<void> set_up(const TypeFile* types) {
    TRY(load_symbols());
    read_release();
    set_table();
    if (!is_linux()) return {};
    TRY(load_types(types));
    TRY(load_text());
    current_offset_ = current_offset(symbols_, types_);
    return {};
  }

  bool is_linux() const override { return !release_.empty(); }
  const GuestReader& text() const override { return text_; }
  std::optional<GuestPhys> loaded_at(GuestVirt at) const override {
    const auto linked_at = image_.physical(linked(at));
    if (!linked_at) return std::nullopt;
    return GuestPhys(*linked_at + static_cast<std::uint64_t>(move_.physical_slide));
  }
  const std::optional<std::vector<PatchedSite>>& patched_at_boot() const override {
    return boot_patches_;
  }
  std::optional<AddressRange> init_text() const override {
    const Symbol* begin = find("_sinittext");
    const Symbol* end = find("_einittext");
    if (begin == nullptr || end == nullptr) return std::nullopt;
    return AddressRange{begin->address, end->address};
  }

  vmm::PageTable table_in(const vmm::GuestMemory& memory) const override;

  std::string_view release() const override { return release_; }
  const vmm::PageTable& table() const override { return table_; }
  const SymbolTable& symbols() const override { return symbols_; }
  const TypeGraph& types() const override { return types_; }
  const KernelLayout& layout() const override { return layout_; }
  std::optional<TypeId> prototype(const Symbol& function) const override {
    return btf_.prototype(function.name);
  }
  std::span<const std::uint64_t> percpu_bases() const override { return *percpu_.load(); }
  std::optional<std::uint16_t> module_of(TypeId type) const override {
    return btf_.has(type) ? std::optional<std::uint16_t>(0) : std::nullopt;
  }
  std::optional<std::uint32_t> cpu_of(GuestVirt percpu_base) const override {
    const auto bases = percpu_bases();
    const auto found = std::find(bases.begin(), bases.end(), percpu_base.raw());
    if (found == bases.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - bases.begin());
  }
  bool learn_cpus(const GuestReader& live) override;
  Result<GuestVirt, Fault> current_task(const GuestReader& kernel,
                                        GuestVirt percpu_base) const override {
    if (!current_offset_) return Unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
    // Before the per-CPU areas are set up, the base leads to the one that the image carries.
    const GuestVirt at = percpu_base.wrapping_add(*current_offset_);
    return GuestVirt(TRY(load<std::uint64_t>(kernel, at)));
  }
  Result<bool> refresh_modules() override { return false; }
  std::span<const AddressRange> forbidden_text() const override { return forbidden_; }
  std::span<const PatchedSite> patched_sites() const override { return sites_; }
  void end_set_up() override;

 private:
  const Symbol* find(std::string_view name) const { return symbols_.find(name); }
  std::uint64_t linked(GuestVirt at) const { return moved(at.raw(), -move_.slide); }

  Result<void> load_symbols();
  std::vector<Symbol> elf_symbols();
  std::optional<Kallsyms> find_kallsyms() const;
  void add_module(std::vector<Symbol> symbols);
  void leave_out_user_programs(std::vector<Symbol>& symbols) const;
  void read_release();
  void set_table();
  Result<void> load_types(const TypeFile* types);
  Result<void> load_text();
  ImageView table_between(std::string_view start, std::string_view stop) const;
  Result<ImageView> table_of(const BoundedPart& part) const;

  std::optional<vmm::KernelFile> file_;  // until end_set_up()
  vmm::ElfFile image_;
  const KaslrOffset move_;
  FileText text_;
  std::string release_;  // empty: no Linux
  SymbolTable symbols_;
  vmm::PageTable table_;
  std::optional<GuestPhys> fourth_level_;  // the table below the root of five levels
  TypeGraph types_;
  Btf btf_;
  KernelLayout layout_;
  std::optional<std::uint64_t> current_offset_;
  // Each table that was learned: firings on other vCPUs may still use an earlier one.
  std::deque<std::vector<std::uint64_t>> learned_{1};
  std::atomic<const std::vector<std::uint64_t>*> percpu_ = &learned_.front();
  std::vector<AddressRange> forbidden_;
  std::vector<PatchedSite> sites_;
  std::optional<std::vector<PatchedSite>> boot_patches_;
};

std::vector<Symbol> ElfFileKernel::elf_symbols() {
  const auto found = image_.symbols();
  std::size_t size = 0;
  for (const vmm::ElfFile::Symbol& symbol : found) size += symbol.name.size();
  const auto names = std::make_shared<std::string>();
  names->reserve(size);  // the symbols' names view into it, and outlive the file
  std::vector<Symbol> symbols;
  symbols.reserve(found.size());
  for (const vmm::ElfFile::Symbol& symbol : found) {
    const std::size_t at = names->size();
    *names += symbol.name;
    symbols.push_back({GuestVirt(symbol.address), symbol.size, std::string_view(*names).substr(at),
                       symbol.type, 0});
  }
  symbols_.adopt(names);
  return symbols;
}

/// Distributions strip the ELF table, but the kernel carries its own for its messages.
std::optional<Kallsyms> ElfFileKernel::find_kallsyms() const {
  const vmm::ElfFile::Section* named = image_.section(".text");
  for (const vmm::ElfFile::Segment& text : image_.segments()) {
    if (!text.executable || !is_upper(text.address)) continue;
    const GuestVirt stext(named != nullptr ? named->address : text.address);
    for (const vmm::ElfFile::Segment& holder : image_.segments()) {
      auto found = scan_for_kallsyms({GuestVirt(holder.address), holder.bytes}, stext);
      if (found) return std::move(*found);
    }
    break;  // the first one is the kernel's text; the others are freed after boot
  }
  return std::nullopt;
}

Result<void> ElfFileKernel::load_symbols() {
  std::vector<Symbol> symbols = elf_symbols();
  if (symbols.empty()) {
    auto kallsyms = find_kallsyms();
    if (!kallsyms) return fail(ErrorCode::Unsupported, "it has no symbols");
    symbols_.adopt(kallsyms->names);
    symbols = std::move(kallsyms->symbols);
  }
  add_module(std::move(symbols));
  return {};
}

/// A kernel of the upper half may carry programs for the lower one. Code of the kernel's own there
/// runs before it pages, where it was loaded.
void ElfFileKernel::leave_out_user_programs(std::vector<Symbol>& symbols) const {
  const auto& segments = image_.segments();
  if (std::none_of(segments.begin(), segments.end(), [&](const vmm::ElfFile::Segment& segment) {
        return segment.executable && is_upper(segment.address);
      })) {
    return;
  }
  for (Symbol& symbol : symbols) {
    const std::uint64_t address = symbol.address.raw();
    if (!is_upper(address) && image_.physical(address) != address) symbol.type = 'n';
  }
}

void ElfFileKernel::add_module(std::vector<Symbol> symbols) {
  const auto named = [&](std::string_view name) -> std::optional<std::uint64_t> {
    const auto found = std::find_if(symbols.begin(), symbols.end(),
                                    [&](const Symbol& symbol) { return symbol.name == name; });
    return found == symbols.end() ? std::nullopt : std::optional(found->address.raw());
  };
  const bool is_linux = named("linux_banner").has_value();
  Module module;
  module.name = is_linux ? "vmlinux" : "kernel";
  const auto stext = named("_stext");
  // Init text too: it is there while the kernel boots.
  const auto end = std::max(named("_etext"), named("_einittext"));
  if (stext && end && *end > *stext) {
    module.text_base = GuestVirt(moved(*stext, move_.slide));
    module.text_size = *end - *stext;
  } else {
    for (const vmm::ElfFile::Segment& segment : image_.segments()) {
      if (!segment.executable) continue;
      module.text_base = GuestVirt(moved(segment.address, move_.slide));
      module.text_size = segment.size;
      break;
    }
  }
  for (Symbol& symbol : symbols) {
    symbol.address = GuestVirt(moved(symbol.address.raw(), move_.slide));
  }
  if (!is_linux) {
    leave_out_user_programs(symbols);
    symbols_.accept_low_addresses();
  }
  symbols_.add_module(std::move(module), std::move(symbols));
  symbols_.seal();
}

bool ElfFileKernel::learn_cpus(const GuestReader& live) {
  const Symbol* count = find("nr_cpu_ids");
  const Symbol* offsets = find("__per_cpu_offset");
  if (!is_linux() || count == nullptr || offsets == nullptr) return false;
  const auto cpus = load<std::uint32_t>(live, count->address);
  if (!cpus || *cpus == 0 || *cpus > kMostSavedCpus) return false;
  std::vector<std::uint64_t> bases(*cpus);
  if (!live.read(offsets->address, std::as_writable_bytes(std::span(bases)))) return false;
  percpu_.store(&learned_.emplace_back(std::move(bases)));
  return true;
}

/// "Linux version 6.1.0-56-cloud-amd64 (..." (init/version.c).
void ElfFileKernel::read_release() {
  constexpr std::size_t kLongest = 96;
  const Symbol* banner = find("linux_banner");
  const auto bytes = banner != nullptr
                         ? image_.bytes_at(linked(banner->address), kBannerStart.size() + kLongest)
                         : std::nullopt;
  if (!bytes) return;
  // SAFETY: char may alias any bytes; the span lies inside the file.
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!text.starts_with(kBannerStart)) return;
  const std::string_view rest = text.substr(kBannerStart.size());
  const std::string_view word = rest.substr(0, rest.find(' '));
  const bool plain =
      std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (plain && word.size() < kLongest) release_ = word;
}

void ElfFileKernel::set_table() {
  const Symbol* root = find("init_top_pgt");
  const auto physical = root != nullptr ? loaded_at(root->address) : std::nullopt;
  // Nowhere in RAM, so that reads through it fail, where the page table is not known.
  table_.root = physical && is_linux() ? *physical : arch::kNoRoot;
  const Symbol* fourth = find("level4_kernel_pgt");
  if (fourth != nullptr) fourth_level_ = loaded_at(fourth->address);
}

/// The image is mapped by the last entry, which __startup_64() points at level4_kernel_pgt or, with
/// four levels, at level3_kernel_pgt (arch/x86/kernel/head64.c, 4.14 and later).
vmm::PageTable ElfFileKernel::table_in(const vmm::GuestMemory& memory) const {
  constexpr std::uint64_t kLastEntry = kPageSize - 8;
  vmm::PageTable table = table_;
  const auto entry = memory.load64(table.root.wrapping_add(kLastEntry));
  if (entry && fourth_level_ == GuestPhys(*entry & arch::pte::kAddress)) table.levels = 5;
  return table;
}

/// A table of the image between two symbols; empty when the file does not have it.
ImageView ElfFileKernel::table_between(std::string_view start, std::string_view stop) const {
  const Symbol* begin = find(start);
  const Symbol* end = find(stop);
  if (begin == nullptr || end == nullptr || end->address <= begin->address) return {};
  const std::uint64_t size = end->address.offset_from(begin->address);
  const auto bytes = image_.bytes_at(linked(begin->address), size);
  if (!bytes) return {};
  return {begin->address, *bytes};
}

/// The same for a table of places that must not be probed, which must be there if the kernel has
/// it.
Result<ImageView> ElfFileKernel::table_of(const BoundedPart& part) const {
  const auto range = TRY(find_part(symbols_, part));
  if (!range) return ImageView{};
  const ImageView table = table_between(part.begin, part.end);
  if (table.bytes.empty()) {
    return fail(ErrorCode::Invalid,
                fmt::format("the kernel has {}, but the file does not hold them", part.what));
  }
  return table;
}

/// A kernel without types can be traced all the same, by arg0 and its like.
Result<void> ElfFileKernel::load_types(const TypeFile* types) {
  if (types != nullptr) {
    btf_ = TRY(types->read_for({symbols_, text_, release_}, types_));
    layout_ = read_layout(types_);
    return {};
  }
  auto blob = table_between("__start_BTF", "__stop_BTF").bytes;
  if (blob.empty()) return {};
  auto btf = Btf::read(blob, nullptr, types_);
  if (!btf) {
    note_omission(
        fmt::format("the kernel's types cannot be read ({}): --types FILE takes them "
                    "from the vmlinux of this build",
                    btf.error().message));
    return {};
  }
  btf_ = std::move(*btf);
  layout_ = read_layout(types_);
  return {};
}

Result<void> ElfFileKernel::load_text() {
  forbidden_ = TRY(forbidden_ranges(symbols_, InitText::Allowed));
  const Module& vmlinux = symbols_.modules()[0];
  const TextBounds bounds{&text_, AddressRange::of(vmlinux.text_base, vmlinux.text_size)};
  const ImageView labels = TRY(table_of(kJumpLabels));
  const ImageView calls = TRY(table_of(kStaticCalls));
  collect_jump_labels(labels, bounds, sites_);
  collect_static_calls(calls, bounds, sites_);
  collect_static_call_trampolines(symbols_.symbols(), bounds, sites_);
  std::sort(sites_.begin(), sites_.end(),
            [](const PatchedSite& a, const PatchedSite& b) { return a.address < b.address; });
  boot_patches_ = find_boot_patches(image_, types_);
  if (!boot_patches_) return {};
  for (PatchedSite& site : *boot_patches_) {
    site.address = GuestVirt(moved(site.address.raw(), move_.slide));
  }
  return {};
}

void ElfFileKernel::end_set_up() {
  text_.forget();
  image_.forget_bytes();
  file_.reset();
  types_ = TypeGraph();
  btf_ = Btf();
  sites_ = {};
  boot_patches_.reset();
}

}  // namespace

Result<std::unique_ptr<FileKernel>> kernel_from_file(const vmm::KernelFile& file, KaslrOffset move,
                                                     const TypeFile* types) {
  const auto bytes = TRY(file.elf());
  const auto blame = [&](Error error) {
    return fail(error.code, fmt::format("cannot trace {} from its first instruction: {}; trace it "
                                        "once it has booted, with --after-boot",
                                        file.name(), error.message));
  };
  auto image = vmm::ElfFile::parse(bytes);
  if (!image) return blame(std::move(image).error());
  Relocations relocations;
  if (move.slide != 0) relocations = Relocations::parse(bytes, *image);
  auto kernel =
      std::make_unique<ElfFileKernel>(file, std::move(*image), std::move(relocations), move);
  if (auto done = kernel->set_up(types); !done) return blame(std::move(done).error());
  return kernel;
}

}  // namespace ringside::guest_linux
