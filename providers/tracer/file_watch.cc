#include "providers/tracer/file_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <thread>

#include "providers/tracer/watched_entry.h"
#include "vmm/arch/arch.h"
#include "vmm/held_vcpu.h"
#include "vmm/linux/layout.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using guest_linux::load_field;

/// While a process is inside of a displaced instruction that has to go.
constexpr unsigned kTries = 100;
constexpr auto kWait = std::chrono::milliseconds(1);
constexpr std::uint32_t kOpenToWrite = 2;  // FMODE_WRITE (include/linux/fs.h)
constexpr std::uint32_t kSizeChanges = 8;  // ATTR_SIZE, there

std::uint64_t argument(const vmm::Trap& trap, std::size_t n) {
  return trap.registers.*arch::kArgumentRegisters[n];
}

}  // namespace

Result<void> FileWatch::prepare(TrapPointTable& table) {
  const TypeGraph& types = kernel_.types();
  const auto take = [&](std::uint32_t& offset, std::string_view structure,
                        std::initializer_list<std::string_view> path) -> Result<void> {
    const auto found = guest_linux::offset_of(types, structure, path);
    if (!found) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("the kernel's types lack {}.{}", structure, *(path.end() - 1)));
    }
    offset = *found;
    return {};
  };
  TRY(take(layout_.file_mode, "file", {"f_mode"}));
  TRY(take(layout_.file_dentry, "file", {"f_path", "dentry"}));
  TRY(take(layout_.file_inode, "file", {"f_inode"}));
  TRY(take(layout_.dentry_inode, "dentry", {"d_inode"}));
  TRY(take(layout_.call_file, "kiocb", {"ki_filp"}));
  TRY(take(layout_.call_position, "kiocb", {"ki_pos"}));
  TRY(take(layout_.iterator_count, "iov_iter", {"count"}));
  const auto watch = [&](std::string_view name) -> Result<GuestVirt> {
    const auto* const symbol = kernel_.symbols().find(name, "vmlinux");
    if (symbol == nullptr) {
      return fail(ErrorCode::Unsupported, fmt::format("the kernel has no function {}", name));
    }
    return watch_entry(table, kernel_, *symbol);
  };
  const auto watch_any = [&](std::vector<GuestVirt>& places,
                             std::string_view name) -> Result<void> {
    if (kernel_.symbols().find(name, "vmlinux") != nullptr) places.push_back(TRY(watch(name)));
    return {};
  };
  TRY(take(layout_.changed, "iattr", {"ia_valid"}));
  layout_.iterator_kind = guest_linux::offset_of(types, "iov_iter", {"iter_type"});
  if (const auto pipe = types.find_enumerator("ITER_PIPE")) {
    layout_.pipe = static_cast<std::uint8_t>(pipe->second);
  }
  open_ = TRY(watch("do_dentry_open"));
  opens_inode_ = opens_an_inode(*kernel_.symbols().find("do_dentry_open", "vmlinux"));
  change_ = TRY(watch("notify_change"));
  reads_.push_back(TRY(watch("filemap_read")));
  TRY(watch_any(reads_, "shmem_file_read_iter"));
  // Before 6.5 files were spliced by reads.
  TRY(watch_any(splices_, "filemap_splice_read"));
  TRY(watch_any(splices_, "shmem_file_splice_read"));
  TRY(watch_any(swaps_, "__x64_sys_swapon"));
  TRY(watch_any(swaps_, "__ia32_sys_swapon"));
  return {};
}

bool FileWatch::opens_an_inode(const guest_linux::Symbol& open) const {
  const TypeGraph& types = kernel_.types();
  const auto prototype = kernel_.prototype(open);
  if (!prototype || types.parameters(*prototype).size() < 2) return false;
  const Type& second = types[types.resolve(types.parameters(*prototype)[1].type)];
  if (second.kind != TypeKind::Pointer) return false;
  const TypeId pointed = types.resolve(second.target);
  return pointed == types.find(TypeKind::Struct, "inode");
}

std::vector<GuestVirt> FileWatch::places() const {
  std::vector<GuestVirt> all{open_, change_};
  for (const auto* places : {&reads_, &splices_, &swaps_}) {
    all.insert(all.end(), places->begin(), places->end());
  }
  return all;
}

void FileWatch::add_to(vmm::TrapHandlers& handlers) {
  for (const GuestVirt place : places()) handlers.add(place, *this);
}

bool FileWatch::is_place(GuestVirt at) const {
  const auto all = places();
  return std::ranges::find(all, at) != all.end();
}

std::map<GuestVirt, vmm::FetchList> FileWatch::lists(std::span<const GuestVirt> inodes) const {
  using vmm::FetchCheck, vmm::FetchList;
  constexpr FetchList::Copies kRegisters{.registers = true, .ids = false};
  const std::uint16_t first = vmm::FetchLoad::register_source(SHIM_RDI);
  std::map<GuestVirt, FetchList> made;
  if (inodes.size() + 2 > FetchList::kMostChecks) return made;  // with the mode's, and the last one
  const auto word = [](FetchList& list, std::uint16_t source, std::uint32_t offset) {
    const auto load =
        list.add({.source = source, .words = 1, .offset = static_cast<std::int32_t>(offset)});
    return list.source_of(*load);
  };
  for (const GuestVirt place : reads_) {
    FetchList& list = made[place] = FetchList(kRegisters);
    list.wait_only_for(word(list, word(list, first, layout_.call_file), layout_.file_inode),
                       inodes);
  }
  for (const GuestVirt place : splices_) {
    FetchList& list = made[place] = FetchList(kRegisters);
    list.wait_only_for(word(list, first, layout_.file_inode), inodes);
  }
  const std::uint16_t second = vmm::FetchLoad::register_source(SHIM_RSI);
  FetchList& changes = made[change_] = FetchList(kRegisters);
  changes.wait_only_for(word(changes, second, layout_.dentry_inode), inodes);
  FetchList& list = made[open_] = FetchList(kRegisters);
  const std::uint16_t mode = word(list, first, layout_.file_mode);
  const auto shift = static_cast<std::uint64_t>(layout_.file_mode) % sizeof(std::uint64_t) * 8;
  const std::uint64_t to_write = std::uint64_t{kOpenToWrite} << shift;
  list.add_check(FetchCheck{.source = mode, .mask = to_write, .with = to_write});
  list.wait_only_for(opens_inode_
                         ? second
                         : word(list, word(list, first, layout_.file_dentry), layout_.dentry_inode),
                     inodes);
  return made;
}

/// The file's inode is not set yet, and its address may be another one's.
std::optional<FileWatch::Touched> FileWatch::opened(const vmm::Trap& trap,
                                                    const GuestReader& reader) const {
  const GuestVirt file(argument(trap, 0));
  const auto mode = load_field<std::uint32_t>(reader, file, layout_.file_mode);
  if (!mode || (*mode & kOpenToWrite) == 0) return std::nullopt;
  if (opens_inode_) return Touched{GuestVirt(argument(trap, 1))};
  const auto dentry = load_field<std::uint64_t>(reader, file, layout_.file_dentry);
  if (!dentry) return std::nullopt;
  const auto inode = load_field<std::uint64_t>(reader, GuestVirt(*dentry), layout_.dentry_inode);
  return inode ? std::optional(Touched{GuestVirt(*inode)}) : std::nullopt;
}

std::optional<FileWatch::Touched> FileWatch::truncated(const vmm::Trap& trap,
                                                       const GuestReader& reader) const {
  const auto what =
      load_field<std::uint32_t>(reader, GuestVirt(argument(trap, 2)), layout_.changed);
  if (!what || (*what & kSizeChanges) == 0) return std::nullopt;
  const auto inode =
      load_field<std::uint64_t>(reader, GuestVirt(argument(trap, 1)), layout_.dentry_inode);
  return inode ? std::optional(Touched{GuestVirt(*inode)}) : std::nullopt;
}

std::optional<FileWatch::Touched> FileWatch::read_from(const vmm::Trap& trap,
                                                       const GuestReader& reader) const {
  const GuestVirt call(argument(trap, 0));
  const auto file = load_field<std::uint64_t>(reader, call, layout_.call_file);
  const auto from = load_field<std::uint64_t>(reader, call, layout_.call_position);
  const auto bytes =
      load_field<std::uint64_t>(reader, GuestVirt(argument(trap, 1)), layout_.iterator_count);
  if (!file || !from || !bytes) return std::nullopt;
  const auto inode = load_field<std::uint64_t>(reader, GuestVirt(*file), layout_.file_inode);
  if (!inode) return std::nullopt;
  const std::uint64_t end = *bytes > UINT64_MAX - *from ? UINT64_MAX : *from + *bytes;
  Touched touched{GuestVirt(*inode), *from, end};
  if (layout_.pipe && layout_.iterator_kind) {
    const auto kind =
        load_field<std::uint8_t>(reader, GuestVirt(argument(trap, 1)), *layout_.iterator_kind);
    if (kind && *kind == *layout_.pipe) touched.away = UserPointTable::Away::ForGood;
  }
  return touched;
}

std::optional<FileWatch::Touched> FileWatch::spliced(const vmm::Trap& trap,
                                                     const GuestReader& reader) const {
  const GuestVirt file(argument(trap, 0));
  const auto inode = load_field<std::uint64_t>(reader, file, layout_.file_inode);
  if (!inode) return std::nullopt;
  Touched touched{GuestVirt(*inode)};
  touched.away = UserPointTable::Away::ForGood;
  return touched;
}

std::optional<FileWatch::Touched> FileWatch::touched_by(const vmm::Trap& trap,
                                                        const GuestReader& reader) const {
  if (trap.address == open_) return opened(trap, reader);
  if (trap.address == change_) return truncated(trap, reader);
  const bool is_read = std::ranges::find(reads_, trap.address) != reads_.end();
  return is_read ? read_from(trap, reader) : spliced(trap, reader);
}

/// Takes out in pauses, until `stands` says that nothing stands there any more.
template <class Stands, class TakeOut>
void FileWatch::until_gone(Stands stands, TakeOut take_out) {
  const vmm::HeldVcpu held;
  for (unsigned n = 0; n < kTries && stands(); ++n) {
    if (n > 0) std::this_thread::sleep_for(kWait);
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) return;
    take_out(*paused);
  }
}

void FileWatch::on_trap(const vmm::Trap& trap) {
  if (std::ranges::find(swaps_, trap.address) != swaps_.end()) {
    return until_gone([&] { return users_.stands_in_memory_files(); },
                      [&](auto& paused) { (void)users_.leave_memory_files(paused); });
  }
  const vmm::PageTableReader reader(machine_.memory(), kernel_.table());
  const auto touched = touched_by(trap, reader);
  if (!touched) return;
  const Touched& bytes = *touched;
  until_gone([&] { return users_.stands_in(bytes.inode, bytes.begin, bytes.end); },
             [&](auto& paused) {
               (void)users_.step_aside(paused, bytes.inode, bytes.begin, bytes.end, bytes.away);
             });
}

}  // namespace ringside::providers
