#include "vmm/shim/jump_record.h"

#include <algorithm>
#include <cstring>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

constexpr std::byte kPushFlags{0x9c}, kPopFlags{0x9d}, kCli{0xfa};
constexpr std::size_t kCallAt = JumpRecord::kEntry + SHIM_JUMP_CALL_END - SHIM_JUMP_BYTES;
constexpr std::ptrdiff_t kAddressAt = 1, kReplacedAt = kAddressAt + 4;
static_assert(JumpRecord::kEntry + SHIM_JUMP_CALL_END == kAddressAt + SHIM_JUMP_ADDRESS &&
                  SHIM_JUMP_LIST == SHIM_JUMP_ADDRESS + kAddressAt,
              "the shim finds both from the end of the call");
static_assert(kCallAt == JumpRecord::kEntry + 2, "pushfq and cli have a byte each");

std::optional<JumpBytes> branch(std::byte opcode, GuestVirt from, GuestVirt to) {
  const auto distance =
      static_cast<std::int64_t>(to.offset_from(from.wrapping_add(SHIM_JUMP_BYTES)));
  const auto near = static_cast<std::int32_t>(distance);
  if (near != distance) return std::nullopt;
  JumpBytes bytes;
  bytes[0] = opcode;
  std::memcpy(bytes.data() + 1, &near, sizeof near);
  return bytes;
}

}  // namespace

std::optional<JumpBytes> jump_between(GuestVirt from, GuestVirt to) {
  return branch(arch::kNearJump, from, to);
}

std::optional<GuestVirt> jump_target(GuestVirt from, const JumpBytes& bytes) {
  if (bytes[0] != arch::kNearJump) return std::nullopt;
  const auto distance = std::int64_t{load_at<std::int32_t>(bytes, 1)};
  return from.wrapping_add(SHIM_JUMP_BYTES + static_cast<std::uint64_t>(distance));
}

JumpRecord::Bytes JumpRecord::encode(GuestVirt place, GuestVirt jump_entry) const {
  Bytes bytes{};
  const auto low = static_cast<std::uint32_t>(address.raw());
  bytes[0] = std::byte{recording.value_or(0)};
  std::memcpy(bytes.data() + kAddressAt, &low, sizeof low);
  std::ranges::copy(replaced, bytes.begin() + kReplacedAt);
  bytes[kEntry] = kPushFlags;
  bytes[kEntry + 1] = kCli;
  const auto entry =
      jump_entry.wrapping_add(recording ? SHIM_RECORDING_JUMP_ENTRY - SHIM_JUMP_ENTRY : 0);
  const auto call = branch(arch::kNearCall, place.wrapping_add(kCallAt), entry);
  CHECK(call.has_value());  // both lie in the shim's region
  std::ranges::copy(*call, bytes.begin() + kCallAt);
  bytes.back() = kPopFlags;
  return bytes;
}

std::optional<JumpRecord> JumpRecord::decode(const Bytes& bytes, GuestVirt place,
                                             GuestVirt jump_entry) {
  JumpRecord record;
  const auto low = std::int64_t{load_at<std::int32_t>(bytes, kAddressAt)};
  record.address = GuestVirt(static_cast<std::uint64_t>(low));
  std::copy_n(bytes.begin() + kReplacedAt, record.replaced.size(), record.replaced.begin());
  if (record.encode(place, jump_entry) == bytes) return record;
  record.recording = static_cast<std::uint8_t>(bytes[0]);
  if (record.encode(place, jump_entry) == bytes) return record;
  return std::nullopt;
}

}  // namespace ringside::vmm
