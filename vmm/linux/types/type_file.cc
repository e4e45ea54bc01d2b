// In this file, top to bottom: reading the file, comparing builds, comparing layouts.
#include "vmm/linux/types/type_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <span>
#include <string>

#include "vmm/arch/arch.h"
#include "vmm/base/printable.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/types/kernel_identity.h"
#include "vmm/linux/types/types_without_btf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint16_t kBtfMagic = 0xeb9f;
constexpr std::string_view kBtfSection = ".BTF", kNoteSection = ".notes";

tl::unexpected<Error> unfit(const std::string& path, std::string_view what) {
  return fail(ErrorCode::Invalid, fmt::format("--types {}: {}", path, what));
}

/// The whole file, if it is BTF alone; empty for another one. In sysfs it has no size.
Result<std::vector<std::byte>> read_btf_alone(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, sizeof kBtfMagic> magic{};
  if (!file.read(magic.data(), magic.size())) return std::vector<std::byte>();
  std::uint16_t first = 0;
  std::memcpy(&first, magic.data(), sizeof first);
  if (first != kBtfMagic) return std::vector<std::byte>();
  std::vector<char> bytes(magic.begin(), magic.end());
  std::array<char, 64 << 10> piece{};
  while (file.read(piece.data(), piece.size()) || file.gcount() != 0) {
    bytes.insert(bytes.end(), piece.data(), piece.data() + file.gcount());
    if (bytes.size() > kMaxBtfBytes) return unfit(path, "too large for the types of a kernel");
  }
  const auto all = std::as_bytes(std::span(bytes));
  return std::vector<std::byte>(all.begin(), all.end());
}

/// Of the kernel in the guest; empty when it cannot be read.
std::string banner_of(const SymbolTable& symbols, const GuestReader& memory) {
  constexpr std::size_t kMostBanner = 1024;
  const Symbol* const symbol = symbols.find("linux_banner", "vmlinux");
  if (symbol == nullptr) return {};
  std::string text(kMostBanner, '\0');
  text.resize(read_available(memory, symbol->address, std::as_writable_bytes(std::span(text))));
  text.resize(std::min(text.find('\0'), text.size()));
  return text.starts_with(kBannerStart) ? text : std::string();
}

bool contains(std::span<const std::byte> bytes, std::string_view text) {
  return ::memmem(bytes.data(), bytes.size(), text.data(), text.size()) != nullptr;
}

/// Enough of VMCOREINFO must be in the types, or nothing was compared.
constexpr std::size_t kLeastCompared = 8;
/// Compilers and pahole rename or leave out a few functions and variables of one build.
constexpr std::size_t kMostUnknownOfHundred = 5;

struct Comparison {
  std::size_t compared = 0;
  std::string difference;  // the first one
};

/// "SIZE(page)=64" or "OFFSET(page.flags)=0"; others are passed by.
void compare_line(std::string_view line, const VmcoreInfo& info, const TypeGraph& types,
                  Comparison& comparison) {
  const std::size_t open = line.find('('), close = line.find(")=");
  if (open == line.npos || close == line.npos || close < open) return;
  const std::string_view kind = line.substr(0, open);
  const std::string_view what = line.substr(open + 1, close - open - 1);
  std::optional<std::uint64_t> told, known;
  const std::size_t dot = what.find('.');
  if (kind == "SIZE") {
    told = info.size(what);
    const auto type = types.find(TypeKind::Struct, what);
    if (type) known = types.size_of(*type);
  } else if (kind == "OFFSET" && dot != what.npos) {
    const auto offset = info.offset(what);
    if (offset && *offset >= 0) told = static_cast<std::uint64_t>(*offset);
    known = offset_of(types, what.substr(0, dot), {what.substr(dot + 1)});
  }
  if (!told || !known) return;
  ++comparison.compared;
  if (*told == *known || !comparison.difference.empty()) return;
  comparison.difference =
      fmt::format("{} of {} is {} in the file, and {} in the guest",
                  kind == "SIZE" ? "the size" : "the offset", what, *known, *told);
}

Comparison compare_vmcoreinfo(const VmcoreInfo& info, const TypeGraph& types) {
  Comparison comparison;
  std::string_view rest = info.text();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    compare_line(rest.substr(0, end), info, types, comparison);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return comparison;
}

/// Empty when they agree, or the guest does not show its tasks.
std::string compare_task(const SymbolTable& symbols, const GuestReader& memory,
                         const TypeGraph& types) {
  const Symbol* const first = symbols.find("init_task", "vmlinux");
  const auto told = first != nullptr ? find_task_offsets(memory, first->address) : std::nullopt;
  if (!told) return {};
  const KernelLayout layout = read_layout(types);
  const bool same = layout.task_comm == told->comm && layout.task_pid == told->pid &&
                    layout.task_tgid == told->tgid && layout.task_real_parent == told->real_parent;
  return same ? std::string() : "its struct task_struct is not the guest's";
}

bool too_many(std::size_t unknown, std::size_t all) {
  return unknown * 100 > all * kMostUnknownOfHundred;
}

std::string compare_names(const SymbolTable& symbols, const Btf& btf) {
  const auto functions = btf.count_functions(
      [&](std::string_view name) { return symbols.find(name, "vmlinux") != nullptr; });
  if (functions.all == 0 || too_many(functions.all - functions.known, functions.all)) {
    return fmt::format("only {} of its {} functions are the guest's", functions.known,
                       functions.all);
  }
  const Symbol* const start = symbols.find("__per_cpu_start", "vmlinux");
  const auto percpu = btf.percpu_variables();
  const auto moved = std::ranges::count_if(percpu, [&](const Btf::PercpuVariable& variable) {
    const Symbol* const symbol = symbols.find(variable.name, "vmlinux");
    return symbol == nullptr || start == nullptr ||
           symbol->address.wrapping_sub(start->address.raw()).raw() != variable.offset;
  });
  if (!too_many(static_cast<std::size_t>(moved), percpu.size())) return {};
  return fmt::format("{} of its {} per-CPU variables are elsewhere in the guest", moved,
                     percpu.size());
}

}  // namespace

Result<TypeFile> TypeFile::open(const std::string& path) {
  auto alone = TRY(read_btf_alone(path));
  if (!alone.empty()) return TypeFile(path, std::move(alone));
  auto kernel = vmm::KernelFile::open(path);
  if (!kernel) {
    return fail(kernel.error().code,
                fmt::format("--types takes a vmlinux, or BTF alone: {}", kernel.error().message));
  }
  const auto image = TRY(vmm::ElfFile::parse(TRY(kernel->elf())));
  const auto* const types = image.section(kBtfSection);
  if (types == nullptr || types->bytes.empty()) {
    return unfit(path,
                 "it has no types (section .BTF): take a vmlinux that was built with "
                 "CONFIG_DEBUG_INFO_BTF=y, or add them to one with DWARF by `pahole -J`");
  }
  if (types->bytes.size() > kMaxBtfBytes) return unfit(path, "its section .BTF is too large");
  TypeFile file(path, {types->bytes.begin(), types->bytes.end()});
  if (const auto* const notes = image.section(kNoteSection)) {
    file.build_id_ = build_id_in(notes->bytes);
  }
  file.kernel_ = std::move(*kernel);
  return file;
}

Result<std::optional<TypeFile>> TypeFile::open_if_named(const std::string& path) {
  if (path.empty()) return std::optional<TypeFile>();
  return std::optional(TRY(open(path)));
}

Result<void> TypeFile::compare_build(const Guest& guest) const {
  if (!kernel_) return {};
  const std::string running = find_build_id(guest.symbols, guest.memory);
  if (!running.empty() && !build_id_.empty()) {
    if (running == build_id_) return {};
    return unfit(path_, fmt::format("it is another build than the guest's kernel {}: its build id "
                                    "is {}, and the guest's {}",
                                    guest.release, build_id_, running));
  }
  const std::string banner = banner_of(guest.symbols, guest.memory);
  if (!banner.empty() && contains(TRY(kernel_->elf()), banner)) return {};
  return unfit(path_, fmt::format("it is not the guest's kernel, whose banner it does not have "
                                  "(\"{}\")",
                                  printable(banner)));
}

Result<void> TypeFile::compare_layouts(const Guest& guest, const Btf& btf,
                                       const TypeGraph& types) const {
  const auto other = [&](const std::string& difference) {
    return unfit(path_, fmt::format("it has the types of another build than the guest's kernel {}: "
                                    "{}",
                                    guest.release, difference));
  };
  if (!has_kernel_types(types)) return unfit(path_, "it does not have the types of a kernel");
  if (guest.info != nullptr) {
    const Comparison compared = compare_vmcoreinfo(*guest.info, types);
    if (!compared.difference.empty()) return other(compared.difference);
    if (compared.compared < kLeastCompared) {
      return other("too little of it can be compared with what the guest's VMCOREINFO tells");
    }
    const std::string task = compare_task(guest.symbols, guest.memory, types);
    if (!task.empty()) return other(task);
  }
  const std::string names = compare_names(guest.symbols, btf);
  return names.empty() ? Result<void>() : other(names);
}

Result<Btf> TypeFile::read_for(const Guest& guest, TypeGraph& types) const {
  TRY(compare_build(guest));
  auto btf = Btf::read(btf_, nullptr, types);
  if (!btf) return unfit(path_, btf.error().message);
  TRY(compare_layouts(guest, *btf, types));
  return btf;
}

}  // namespace ringside::guest_linux
