// The places in files' text where trap points may stand: what is displaced there and where to, and
// by what the stub knows each one. No two may look alike to it. Nothing is written here. Used by
// the table of such trap points (user_point_table.h). Hostile input: files are the guest's.
// Threads: one at a time. Fire context: no.
#pragma once

#include <atomic>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "providers/trap_points/sites/user_sites.h"
#include "providers/trap_points/user_files.h"
#include "vmm/linux/stacks/user_standing.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

/// So many bytes tell a trap point from others (vmm::UserTrapPoint::bytes).
inline constexpr std::size_t kKnownBytes = sizeof(std::uint64_t);

/// A place in a file's text where a trap point may stand, and what has become of it.
struct UserPoint {
  UserSite site;
  std::uint16_t slot = 0;               // offset in the page
  std::vector<std::byte> code, before;  // of the slot
  std::uint16_t code_from = 0;  // where in the page `code` begins: the slot, or a part of it
  // Without a slot the stub knows it by bytes of the text, at `code_from`.
  std::uint64_t mask = 0, bytes = 0;
  std::optional<std::uint64_t> semaphore{};
  GuestVirt name{};  // 0: it was only examined
  unsigned users = 0;
  bool is_expected = false;  // its text is not known yet
  bool is_linked = false;    // the stub knows it
  bool is_written = false;   // its slot lies in the page
  bool is_armed = false;
  bool is_lost = false;  // other text is there now

  bool has_no_slot() const { return mask != 0; }
  std::uint64_t page() const { return site.offset / arch::kPageSize; }
  std::uint16_t in_page() const {
    return static_cast<std::uint16_t>(site.offset % arch::kPageSize);
  }
  std::uint64_t slot_offset() const { return page() * arch::kPageSize + slot; }
  guest_linux::FileRange slot_range(GuestVirt inode) const {
    return {inode, slot_offset(), slot_offset() + before.size()};
  }
};

class UserPoints {
 public:
  using Servers = UserFiles::Servers;
  using Clock = std::chrono::steady_clock;
  struct File {
    UserFile known;
    std::map<std::uint64_t, PageText> pages;      // their room that is free, by page
    std::map<std::uint64_t, UserPoint> points;    // by offset
    std::set<std::uint64_t> expected{};           // where one may stand unexamined
    std::string name{};                           // for notices
    std::optional<std::uint64_t> spare_return{};  // of a program of Go
    /// Of others, by page: where returns go on that cannot be displaced. Empty: nowhere.
    std::map<std::uint64_t, std::optional<std::uint64_t>> spare_returns{};
    Clock::time_point away_until{};
    bool is_gone = false;
  };

  /// All must outlive it. `host`: where else symbols of files are looked for; null: nowhere.
  UserPoints(vmm::GuestMemory& memory, const guest_linux::Kernel& kernel,
             guest_linux::HostFiles* host);

  UserFiles& guest() { return guest_; }
  /// By inode.
  std::map<GuestVirt, File>& files() { return files_; }

  /// The file as it is now. Unsupported: it cannot be read, or has changed since it has points.
  Result<File*> find_file(GuestVirt inode, Servers servers = Servers::NotAsked);
  /// Text of the file as it is without trap points; returns how many bytes are in memory.
  std::size_t read(GuestVirt inode, std::uint64_t offset, std::span<std::byte> out) const;
  ReadFile reader_of(GuestVirt inode) const {
    return [this, inode](std::uint64_t offset, std::span<std::byte> out) {
      return read(inode, offset, out);
    };
  }
  /// The point there, which is made if there is none. Unsupported, with the reason: none can be.
  Result<UserPoint*> find_point(GuestVirt inode, std::uint64_t offset);
  /// The instruction at an offset, as examine_user_site() has it.
  Result<UserSite> site_at(GuestVirt inode, const File& file, std::uint64_t offset) const;
  /// Finds room in its page for what is displaced, or lets the stub do that.
  Result<void> find_slot(GuestVirt inode, File& file, UserPoint& point);
  /// As the stub is told of it.
  static vmm::UserTrapPoint describe(GuestVirt inode, const UserPoint& point);
  /// How many have been made. On any thread.
  std::size_t examined() const { return examined_.load(); }

 private:
  /// By what the stub knows a trap point: offset of the int3, of the code, and its bytes.
  using Key = std::tuple<std::uint16_t, std::uint16_t, std::uint64_t>;
  static Key key_of(const vmm::UserTrapPoint& point) {
    return {point.offset, point.code, point.bytes};
  }
  Result<PageText*> text_of(GuestVirt inode, File& file, std::uint64_t page);
  std::optional<std::uint64_t> spare_return_of(GuestVirt inode, File& file, const UserPoint& point,
                                               const PageText& text);
  Result<void> let_stub_do(GuestVirt inode, File& file, UserPoint& point);
  Result<UserPoint> make_point(GuestVirt inode, const File& file, std::uint64_t offset,
                               bool is_in_memory) const;
  Result<UserPoint> make_go_point(GuestVirt inode, File& file, std::uint64_t offset);
  bool know_by_text(GuestVirt inode, UserPoint& point,
                    const std::bitset<arch::kPageSize>* steady = nullptr);
  bool is_told_apart(GuestVirt inode, const UserPoint& point) const;
  std::optional<std::vector<std::byte>> whole_page(GuestVirt inode, std::uint64_t page) const;
  bool take_slot(GuestVirt inode, UserPoint& point, std::vector<PageRoom>& rooms);

  vmm::GuestMemory& memory_;
  const guest_linux::Kernel& kernel_;
  UserFiles guest_;
  std::atomic<std::size_t> examined_{0};
  std::map<GuestVirt, File> files_;
  std::set<Key> keys_;
  /// The trap points that have been examined: inode and offset, by offset in the page.
  std::multimap<std::uint16_t, std::pair<GuestVirt, std::uint64_t>> places_;
};

}  // namespace ringside::providers
