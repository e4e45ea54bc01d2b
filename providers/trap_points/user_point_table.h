// The table of trap points in the text of processes. Such a point is a place in a file: its int3
// stands in the page that the kernel has of the file (the page cache), which all processes share
// that map it. The displaced instruction stands in unused bytes of the same page (user_sites.h).
// The stub knows the point by these bytes, or by the text where nothing is displaced (programs of
// Go), so a page may be moved or copied.
//
// A page may be given back by the kernel and read anew, without our int3: arrive() writes it before
// a process can run there, where somebody watches pages come (providers/tracer/page_watch.h); else
// tend() writes it later. With such a watch a trap point may also stand in a page that was never in
// memory. Its text is examined when the page comes, and only then it is known whether it can stand
// there. Before the guest reads or writes the file itself the int3s have to go (step_aside()), or a
// disk would get them.
//
// A static probe may have a semaphore (user_semaphores.h), which goes up and down with its int3.
//
// Writes: a byte for each int3 and the displaced instruction, and the old bytes back; semaphores;
// nothing else.
// Threads: all functions on any, one at a time. Fire context: no.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "providers/trap_points/user_points.h"
#include "providers/trap_points/user_semaphores.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/user_standing.h"
#include "vmm/machine.h"
#include "vmm/shim/shim_remains.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

class UserPointTable {
 public:
  /// For the user, where take_out() has left a displaced instruction.
  static constexpr std::string_view kStaysInside =
      "a process of the guest may go on in a displaced instruction, so it stays in its file's page "
      "in memory: bytes between two functions, which nothing else runs";

  using Clock = std::chrono::steady_clock;

  /// All must outlive it. Nothing is asked of `shim` before the first add(). Null: for trap points
  /// that are left alone. `host`: where else symbols of files are looked for; null: nowhere.
  UserPointTable(vmm::Machine& machine, vmm::TrapTable* shim, guest_linux::Kernel& kernel,
                 guest_linux::HostFiles* host = nullptr);

  /// Text of the file as it is without our trap points.
  std::size_t read(GuestVirt inode, std::uint64_t offset, std::span<std::byte> out) const;
  ReadFile reader_of(GuestVirt inode) const {
    return [this, inode](std::uint64_t offset, std::span<std::byte> out) {
      return read(inode, offset, out);
    };
  }
  /// Null: none.
  guest_linux::HostFiles* host_files() const { return guest_.host(); }
  /// Where the file is in the guest, by which the host's copies are found.
  void name_file(GuestVirt inode, std::string path);
  /// Its name without a folder, for what is told of it.
  void note_name(GuestVirt inode, std::string name);
  /// The file's functions; they stay as they are while this file is known. Empty where the file
  /// cannot be read.
  using Servers = guest_linux::HostFiles::Servers;
  const guest_linux::FileFunctions* functions_of(GuestVirt inode,
                                                 Servers servers = Servers::NotAsked);
  /// Types of a function of the file by its DWARF, which is read when it is asked for first; they
  /// are added to `graph`, the same one in every call. The error says why there are none.
  Result<guest_linux::FunctionTypes> types_of(GuestVirt inode,
                                              const guest_linux::FileFunction& function,
                                              TypeGraph& graph);
  /// The pieces of its code, by its unwind table.
  FindPiece pieces_of(GuestVirt inode) {
    return [this, inode](std::uint64_t offset) { return piece_at(inode, offset); };
  }

  /// The file's static probes; none where the file cannot be read. Good until the next call.
  std::span<const guest_linux::StaticProbe> static_probes_of(GuestVirt inode,
                                                             Servers servers = Servers::NotAsked);

  /// From now on somebody tells which pages come, or not: before anything is examined.
  void expect_pages(bool are_told) { expects_pages_ = are_told; }
  /// A static probe may stand there unexamined, while its page is not in memory.
  void expect(GuestVirt inode, std::uint64_t offset);
  /// Where a function is entered: behind a landing pad, or at its first byte as long as its page is
  /// not in memory and expect_pages() was called.
  std::uint64_t entry_of(GuestVirt inode, const guest_linux::FileFunction& function);

  /// Unsupported, with the reason, where no trap point can stand; else there is room for it from
  /// now on. In a page that is not in memory, one can stand where entry_of() said, or expect() did.
  Result<void> examine(GuestVirt inode, std::uint64_t offset);
  /// The same, and makes the trap point, or gives it one more user; returns its name. Nothing is
  /// written to the file. `semaphore`: its offset in the file.
  Result<GuestVirt> add(GuestVirt inode, std::uint64_t offset,
                        std::optional<std::uint64_t> semaphore = std::nullopt);
  /// Trap points that an earlier tracer has left, as far as they still stand: disarm() restores
  /// them. Before any other is added.
  void take_over(std::span<const vmm::ShimRemains::UserPoint> left);
  /// How many trap points of the kernel take as much room in the stub as all that were examined.
  /// Also while one is added.
  std::size_t worth() const;
  void release(GuestVirt name);
  bool owns(GuestVirt name) const;

  /// Writes the displaced instruction of each trap point that has users and whose page is in
  /// memory. In a pause before that of arm(): a page that a process copies meanwhile, as far as it
  /// was copied, must not have an int3 without it.
  Result<void> write_slots(vmm::PausedMachine& machine);
  /// Writes their int3s.
  Result<void> arm(vmm::PausedMachine& machine);
  using Which = UserSemaphores::Which;
  /// Restores the bytes of those that have no users, or of all, in each copy of their pages. Their
  /// displaced instructions stay. With all, nothing is written into files from now on.
  Result<void> disarm(vmm::PausedMachine& machine, Which which);
  /// The same with all, and takes out the displaced instructions that nobody is inside of, in
  /// pauses of its own, for up to 2 s until nobody is; false where somebody still is. The guest
  /// goes on between two of them: a page may just have been copied, or on its way to another frame.
  /// `stub`: where vCPUs may wait.
  Result<bool> take_out(const vmm::ShimPlace& stub);
  /// Whether anything of ours stands in processes.
  bool any_armed() const { return armed() != 0; }
  std::size_t size() const;
  /// The files that have trap points.
  std::vector<GuestVirt> inodes() const;
  std::size_t armed() const;

  /// From now on nothing is written into files.
  void keep_out();

  /// Whether trap points stand in these bytes of the file.
  bool stands_in(GuestVirt inode, std::uint64_t begin, std::uint64_t end) const;
  /// Restores those of the file that stand there, until tend() some time later finds that nobody
  /// writes to it; for good where the guest keeps the pages themselves.
  enum class Away : std::uint8_t { ForAWhile, ForGood };
  Result<void> step_aside(vmm::PausedMachine& machine, GuestVirt inode, std::uint64_t begin,
                          std::uint64_t end, Away away);
  /// Whether trap points stand in files that are in memory alone (tmpfs).
  bool stands_in_memory_files() const;
  /// The guest is about to have swap, to which these files may go: restores theirs for good.
  Result<void> leave_memory_files(vmm::PausedMachine& machine);
  /// Pages of a file.
  struct Pages {
    std::uint64_t first = 0, count = 1;
  };
  /// The guest is about to map these pages of the file. Whether arrive() has something to do.
  bool wants_pages(GuestVirt inode, Pages pages);
  /// Writes their int3s, before a process can run there.
  Result<void> arrive(vmm::PausedMachine& machine, GuestVirt inode, Pages pages);
  /// It could not, for this reason.
  void note_unseen(std::string why);
  /// Whether there were trap points without a page in memory when wants_tending() looked last.
  bool lacks_pages() const { return lacks_pages_; }
  /// Whether there is something for tend() to do: int3s are missing whose pages are in memory.
  bool wants_tending();
  Result<void> tend(vmm::PausedMachine& machine);

  /// How often and why int3s were away since the last call, a line each.
  std::vector<std::string> take_notices();

 private:
  using Point = UserPoint;
  using File = UserPoints::File;
  Result<void> settle(const guest_linux::FilePages& pages, File& file, Point& point);
  bool is_settled(const guest_linux::FilePages& pages, File& file, Point& point);
  std::optional<guest_linux::FilePiece> piece_at(GuestVirt inode, std::uint64_t offset);
  Result<UserPoint*> find_point(GuestVirt inode, std::uint64_t offset);
  Result<void> begin();
  Result<void> link();
  Result<void> await_stub(const vmm::ShimPlace& stub);
  void look_ahead();
  bool take_out_slots(vmm::PausedMachine& machine);
  /// A trap point in one of the pages that have it.
  struct Place {
    Point* point = nullptr;
    GuestPhys frame;
  };
  bool stand(GuestPhys frame, std::uint16_t at, std::span<const std::byte> bytes) const;
  std::optional<std::uint64_t> load_word(GuestPhys at) const;
  bool has_text(const Place& place) const;
  bool has_slot(const Place& place) const;
  bool has_point(const Place& place) const;
  bool is_ready(const Place& place) const;
  bool may_be_armed(const GuestReader& kernel, GuestVirt inode, File& file);
  void add_ready(const guest_linux::FilePages& pages, File& file, Point& point,
                 std::vector<Place>& ready);
  std::vector<Place> ready_places(const GuestReader& kernel);
  std::vector<Place> ready_places(GuestVirt inode, Pages arriving);
  Result<void> write_ready(vmm::PausedMachine& machine, std::span<const Place> ready);
  static Result<void> write(vmm::PausedMachine& machine, std::span<const Place> places);
  void note_missing(const GuestReader& kernel);
  Result<void> write_ready(vmm::PausedMachine& machine);
  using Copies = UserSemaphores::Copies;
  UserSemaphores::Places find_bytes(std::span<const guest_linux::FileRange> ranges, Copies copies,
                                    const guest_linux::UserStanding::Sleepers& sleepers);
  UserSemaphores::Find bytes_finder();
  bool may_write(const GuestReader& kernel, GuestVirt inode, std::uint64_t offset) const;
  Result<void> raise_semaphores(vmm::PausedMachine& machine);
  std::vector<Place> places_of(GuestVirt inode, std::span<Point* const> points, Copies copies);
  std::vector<Place> copies_where(const std::function<bool(const Point&)>& is_meant);
  Result<void> write_copies(vmm::PausedMachine& machine);
  Result<void> restore(vmm::PausedMachine& machine, GuestVirt inode, std::span<Point* const> points,
                       Copies copies);
  bool restore_slots(vmm::PausedMachine& machine, Copies copies);
  struct PutAway {
    std::size_t points = 0, semaphores = 0;
  };
  Result<PutAway> put_away(vmm::PausedMachine& machine, GuestVirt inode, File& file,
                           std::uint64_t begin, std::uint64_t end, Away away);
  void note_swapped_out(std::string_view consequence);

  vmm::Machine& machine_;
  vmm::TrapTable* const shim_;
  guest_linux::Kernel& kernel_;
  std::optional<guest_linux::UserStanding> standing_;
  guest_linux::UserStanding::Sleepers sleepers_;  // of look_ahead()

  std::atomic<bool> expects_pages_ = false;
  std::atomic<bool> lacks_pages_ = true;  // until it was looked
  mutable std::mutex lock_;               // of what follows
  UserPoints points_;
  UserFiles& guest_ = points_.guest();
  std::map<GuestVirt, File>& files_ = points_.files();
  std::map<GuestVirt, std::pair<GuestVirt, std::uint64_t>> names_;  // inode and offset, by name
  UserSemaphores semaphores_;
  bool has_begun_ = false, keeps_out_ = false;
  Clock::time_point next_look_{};
  std::size_t swapped_out_ = 0;  // pages with copies of probed text or of semaphores, lately
  std::size_t unsettled_ = 0;    // trap points that cannot stand in pages that have come
  std::string why_unsettled_;    // the first of them
  std::size_t unseen_ = 0;       // pages that processes got before their int3s stood
  std::string why_unseen_;       // the last one
  std::vector<std::string> notices_;
};

}  // namespace ringside::providers
