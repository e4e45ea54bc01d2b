// Tools for lists of what a guest has: a copy of a structure's members, walks of lists that count
// each node once, and the form that a list has when it comes out. Nothing enters the guest; it may
// run and change its lists meanwhile, so a list that does not close is read again.
// Used by the other files of this folder, which commands such as `ps` and `netstat` print.
// Hostile input: everything is a copy, walks and texts are bounded. Texts are the guest's bytes as
// they are: whoever prints them escapes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

/// A guest to make lists of.
struct ListedGuest {
  const KernelView& view;
  /// It may change while it is read.
  bool runs = false;
  /// Copies memory of the process whose page table has this kernel address (mm->pgd); false where
  /// it is not there. `out` lies in one page.
  std::function<bool(GuestVirt page_table, GuestVirt at, std::span<std::byte> out)> read_process;
  /// Called before a list is read again: mappings may have changed.
  std::function<void()> forget = [] {};
};

template <class Row>
struct Listing {
  std::vector<Row> rows;
  /// Lines, each about something that is missing; empty when the list is whole.
  std::vector<std::string> notes;
};

/// `read`, again while something is missing, a few times, if the guest runs: its list may have
/// changed under the first look.
template <class Row>
Result<Listing<Row>> read_until_whole(const ListedGuest& guest,
                                      const std::function<Result<Listing<Row>>()>& read) {
  constexpr unsigned kLooks = 3;
  guest.forget();
  Listing<Row> found = TRY(read());
  for (unsigned looks = 1; guest.runs && !found.notes.empty() && looks < kLooks; ++looks) {
    guest.forget();
    Listing<Row> again = TRY(read());
    if (again.notes.empty() || again.rows.size() > found.rows.size()) found = std::move(again);
  }
  return found;
}

/// A copy of the first bytes of a structure, so that its members are of one moment.
class StructCopy {
 public:
  StructCopy(GuestVirt at, std::vector<std::byte> bytes) : at_(at), bytes_(std::move(bytes)) {}

  GuestVirt address() const { return at_; }
  /// 0 for a member that this kernel does not have.
  std::uint64_t number(const std::optional<Field>& field) const {
    return value_in(bytes_, field).value_or(0);
  }
  /// Empty for a null pointer, too.
  std::optional<GuestVirt> pointer(const std::optional<Field>& field) const {
    const std::uint64_t value = number(field);
    return value != 0 ? std::optional(GuestVirt(value)) : std::nullopt;
  }
  GuestVirt place(const Field& field) const { return at_.wrapping_add(field.offset); }
  /// Up to its NUL, of a member of `size` bytes that was needed with this size.
  std::string text(const Field& field, std::size_t size) const;
  /// The bytes of such a member; empty where the copy does not have them.
  std::span<const std::byte> bytes(const Field& field, std::size_t size) const;

 private:
  GuestVirt at_;
  std::vector<std::byte> bytes_;
};

/// Finds members and symbols by name, and remembers the first that this kernel lacks.
class Wanted {
 public:
  explicit Wanted(const KernelView& view) : view_(&view) {}

  const KernelView& view() const { return *view_; }
  /// Unsupported, naming what is missing. `list`: for the message, "processes".
  Result<void> check(std::string_view list) const;
  GuestVirt symbol(std::string_view name);
  std::int64_t enumerator(std::string_view name);
  std::uint64_t size_of(std::string_view structure);
  void lacks(std::string what) {
    if (missing_.empty()) missing_ = std::move(what);
  }

 private:
  const KernelView* view_;
  std::string missing_;
};

/// The members of a structure that a list is made of.
class Shape {
 public:
  Shape(Wanted& wanted, std::string structure)
      : view_(&wanted.view()), structure_(std::move(structure)) {}

  /// The first of `paths` that the kernel has, else `wanted` lacks it. `bytes`: of an array or a
  /// structure that is to be in copies.
  Field need(Wanted& wanted, std::initializer_list<std::string_view> paths, std::size_t bytes = 0);
  Field need(Wanted& wanted, std::string_view path) { return need(wanted, {path}); }
  /// The same for one that only some kernels have.
  std::optional<Field> want(std::initializer_list<std::string_view> paths, std::size_t bytes = 0);
  std::optional<Field> want(std::string_view path) { return want({path}); }

  /// All members that were asked for; empty where they cannot be read.
  std::optional<StructCopy> copy(GuestVirt at) const;

 private:
  void extend(const Field& field, std::size_t bytes);

  const KernelView* view_;
  std::string structure_;
  std::size_t extent_ = 0;  // bytes to copy
};

/// Follows the lists of a guest. A node counts once, in whichever list it is met first.
class Walk {
 public:
  /// `most`: nodes of all lists together.
  Walk(const KernelView& view, std::size_t most) : view_(&view), left_(most) {}

  /// A circular list (struct list_head).
  ListEnd circular(GuestVirt head, const ListVisitor& visit);
  /// A chain that ends in 0 or in an odd word (struct hlist_node, hlist_nulls_node), from its first
  /// word on.
  ListEnd chain(std::uint64_t first, const ListVisitor& visit);
  /// A red-black tree (struct rb_root), in order.
  ListEnd tree(GuestVirt root, const ListVisitor& visit);

 private:
  bool take(GuestVirt node) {
    return left_ != 0 && seen_.insert(node.raw()).second && left_-- != 0;
  }

  const KernelView* view_;
  std::size_t left_;
  std::unordered_set<std::uint64_t> seen_;
};

/// A line of notes where a walk did not reach its end; `list`: "the list of modules".
std::optional<std::string> cut_note(std::string_view list, ListEnd end);

/// Text of the guest that a list may hold at all: each piece takes from it.
class TextBudget {
 public:
  static constexpr std::size_t kMost = 64 << 20;
  /// Whether `bytes` more may be held.
  bool take(std::size_t bytes) {
    if (bytes > left_) {
      was_short_ = true;
      return false;
    }
    left_ -= bytes;
    return true;
  }
  bool was_short() const { return was_short_; }

 private:
  std::size_t left_ = kMost;
  bool was_short_ = false;
};

}  // namespace ringside::guest_linux
