// Places in the text of files where a trap point may stand, and room for their displaced
// instructions: bytes between two functions of the same page that nothing runs into. A page has
// both or neither, whoever maps it, so it needs no address of its own.
// Such room is found by decoding the page's functions from the last symbol before it to the first
// one behind it. It begins after an instruction that does not go on (a return, a jump), has nothing
// but nops and int3s, and ends where the next function may begin, 16 bytes aligned. If the decoding
// does not meet each symbol on the way, nothing is believed.
// Pure: text in, sites out. Hostile input: the bytes are the guest's.
// Used by the table of such trap points. Does not: know who maps the file.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"
#include "vmm/linux/processes/file_functions.h"
#include "vmm/linux/processes/file_pieces.h"

namespace ringside::providers {

/// Copies bytes of a file from an offset on, without trap points of ours; returns how many are in
/// memory.
using ReadFile = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> out)>;

/// Bytes of a page, by offsets in it.
struct PageRoom {
  std::uint16_t begin = 0, end = 0;
};

/// A page of the file's text, decoded.
struct PageText {
  std::vector<PageRoom> rooms;
  /// Bytes of instructions but for each one's first: no trap point ever changes them.
  std::bitset<arch::kPageSize> inner;
};

/// Unsupported, with the reason, where the text cannot be decoded; NotFound where a part of it is
/// not in memory.
Result<PageText> decode_page(const ReadFile& file, const guest_linux::FileFunctions& functions,
                             std::uint64_t page);

/// An instruction of a file, and its displaced form.
struct UserSite {
  std::uint64_t offset = 0;            // in the file
  std::vector<std::byte> instruction;  // as the file has it
  std::size_t slot_bytes = 0;          // of its displaced form, wherever that lies
  GuestVirt address{};  // in each process, or anywhere beyond the reach of absolute addresses
  bool calls = false;   // its displaced form jumps to the function
  /// Nothing is displaced: so far from the instruction the process goes on, and the stub does what
  /// the instruction does. The stack pointer goes down by so many bytes, or the frame pointer
  /// becomes the stack pointer.
  std::optional<std::int32_t> goes_on = std::nullopt;
  std::uint32_t down = 0;
  bool makes_frame = false;
};

/// `fixed`: its address, if that is the same in each process. Unsupported, with the reason: the
/// instruction does not decode, or cannot be displaced.
Result<UserSite> examine_user_site(const ReadFile& file, std::uint64_t offset,
                                   std::optional<GuestVirt> fixed = std::nullopt);

/// The displaced form at this offset of the file, which leads back behind the instruction. That of
/// an instruction that never goes on there (a return, a jump) has the site's offset in its page
/// behind it: so the end of each displaced form tells whose it is.
Result<std::vector<std::byte>> displace_user_site(const UserSite& site, std::uint64_t slot);

// Without -O, compilers leave no room between functions. Three instructions need none:
// - nop, at which static probes stand. The process goes on behind it.
// - mov %rsp, %rbp, which follows the first push of most functions. The stub does it.
// - ret. The process goes on at another byte 0xc3 of the same page. One in the middle of an
//   instruction is best, since no trap point ever stands there. If there is none, one return of the
//   page is set aside for the others.

/// The site as the stub does it. Empty: it is another instruction, or a return without a
/// `spare_return` in its reach.
std::optional<UserSite> done_by_stub(const UserSite& site,
                                     std::optional<std::uint64_t> spare_return);
/// Whether it is a return that takes nothing from the stack besides the address.
bool is_plain_return(const UserSite& site);
/// A byte 0xc3 of the page in the middle of an instruction; empty: there is none.
std::optional<std::uint64_t> find_inner_return(const ReadFile& file, std::uint64_t page,
                                               const PageText& text);
/// A return of the page to set aside; empty: all have trap points.
std::optional<std::uint64_t> find_free_return(
    const ReadFile& file, const guest_linux::FileFunctions& functions, std::uint64_t page,
    const std::function<bool(std::uint64_t offset)>& is_free);
/// Where a function that begins at this place makes its frame; empty: it begins in another way.
std::optional<std::uint64_t> frame_entry(const ReadFile& file, std::uint64_t entry);

// Go's runtime looks up each address at which a signal finds a thread, and ends the program where
// that is in no function. So nothing of such a program runs elsewhere:
// - Its functions are entered behind the check whether the stack has room, since a function that
//   has found none begins anew, once it has more. There the stack pointer goes down, which the stub
//   does.
// - A return goes on at another one, of a function of Go's runtime, in which Go never interrupts a
//   goroutine to run another.

/// As examine_user_site(), of a program of Go. `spare`: where returns go on.
Result<UserSite> examine_go_site(const ReadFile& file, std::uint64_t offset,
                                 std::optional<std::uint64_t> spare);
/// A return for that; empty: no such function is in memory.
std::optional<std::uint64_t> find_spare_return(const ReadFile& file,
                                               const guest_linux::FileFunctions& functions);
/// Where a function of Go is entered.
std::uint64_t go_entry(const ReadFile& file, const guest_linux::FileFunction& function);

/// Where a function is entered: behind a landing pad.
std::uint64_t user_entry(const ReadFile& file, const guest_linux::FileFunction& function);
/// A way out of a function.
struct UserReturn {
  std::uint64_t offset = 0;                        // in the file
  bool has_value = false;                          // a return, and no jump to another function
  arch::Condition condition = arch::kNoCondition;  // of a jump that does not always leave
};
/// The piece of code, by the file's unwind table, that has this byte of the file; empty: none that
/// is known.
using FindPiece = std::function<std::optional<guest_linux::FilePiece>(std::uint64_t offset)>;
/// Whether a jump to another function is a way out, or the ways out of that one count, too: then it
/// takes an entry to tell whose return it is.
enum class OnTailCall : std::uint8_t { Leave, Follow };
/// All ways out: returns, and jumps to other functions, also from its parts, to which jumps stay
/// inside. A part is what the name tells (NAME.cold), or a piece without a symbol that is entered
/// with a frame, or in its middle, or that jumps back. Unsupported: the function has no known size,
/// or does not decode; or a jump leads where neither a symbol nor a piece is known. Jumps to
/// imports are ways out in any case.
Result<std::vector<UserReturn>> user_returns(const ReadFile& file,
                                             const guest_linux::FileFunctions& functions,
                                             const FindPiece& find_piece,
                                             const guest_linux::FileFunction& function,
                                             OnTailCall on_tail_call = OnTailCall::Leave);

}  // namespace ringside::providers
