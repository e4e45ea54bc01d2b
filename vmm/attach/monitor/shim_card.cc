// In this file, top to bottom: what query-pci says, waiting for the guest, plugging in and out.
#include "vmm/attach/monitor/shim_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/shim/shim_layout.h"

namespace ringside::vmm {

namespace {

using nlohmann::json;

constexpr const char* kCard = "ringside-card";
constexpr std::string_view kMemories = "ringside-memory-";  // and a number
/// A root port has room for 2 MiB as a rule, and for all of fbt that is enough.
constexpr std::uint64_t kSizes[] = {kLargeShimBytes, 2 << 20};
constexpr unsigned kMemoryBar = 2;
constexpr unsigned kMostDepth = 8;  // of bridges behind bridges
constexpr std::size_t kMostPorts = 16;
constexpr std::uint64_t kHighestPhysical = std::uint64_t{1} << 52;  // of physical addresses
// A guest under a translator on a busy host is slow to look for what was plugged in.
constexpr auto kPlugTimeout = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(25);

json member(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

/// Calls `each` with every device of every bus, as far as query-pci's answer makes sense.
void for_each_device(const json& devices, unsigned depth,
                     const std::function<void(const json&)>& each) {
  if (!devices.is_array() || depth == kMostDepth) return;
  for (const json& device : devices) {
    each(device);
    for_each_device(member(member(device, "pci_bridge"), "devices"), depth + 1, each);
  }
}

Result<std::vector<json>> list_devices(Monitor& monitor) {
  const json buses = TRY(monitor.execute("query-pci"));
  std::vector<json> all;
  if (!buses.is_array()) return all;
  for (const json& bus : buses) {
    for_each_device(member(bus, "devices"), 0,
                    [&all](const json& device) { all.push_back(device); });
  }
  return all;
}

/// The memories of cards, of ours and of an earlier tracer's.
Result<std::vector<std::string>> list_memories(Monitor& monitor) {
  std::vector<std::string> names;
  const json memdevs = TRY(monitor.execute("query-memdev"));
  if (!memdevs.is_array()) return names;
  for (const json& memdev : memdevs) {
    std::string name = json_text(memdev, "id");
    if (name.starts_with(kMemories)) names.push_back(std::move(name));
  }
  return names;
}

Result<void> delete_memories(Monitor& monitor) {
  for (const std::string& name : TRY(list_memories(monitor))) {
    (void)monitor.execute("object-del", {{"id", name}});
  }
  return {};
}

std::string new_memory_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}{}", kMemories,
                     std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

struct Look {
  bool there = false;
  std::optional<GuestMemory::Extent> place;  // once the guest decodes the address
};

Result<Look> look(Monitor& monitor) {
  Look found;
  for (const json& device : TRY(list_devices(monitor))) {
    if (json_text(device, "qdev_id") != kCard) continue;
    found.there = true;
    const json regions = member(device, "regions");
    if (!regions.is_array()) continue;
    for (const json& region : regions) {
      const json bar = member(region, "bar"), at = member(region, "address"),
                 size = member(region, "size");
      // Signed: -1 where the guest decodes none.
      if (bar != kMemoryBar || !at.is_number_integer() || !size.is_number_integer()) continue;
      const auto base = at.get<std::int64_t>(), bytes = size.get<std::int64_t>();
      const bool sound = base > 0 && bytes > 0 && base % arch::kPageSize == 0 &&
                         static_cast<std::uint64_t>(base) < kHighestPhysical &&
                         static_cast<std::uint64_t>(bytes) <= kLargeShimBytes;
      if (!sound) continue;
      found.place = {GuestPhys(static_cast<std::uint64_t>(base)),
                     static_cast<std::uint64_t>(bytes)};
    }
  }
  return found;
}

/// Asks until `done` likes the answer, while the guest runs. False when it never did.
Result<bool> wait_for(Monitor& monitor, const std::function<bool(const Look&)>& done) {
  const auto end = std::chrono::steady_clock::now() + kPlugTimeout;
  for (;;) {
    if (done(TRY(look(monitor)))) return true;
    const json status = TRY(monitor.execute("query-status"));
    if (json_text(status, "status") != "running") return false;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kPause);
  }
}

/// Slots that take a card while the machine runs: ports without one. A bus that has slots of its
/// own is QEMU's choice: "".
Result<std::vector<std::string>> list_buses(Monitor& monitor) {
  std::vector<std::string> buses{""};
  for (const json& device : TRY(list_devices(monitor))) {
    const json bridge = member(device, "pci_bridge");
    const json behind = member(bridge, "devices");
    const std::string name = json_text(device, "qdev_id");
    const bool empty = bridge.is_object() && (!behind.is_array() || behind.empty());
    if (empty && !name.empty() && buses.size() < kMostPorts) buses.push_back(name);
  }
  return buses;
}

Result<void> add_card(Monitor& monitor, const std::string& memory) {
  Error refusal{ErrorCode::Unsupported, ""};
  for (const std::string& bus : TRY(list_buses(monitor))) {
    json arguments{{"driver", "ivshmem-plain"}, {"id", kCard}, {"memdev", memory}};
    if (!bus.empty()) arguments["bus"] = bus;
    const auto added = monitor.execute("device_add", arguments);
    if (added) return {};
    refusal.message = added.error().message;  // of the last: the first knows no ports
  }
  return fail(ErrorCode::Unsupported,
              fmt::format("the machine takes no card while it runs: {}", refusal.message));
}

}  // namespace

Result<std::optional<ShimCard>> ShimCard::find(Monitor& monitor) {
  // A machine without PCI has no such command, or no answer to it.
  const auto found = look(monitor);
  if (!found && found.error().code == ErrorCode::MachineGone) {
    return tl::make_unexpected(found.error());
  }
  if (!found || !found->place) return std::nullopt;
  const auto memories = TRY(list_memories(monitor));
  return ShimCard(*found->place, memories.empty() ? "" : memories.front());
}

Result<ShimCard> ShimCard::plug(Monitor& monitor) {
  if (TRY(look(monitor)).there) {
    return fail(
        ErrorCode::Io,
        "a card that was plugged in before is still there: the guest does not let go of it");
  }
  // A tracer that died between the two steps has left them.
  TRY(delete_memories(monitor));
  Error failure{ErrorCode::Unsupported, ""};
  for (const std::uint64_t size : kSizes) {
    auto card = plug(monitor, size);
    if (card) return card;
    failure = std::move(card).error();
    TRY(unplug(monitor));
  }
  return tl::make_unexpected(std::move(failure));
}

Result<ShimCard> ShimCard::plug(Monitor& monitor, std::uint64_t size) {
  const std::string memory = new_memory_name();
  TRY(monitor.execute(
      "object-add",
      {{"qom-type", "memory-backend-memfd"}, {"id", memory}, {"size", size}, {"share", true}}));
  TRY(add_card(monitor, memory));
  // The guest tries addresses out before it settles for one.
  std::optional<GuestMemory::Extent> last;
  const bool settled = TRY(wait_for(monitor, [&last](const Look& seen) {
    const bool same = seen.place && last && seen.place->base == last->base;
    last = seen.place;
    return same;
  }));
  if (settled && last->size == size) return ShimCard(*last, memory);
  return fail(ErrorCode::Unsupported,
              fmt::format("the guest has given the card of {} MiB no address", size >> 20));
}

bool ShimCard::is_empty(const GuestMemory& memory) const {
  std::vector<std::uint64_t> words(64 << 10);
  const std::uint64_t step = words.size() * sizeof words[0];
  for (std::uint64_t at = 0; at < place_.size; at += step) {
    const auto part = std::as_writable_bytes(std::span(words))
                          .first(std::min<std::uint64_t>(step, place_.size - at));
    if (!memory.read(place_.base.wrapping_add(at), part)) return false;
    if (std::ranges::any_of(words, [](std::uint64_t word) { return word != 0; })) return false;
  }
  return true;
}

Result<void> ShimCard::unplug(Monitor& monitor) {
  if (TRY(look(monitor)).there) {
    // An error says that it was asked before.
    (void)monitor.execute("device_del", {{"id", kCard}});
    if (!TRY(wait_for(monitor, [](const Look& seen) { return !seen.there; }))) {
      return fail(
          ErrorCode::Io,
          "the guest does not let go of the card that was plugged in: it stays, empty, until "
          "the guest does or is reset");
    }
  }
  return delete_memories(monitor);
}

}  // namespace ringside::vmm
