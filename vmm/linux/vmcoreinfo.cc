// Finding and parsing VMCOREINFO. In this file: the text, then the scan.
// Guarantees: at most two pages are read for a page whose start looks right; nothing is trusted
// beyond its syntax.
#include "vmm/linux/vmcoreinfo.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/linux/kernel.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

namespace {

constexpr std::string_view kFirstKey = "OSRELEASE=";
using arch::kPageSize;
constexpr std::size_t kMaxNote = kPageSize;  // VMCOREINFO_BYTES is one page in every kernel
constexpr std::size_t kNoteHeader = 24;      // ELF note: 3 words, name padded to 12

bool is_printable(char c) {
  return c == '\n' || (c >= 0x20 && c < 0x7f);
}

/// Page starts that are read together: where RAM is not mapped, each read is a system call.
class PageHeads {
 public:
  static constexpr std::size_t kMost = 64;

  /// Bytes that cannot be read are zero.
  void read(const vmm::GuestMemory& memory, GuestPhys first, std::size_t pages) {
    std::array<vmm::GuestMemory::Part, kMost> parts;
    for (std::size_t i = 0; i < pages; ++i) {
      parts[i] = {first.wrapping_add(i * kPageSize), std::as_writable_bytes(std::span(heads_[i]))};
    }
    if (memory.read_each(std::span(parts).first(pages))) return;
    for (std::size_t i = 0; i < pages; ++i) {
      if (!memory.read(parts[i].at, parts[i].out)) heads_[i] = {};
    }
  }
  std::span<const char> operator[](std::size_t page) const { return heads_[page]; }

 private:
  std::array<std::array<char, kNoteHeader>, kMost> heads_{};
};

std::vector<VmcoreInfo> crashed_last(std::vector<VmcoreInfo> infos) {
  std::ranges::stable_sort(infos, {}, &VmcoreInfo::has_crashed);
  return infos;
}

bool is_note(std::span<const char> head) {
  std::uint32_t name_size = 0;
  std::memcpy(&name_size, head.data(), sizeof name_size);
  return name_size == 11 && std::memcmp(head.data() + 12, "VMCOREINFO", 11) == 0;
}

}  // namespace

std::optional<VmcoreInfo> VmcoreInfo::parse(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  if (!text.starts_with(kFirstKey) || !std::all_of(text.begin(), text.end(), is_printable)) {
    return std::nullopt;
  }
  VmcoreInfo info;
  info.text_ = text;
  if (const std::size_t at = text.find("\nCRASHTIME="); at != text.npos) {
    info.has_crashed_ = true;
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    info.text_.erase(at, end - at);
  }
  info.release_ = text.substr(kFirstKey.size(), text.find('\n') - kFirstKey.size());
  const bool complete = !info.release_.empty() && info.symbol("_stext") &&
                        info.symbol("swapper_pg_dir") && info.symbol("init_uts_ns") &&
                        info.number("phys_base");
  if (!complete) return std::nullopt;
  return info;
}

std::optional<std::string_view> VmcoreInfo::value(std::string_view kind,
                                                  std::string_view name) const {
  const std::string key = '\n' + std::string(kind) + '(' + std::string(name) + ")=";
  const std::size_t found = text_.find(key);
  if (found == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(text_).substr(found + key.size());
  return rest.substr(0, rest.find('\n'));
}

std::optional<GuestVirt> VmcoreInfo::symbol(std::string_view name) const {
  const auto text = value("SYMBOL", name);
  if (!text) return std::nullopt;
  const auto address = parse_number<std::uint64_t>(*text, 16);
  if (!address) return std::nullopt;
  return GuestVirt(*address);
}

std::optional<std::int64_t> VmcoreInfo::number(std::string_view name) const {
  const auto text = value("NUMBER", name);
  return text ? parse_number<std::int64_t>(*text, 10) : std::nullopt;
}

std::optional<std::int64_t> VmcoreInfo::offset(std::string_view name) const {
  const auto text = value("OFFSET", name);
  return text ? parse_number<std::int64_t>(*text, 10) : std::nullopt;
}

std::optional<std::uint64_t> VmcoreInfo::size(std::string_view name) const {
  const auto text = value("SIZE", name);
  return text ? parse_number<std::uint64_t>(*text, 10) : std::nullopt;
}

GuestVirt VmcoreInfo::names() const {
  // Before 5.11 struct uts_namespace began with a kref, and the text did not say where its name is.
  constexpr std::int64_t kAfterKref = 4;
  const std::int64_t name = offset("uts_namespace.name").value_or(kAfterKref);
  return symbol("init_uts_ns")->wrapping_add(static_cast<std::uint64_t>(name));
}

std::vector<VmcoreInfo> find_vmcoreinfo(const vmm::GuestMemory& memory,
                                        const VmcoreInfoFilter& wanted) {
  std::vector<VmcoreInfo> found;
  const auto consider = [&](GuestPhys page, std::size_t skip) {
    std::array<char, kMaxNote> text{};
    // A note's text may run into the next page, which need not be RAM: take what there is.
    const std::size_t in_page = kPageSize - skip;
    const std::span bytes = std::as_writable_bytes(std::span(text));
    if (!memory.read(page.wrapping_add(skip), bytes.first(in_page))) return;
    if (skip > 0 && !memory.read(page.wrapping_add(kPageSize), bytes.subspan(in_page))) {
      std::fill(text.begin() + static_cast<std::ptrdiff_t>(in_page), text.end(), '\0');
    }
    auto info = VmcoreInfo::parse(std::string_view(text.data(), text.size()));
    if (!info || !wanted(*info)) return;
    const auto known = std::ranges::find(found, info->text(), &VmcoreInfo::text);
    if (known == found.end()) {
      found.push_back(std::move(*info));
    } else if (info->has_crashed()) {
      known->note_crashed();
    }
  };
  PageHeads heads;
  for (const auto& extent : memory.present_extents()) {
    for (std::uint64_t at = 0; at + kPageSize <= extent.size;) {
      const std::size_t pages =
          std::min<std::uint64_t>(PageHeads::kMost, (extent.size - at) / kPageSize);
      heads.read(memory, extent.base.wrapping_add(at), pages);
      for (std::size_t i = 0; i < pages; ++i, at += kPageSize) {
        const std::span<const char> head = heads[i];
        const GuestPhys page = extent.base.wrapping_add(at);
        if (std::string_view(head.data(), head.size()).starts_with(kFirstKey)) consider(page, 0);
        if (is_note(head)) consider(page, kNoteHeader);
        if (found.size() >= kMostVmcoreInfos) return crashed_last(std::move(found));
      }
    }
  }
  return crashed_last(std::move(found));
}

std::string read_vmcoreinfo(const vmm::GuestMemory& memory, const Kernel& kernel) {
  const vmm::PageTableReader reader(memory, kernel.table());
  const auto word = [&](std::string_view name) -> std::uint64_t {
    const Symbol* symbol = kernel.symbols().find(name, "vmlinux");
    return symbol != nullptr ? load<std::uint64_t>(reader, symbol->address).value_or(0) : 0;
  };
  const GuestVirt data(word("vmcoreinfo_data"));
  std::string text(std::min<std::uint64_t>(word("vmcoreinfo_size"), kMaxNote), '\0');
  if (!reader.read(data, std::as_writable_bytes(std::span(text)))) return {};
  const auto info = VmcoreInfo::parse(text);
  return info ? info->text() : std::string();
}

}  // namespace ringside::guest_linux
