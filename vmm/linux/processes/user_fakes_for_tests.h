// Processes for tests: a kernel's list of tasks with their mappings in a maple tree, and a shared
// library as the loader leaves it in memory.
// Not linked into the product.
#pragma once

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::guest_linux::fakes {

/// Guest virtual memory of which only the pages that something was put into exist.
class PagedGuest final : public GuestReader {
 public:
  template <class T>
  void put(std::uint64_t at, const T& value) {
    for (const std::byte byte : std::as_bytes(std::span(&value, 1))) place(at++) = byte;
  }
  void put_text(std::uint64_t at, std::string_view text) {
    for (const char c : text) place(at++) = static_cast<std::byte>(c);
    place(at) = std::byte{0};
  }
  void remove_page(std::uint64_t at) { pages_.erase(at / kPage); }
  /// By their numbers.
  const auto& pages() const { return pages_; }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    for (std::uint64_t from = at.raw(); !out.empty();) {
      const auto page = pages_.find(from / kPage);
      if (page == pages_.end()) return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, from});
      const auto part = std::span(page->second).subspan(from % kPage);
      const std::size_t length = std::min(part.size(), out.size());
      std::ranges::copy(part.first(length), out.begin());
      out = out.subspan(length);
      from += length;
    }
    return {};
  }

  mutable unsigned reads = 0;  // so many were tried

 private:
  static constexpr std::uint64_t kPage = 4096;
  std::byte& place(std::uint64_t at) { return pages_[at / kPage][at % kPage]; }
  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;
};

inline constexpr std::uint64_t kKernel = 0xffff'8880'0000'0000;
inline constexpr std::uint64_t kInitTask = kKernel + 0x1000;

inline ProcessLayout process_layout() {
  ProcessLayout layout{};
  layout.task_tasks = 0x10, layout.task_tgid = 0x20, layout.task_mm = 0x28;
  layout.mm_root = 0x8, layout.mm_pgd = 0x10, layout.mm_vdso = 0x18;
  layout.area_begin = 0, layout.area_end = 8, layout.area_offset = 16, layout.area_file = 24;
  layout.file_dentry = 8, layout.dentry_length = 8, layout.dentry_name = 16;
  layout.range = {8, 15, 128, 16};
  layout.arange = {8, 9, 80, 10};
  layout.threads = {.task_tasks = 0x10,
                    .task_signal = 0x30,
                    .task_thread_node = 0x38,
                    .signal_thread_head = 0x10};
  return layout;
}

/// The kernel's types that say so, and how it finds the mappings of a file. `lock`: the member by
/// which struct rw_semaphore tells who holds it.
inline BtfWriter process_types(std::string_view lock = "count") {
  BtfWriter btf;
  const std::uint32_t word = btf.integer("unsigned long", 8, false);
  const auto words = [&](std::uint32_t count) {
    const std::uint32_t id = btf.type(3, "", 0);  // BTF_KIND_ARRAY
    btf.word(word).word(word).word(count);
    return id;
  };
  const auto add = [&btf](std::string_view name, std::vector<BtfWriter::Field> fields) {
    for (BtfWriter::Field& field : fields) field.offset *= 8;
    return btf.structure(name, 0x100, std::move(fields));
  };
  const std::uint32_t tree = add("maple_tree", {{"ma_root", word, 0}});
  const std::uint32_t context = add("mm_context", {{"vdso", word, 0}});
  const std::uint32_t path = add("path", {{"dentry", word, 0}});
  const std::uint32_t name = add("qstr", {{"len", word, 0}, {"name", word, 8}});
  const std::uint32_t number = btf.integer("int", 4, true);
  add("task_struct", {{"on_cpu", number, 0x08},
                      {"tasks", word, 0x10},
                      {"tgid", word, 0x20},
                      {"mm", word, 0x28},
                      {"signal", word, 0x30},
                      {"thread_node", word, 0x38},
                      {"stack", word, 0x48},
                      {"nvcsw", word, 0x50},
                      {"nivcsw", word, 0x58},
                      {"start_time", word, 0x60}});
  add("signal_struct", {{"thread_head", word, 0x10}});
  add("mm_struct", {{"mm_mt", tree, 8}, {"pgd", word, 0x10}, {"context", context, 0x18}});
  const std::uint32_t node = add("rb_node", {{"rb_right", word, 8}, {"rb_left", word, 16}});
  const std::uint32_t shared = add("shared", {{"rb", node, 0}, {"rb_subtree_last", word, 24}});
  add("vm_area_struct", {{"vm_start", word, 0},
                         {"vm_end", word, 8},
                         {"vm_pgoff", word, 16},
                         {"vm_file", word, 24},
                         {"vm_mm", word, 32},
                         {"shared", shared, 40},
                         {"anon_vma", word, 72}});
  add("file", {{"f_path", path, 8}, {"f_inode", word, 0x18}});
  const std::uint32_t root = add("rb_root", {{"rb_node", word, 0}});
  const std::uint32_t first = add("rb_root_cached", {{"rb_root", root, 0}});
  const std::uint32_t semaphore = add("rw_semaphore", {{lock, word, 0}});
  add("inode", {{"i_mapping", word, 0x30}});
  add("address_space", {{"i_mmap", first, 0x20}, {"i_mmap_rwsem", semaphore, 0x40}});
  add("dentry", {{"d_name", name, 8}});
  const std::uint32_t nine = words(9), ten = words(10), fifteen = words(15), sixteen = words(16);
  add("maple_range_64", {{"pivot", fifteen, 8}, {"slot", sixteen, 128}});
  add("maple_arange_64", {{"pivot", nine, 8}, {"slot", ten, 80}});
  return btf;
}

/// Writes kernel structures by that layout, each at a fresh address.
class ProcessWriter {
 public:
  explicit ProcessWriter(PagedGuest& guest) : guest_(guest) { link(kInitTask, kInitTask); }

  /// Adds a task to the list, with that memory (0: none).
  std::uint64_t task(std::uint32_t tgid, std::uint64_t mm) {
    const std::uint64_t at = fresh(0x100);
    guest_.put(at + 0x20, tgid);
    guest_.put(at + 0x28, mm);
    link(last_, at);
    link(at, kInitTask);
    last_ = at;
    return at;
  }
  /// Gives a process a second thread, with that memory.
  void second_thread(std::uint64_t leader, std::uint64_t mm) {
    const std::uint64_t signal = fresh(0x100), at = fresh(0x100);
    guest_.put(leader + 0x30, signal);
    guest_.put(signal + 0x10, leader + 0x38);
    guest_.put(leader + 0x38, at + 0x38);
    guest_.put(at + 0x38, signal + 0x10);
    guest_.put(at + 0x28, mm);
  }
  /// A struct mm_struct over the tree with this root.
  std::uint64_t memory(std::uint64_t root, std::uint64_t page_table, std::uint64_t vdso = 0) {
    const std::uint64_t at = fresh(0x100);
    guest_.put(at + 8, root);
    guest_.put(at + 0x10, page_table);
    guest_.put(at + 0x18, vdso);
    return at;
  }
  std::uint64_t file(std::string_view name) {
    const std::uint64_t text = fresh(0x200), dentry = fresh(0x100), at = fresh(0x100);
    guest_.put_text(text, name);
    guest_.put(dentry + 8, static_cast<std::uint32_t>(name.size()));
    guest_.put(dentry + 16, text);
    guest_.put(at + 8, dentry);
    return at;
  }
  /// A struct vm_area_struct; `page` is where in the file, in pages.
  std::uint64_t area(std::uint64_t begin, std::uint64_t end, std::uint64_t page,
                     std::uint64_t file) {
    const std::uint64_t at = fresh(0x100);
    for (const std::uint64_t value : {begin, end, page, file}) guest_.put(at + next_word(), value);
    word_ = 0;
    return at;
  }

  struct Slot {
    std::uint64_t pivot, value;  // pivot 0: up to the node's end
  };
  /// A node as its parent's slot holds it. `type`: 1 leaf, 2 range, 3 arange.
  std::uint64_t node(unsigned type, const std::vector<Slot>& slots) {
    const std::uint64_t at = fresh(0x100);
    const ProcessLayout layout = process_layout();
    const ProcessLayout::Node& shape = type == 3 ? layout.arange : layout.range;
    guest_.put(at, std::array<std::byte, 256>{});
    for (std::size_t n = 0; n < slots.size(); ++n) {
      if (n < shape.pivot_count) guest_.put(at + shape.pivots + n * 8, slots[n].pivot);
      guest_.put(at + shape.slots + n * 8, slots[n].value);
    }
    return at | type << 3 | 4;
  }
  static std::uint64_t as_root(std::uint64_t node) { return node | 2; }

  /// A leaf that is the whole tree, of areas in order.
  std::uint64_t small_tree(const std::vector<std::array<std::uint64_t, 4>>& areas) {
    std::vector<Slot> slots;
    std::uint64_t reached = 0;
    for (const auto& [begin, end, page, file] : areas) {
      if (begin != reached) slots.push_back({begin - 1, 0});
      slots.push_back({end - 1, area(begin, end, page, file)});
      reached = end;
    }
    slots.push_back({0, 0});
    return as_root(node(1, slots));
  }

 private:
  std::uint64_t fresh(std::uint64_t size) { return std::exchange(next_, next_ + size); }
  std::uint64_t next_word() { return std::exchange(word_, word_ + 8); }
  void link(std::uint64_t task, std::uint64_t next) { guest_.put(task + 0x10, next + 0x10); }

  PagedGuest& guest_;
  std::uint64_t next_ = kKernel + 0x10000, last_ = kInitTask, word_ = 0;
};

/// A library of 6 pages, the last of them .bss, with its dynamic symbols.
class SmallLibrary {
 public:
  struct Named {
    std::string name;
    std::uint64_t value, size;
    std::uint8_t info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    std::uint16_t section = 1;
  };
  static constexpr std::uint64_t kSymbols = 0x1000, kHash = 0x2000, kStrings = 0x3000,
                                 kDynamic = 0x4000, kSize = 0x6000;

  /// The first of the image's own addresses: 0, or the place that it was linked for.
  std::uint64_t linked_at = 0;
  bool gnu_hash = true;
  bool relocated = true;  // the loader has put addresses of memory into the dynamic section
  std::string build_id = "first";

  /// Maps it at `base`.
  void map(PagedGuest& guest, std::uint64_t base, const std::vector<Named>& symbols) const {
    for (std::uint64_t at = 0; at < kSize; at += 0x1000) {
      guest.put(base + at, std::array<std::byte, 0x1000>{});
    }
    map_header(guest, base);
    std::uint64_t name = 1;
    for (std::size_t n = 0; n < symbols.size(); ++n) {
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<std::uint32_t>(name);
      symbol.st_info = symbols[n].info;
      symbol.st_shndx = symbols[n].section;
      symbol.st_value = linked_at + symbols[n].value;
      symbol.st_size = symbols[n].size;
      guest.put(base + kSymbols + (n + 1) * sizeof symbol, symbol);
      guest.put_text(base + kStrings + name, symbols[n].name);
      name += symbols[n].name.size() + 1;
    }
    map_hash(guest, base, static_cast<std::uint32_t>(symbols.size()) + 1);
    map_dynamic(guest, base, name);
  }

 private:
  void map_header(PagedGuest& guest, std::uint64_t base) const {
    Elf64_Ehdr header{};
    const std::string_view magic =
        "\x7f"
        "ELF\2\1\1";
    std::copy(magic.begin(), magic.end(), header.e_ident);
    header.e_type = linked_at == 0 ? ET_DYN : ET_EXEC;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    guest.put(base, header);
    Elf64_Phdr load{}, dynamic{};
    load.p_type = PT_LOAD;
    load.p_vaddr = linked_at;
    load.p_memsz = kSize;
    dynamic.p_type = PT_DYNAMIC;
    dynamic.p_vaddr = linked_at + kDynamic;
    dynamic.p_memsz = 0x100;
    guest.put(base + sizeof header, load);
    guest.put(base + sizeof header + sizeof load, dynamic);
    guest.put_text(base + 0x200, build_id);
  }
  void map_hash(PagedGuest& guest, std::uint64_t base, std::uint32_t count) const {
    const auto words = [&](std::initializer_list<std::uint32_t> values) {
      std::uint64_t at = base + kHash;
      for (const std::uint32_t value : values) guest.put(at, value), at += 4;
    };
    if (!gnu_hash) return words({1, count});
    // One bucket, all symbols from 1 on in its chain, whose end is odd; 0: it has none.
    words({1, 1, 1, 6, 0, 0, count > 1 ? 1U : 0U});
    for (std::uint32_t n = 1; n < count; ++n) {
      guest.put(base + kHash + 28 + (n - 1) * std::uint64_t{4},
                std::uint32_t{n + 1 == count ? 0x11U : 0x10U});
    }
  }
  void map_dynamic(PagedGuest& guest, std::uint64_t base, std::uint64_t string_bytes) const {
    const std::uint64_t from = relocated ? base : linked_at;
    const std::array<std::array<std::uint64_t, 2>, 5> entries = {
        {{DT_SYMTAB, from + kSymbols},
         {DT_STRTAB, from + kStrings},
         {DT_STRSZ, string_bytes},
         {gnu_hash ? std::uint64_t{DT_GNU_HASH} : std::uint64_t{DT_HASH}, from + kHash},
         {DT_NULL, 0}}};
    guest.put(base + kDynamic, entries);
  }
};

}  // namespace ringside::guest_linux::fakes
