// Machines whose monitor a fake plays in this process. In this file, top to bottom: what can be
// attached to, RAM, pauses, what owners do, the end.
#include "vmm/attach/monitor/monitored_machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vmm/attach/attach.h"
#include "vmm/attach/host/pause_mark.h"
#include "vmm/attach/monitor/fake_monitor_for_tests.h"
#include "vmm/attach/monitor/monitor_socket.h"
#include "vmm/base/host_cpu.h"
#include "vmm/base/own_folder.h"
#include "vmm/qemu/fake_peer.h"

namespace ringside::vmm {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Result<AttachedMachine> attach_to(const FakeMonitor& qemu) {
  return attach({"", QmpTarget{qemu.path()}});
}

/// The message when attaching is refused; "" when it is not.
std::string refusal(const std::string& command, const json& answer) {
  FakeMonitor qemu;
  qemu.say(command, answer);
  const auto machine = attach_to(qemu);
  EXPECT_EQ(qemu.taken(), Words()) << "nothing of it is touched";
  if (machine) return "";
  EXPECT_EQ(machine.error().message.find('\n'), std::string::npos);
  EXPECT_TRUE(machine.error().message.starts_with(qemu.path() + ": "));
  return machine.error().message;
}

/// Waits for something that another thread does.
bool comes_true(const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!what()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(MonitoredMachine, IsNamedByItsOwnerAndHasItsRam) {
  FakeMonitor qemu;
  qemu.ram()[0x30000] = std::byte{7};
  qemu.ram()[FakeMonitor::kLow + 5] = std::byte{8};

  const auto machine = attach_to(qemu);

  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->name, "web1");
  EXPECT_EQ(machine->machine->kind(), "attached qemu (KVM)");
  EXPECT_EQ(machine->machine->vcpu_count(), 1U);
  GuestMemory& memory = machine->machine->memory();
  EXPECT_EQ(memory.size(), FakeMonitor::kLow + FakeMonitor::kHigh);
  std::byte low{}, high{};
  EXPECT_TRUE(memory.read(GuestPhys(0x30000), std::span(&low, 1)));
  EXPECT_TRUE(memory.read(GuestPhys(FakeMonitor::kHighBase + 5), std::span(&high, 1)));
  EXPECT_EQ(low, std::byte{7});
  EXPECT_EQ(high, std::byte{8});
  EXPECT_FALSE(memory.read(GuestPhys(FakeMonitor::kLow), std::span(&low, 1))) << "a hole";
}

TEST(MonitoredMachine, RefusesWhatItCannotTrace) {
  EXPECT_TRUE(has(refusal("query-target", {{"arch", "aarch64"}}), "processor is aarch64"));
  EXPECT_TRUE(has(refusal("query-status", {{"status", "inmigrate"}}), "comes from another host"));
  EXPECT_TRUE(has(refusal("query-status", {{"status", "prelaunch"}}), "not been started"));
  EXPECT_TRUE(has(refusal("query-status", {{"status", "postmigrate"}}), "moved elsewhere"));
  EXPECT_TRUE(has(refusal("query-status", {{"status", "suspended"}}), "its guest sleeps"));
  EXPECT_TRUE(has(refusal("query-migrate", {{"status", "active"}}), "saves it, or moves it"));
  EXPECT_TRUE(has(refusal("query-sev", {{"enabled", true}}), "SEV"));
  FakeMonitor tdx;
  tdx.answer("qom-get", [](const json& of) {
    return of.value("property", "") == "type" ? "tdx-guest" : "/objects/tdx0";
  });
  EXPECT_TRUE(has(attach_to(tdx).error().message, "encrypted (tdx-guest)"));
  EXPECT_TRUE(
      has(refusal("query-chardev",
                  json::array({{{"label", "gdb"}, {"filename", "disconnected:tcp:::1234"}}})),
          "its gdbserver is its owner's (disconnected:tcp:::1234)"));
}

TEST(MonitoredMachine, BelievesNoQemuThatIsAnotherProcess) {
  EXPECT_TRUE(has(refusal("query-cpus-fast", json::array({{{"cpu-index", 0}, {"thread-id", 1}}})),
                  "is not the QEMU that answers"));
}

TEST(MonitoredMachine, RefusesNonsenseInOneLine) {
  for (const char* command :
       {"query-target", "query-status", "query-cpus-fast", "query-kvm", "query-chardev",
        "query-memdev", "hmp info mtree -f", "hmp gpa2hva"}) {
    for (const json& nonsense :
         {json(), json(7), json("x\n\x1b[2J"), json::array(), json::array({1, "two", nullptr}),
          json::object(), json{{"status", 3}, {"arch", json::array()}, {"enabled", "yes"}}}) {
      if (std::string(command) == "query-chardev" && nonsense.is_array())
        continue;  // there are none
      EXPECT_NE(refusal(command, nonsense), "") << command << " " << nonsense;
    }
  }
}

TEST(MonitoredMachine, RefusesAddressesThatTheProcessHasNotGot) {
  const auto address = [](const std::string& of) {
    return "Host virtual address for 0x0 (pc.ram) is " + of + "\r\n";
  };
  EXPECT_NE(refusal("hmp gpa2hva", address("0x1000")), "") << "the same for all";
  FakeMonitor qemu;
  qemu.answer("hmp gpa2hva", [&](const json& line) {
    const std::uint64_t at = std::stoull(line.get<std::string>().substr(8), nullptr, 16);
    const std::uint64_t offset =
        at < FakeMonitor::kHighBase ? at : at - FakeMonitor::kHighBase + FakeMonitor::kLow;
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "0x%zx", std::size_t{0x10000 + offset});
    return address(text.data());
  });

  const auto machine = attach_to(qemu);

  ASSERT_FALSE(machine);
  EXPECT_TRUE(has(machine.error().message, "cannot be read")) << machine.error().message;
  EXPECT_FALSE(has(machine.error().message, "is not for us")) << "no rule refuses it";
}

TEST(MonitoredMachine, IsOneRingsidesAtATime) {
  FakeMonitor one, other;
  const auto first = attach_to(one);

  const auto second = attach_to(other);  // the same process

  ASSERT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_TRUE(
      has(second.error().message, "already attached to by process " + std::to_string(getpid())))
      << second.error().message;
}

Result<ObservedMachine> look_at(const FakeMonitor& qemu) {
  return vmm::look_at({"", QmpTarget{qemu.path()}});
}

/// A vCPU in user mode at `rip`, as QEMU prints it.
std::string printed(std::uint64_t rip, unsigned number = 0) {
  constexpr const char* kOthers[] = {"RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP",
                                     "RSP", "R8 ", "R9 ", "R10", "R11", "R12", "R13",
                                     "R14", "R15", "CR0", "CR3", "CR4", "EFER"};
  std::string text =
      fmt::format("\r\nCPU#{}\r\nRIP={:016x} RFL=00000202 [-------] CPL=3\r\n", number, rip);
  for (const char* name : kOthers) text += fmt::format("{}=0000000000000000\r\n", name);
  for (const char* name : {"CS", "SS", "FS", "GS"}) {
    text += fmt::format("{} =0033 0000000000000000 ffffffff 00a0fb00 DPL=3\r\n", name);
  }
  return text;
}

std::uint64_t rip_of(Machine& machine) {
  auto paused = PausedMachine::pause(machine);
  EXPECT_TRUE(paused) << paused.error().message;
  if (!paused) return 0;
  const auto registers = paused->registers(0);
  EXPECT_TRUE(registers) << registers.error().message;
  return registers ? registers->rip : 0;
}

TEST(MonitoredMachine, IsNotStoppedWhereItsCheckRefuses) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  bool answers = false;
  machine->machine->vcpus().set_stop_check([&answers]() -> Result<void> {
    if (answers) return {};
    return fail(ErrorCode::Io, "its storage does not answer");
  });

  const auto refused = PausedMachine::pause(*machine->machine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "its storage does not answer");
  EXPECT_EQ(qemu.taken(), Words());

  answers = true;
  EXPECT_TRUE(PausedMachine::pause(*machine->machine));
  EXPECT_EQ(qemu.taken(), Words({"stop", "cont"}));
}

/// QEMU's list of vCPUs of these numbers.
json listed(std::initializer_list<int> numbers) {
  json vcpus = json::array();
  for (const int number : numbers) {
    vcpus.push_back({{"cpu-index", number}, {"thread-id", getpid()}});
  }
  return vcpus;
}

/// QEMU's gdbstub, as a fake monitor lets it be opened, on a thread. `answer` gives what it says to
/// a request.
class FakeGdbstub {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  FakeGdbstub(FakeMonitor& qemu, Answer answer)
      : thread_([this, &qemu, answer = std::move(answer)] { serve(qemu, answer); }) {}
  ~FakeGdbstub() {
    stop_.store(true);
    thread_.join();
  }

 private:
  void serve(FakeMonitor& qemu, const Answer& answer) {
    UniqueFd client;
    std::string pending;
    while (!stop_.load()) {
      if (UniqueFd next = qemu.take_debugger()) {
        client = std::move(next);
        pending.clear();
      }
      pollfd entry{client.get(), POLLIN, 0};
      if (poll(&entry, 1, 5) <= 0) continue;
      std::array<char, 4096> chunk;
      const ssize_t got = read(client.get(), chunk.data(), chunk.size());
      if (got <= 0) {
        client.reset();
        continue;
      }
      pending.append(chunk.data(), static_cast<std::size_t>(got));
      for (std::size_t end;
           (end = pending.find('#')) != std::string::npos && pending.size() >= end + 3;) {
        const std::string said = answer(pending.substr(0, end).substr(pending.find('$') + 1));
        (void)!::send(client.get(), said.data(), said.size(), MSG_NOSIGNAL);
        pending.erase(0, end + 3);
      }
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// A translator of these vCPUs, whose changes of code and registers need its gdbstub.
void play_translator(FakeMonitor& qemu, std::initializer_list<int> vcpus) {
  qemu.say("query-kvm", {{"enabled", false}, {"present", true}});
  qemu.say("query-cpus-fast", listed(vcpus));
}

TEST(MonitoredMachine, AsksTheGdbstubForVcpusAsQemuNumbersThem) {
  FakeMonitor qemu;
  play_translator(qemu, {0, 3});
  std::mutex mutex;
  Words asked;
  FakeGdbstub stub(qemu, [&](const std::string& request) {
    const std::lock_guard lock(mutex);
    asked.push_back(request);
    if (request == "?") return gdb_packet("T05thread:01;");
    return gdb_packet(request == "g" ? std::string(1216, '0') : "OK");
  });
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  {
    auto paused = PausedMachine::pause(*machine->machine);
    ASSERT_TRUE(paused) << paused.error().message;
    const auto registers = paused->registers(1);
    ASSERT_TRUE(registers) << registers.error().message;
  }

  const std::lock_guard lock(mutex);
  EXPECT_EQ(asked, Words({"?", "Hg4", "g"}));
}

// The guest runs when a request comes: its first byte stops the guest, and the rest is dropped.
TEST(MonitoredMachine, IsPausedAgainWhereItsOwnerLetsItRunInAPause) {
  FakeMonitor qemu;
  play_translator(qemu, {0});
  std::atomic<bool> runs{false};
  FakeGdbstub stub(qemu, [&](const std::string& request) {
    if (request == "?") return gdb_packet("T05thread:01;");
    if (request == "g") return gdb_packet(std::string(1216, '0'));
    if (!runs.exchange(false)) return gdb_packet("OK");
    qemu.send_event_now("RESUME");
    qemu.set_running(false);
    qemu.send_event_now("STOP");
    return kStopped;
  });
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  {
    auto paused = PausedMachine::pause(*machine->machine);
    ASSERT_TRUE(paused) << paused.error().message;
    ASSERT_TRUE(paused->registers(0));
  }

  qemu.set_running(false);
  qemu.send_event_now("STOP");
  {
    auto paused = PausedMachine::pause(*machine->machine);
    ASSERT_TRUE(paused) << paused.error().message;
    runs = true;
    const auto lost = paused->registers(0);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, ErrorCode::NotFound) << lost.error().message;
    EXPECT_TRUE(has(lost.error().message, "owner let it run while it was paused for us"));
  }
  EXPECT_TRUE(comes_true([&] { return qemu.running(); })) << "as its owner wants it";

  auto again = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->registers(0)) << "by a new connection";
}

// Libvirt's word of what the owner has done comes late; what QEMU's gdbstub says comes in time.
TEST(MonitoredMachine, GoesOnWhereComingToItsGdbstubHasStoppedIt) {
  FakeMonitor qemu;
  play_translator(qemu, {0});
  FakeGdbstub stub(qemu, [&](const std::string& request) {
    if (request == "g") return gdb_packet(std::string(1216, '0'));
    if (request != "?") return gdb_packet("OK");
    qemu.set_running(false);
    return kStopped + gdb_packet("T05thread:01;");
  });
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  qemu.set_running(false);
  {
    auto paused = PausedMachine::pause(*machine->machine);
    ASSERT_TRUE(paused) << paused.error().message;
    qemu.set_running(true);  // its owner, of whom no event has come

    (void)paused->registers(0);

    EXPECT_FALSE(qemu.running());
  }
  EXPECT_TRUE(qemu.running());
}

/// A way to a QEMU that can be lost, as libvirt's is where its daemon starts anew.
class LossyMonitor final : public Monitor {
 public:
  explicit LossyMonitor(std::unique_ptr<MonitorSocket> qemu) : qemu_(std::move(qemu)) {}

  /// At the next such command. Of a `stop` the answer is lost, QEMU does not see any other.
  void lose_at(const std::string& command) {
    const std::lock_guard lock(mutex_);
    last_ = command;
  }
  void come_back() {
    const std::lock_guard lock(mutex_);
    is_lost_ = false;
    changes_.push_back(Change::MadeAnew);
  }

  using Monitor::execute;
  Result<json> execute(std::string_view command, const json& arguments) override {
    const std::lock_guard lock(mutex_);
    if (is_lost_) return fail(ErrorCode::NotFound, "the daemon has ended");
    if (command != last_) return qemu_->execute(command, arguments);
    if (command == "stop") (void)qemu_->execute(command, arguments);
    is_lost_ = true;
    last_.clear();
    changes_.push_back(Change::Lost);
    return fail(ErrorCode::NotFound, "the connection was closed");
  }
  Result<void> pass_descriptor(std::string_view name, int descriptor) override {
    return qemu_->pass_descriptor(name, descriptor);
  }
  int event_fd() const override { return qemu_->event_fd(); }
  Result<std::vector<QmpEvent>> take_events() override { return qemu_->take_events(); }
  std::vector<Change> take_changes() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(changes_, {});
  }

 private:
  const std::unique_ptr<MonitorSocket> qemu_;
  std::mutex mutex_;  // what follows
  std::string last_;
  bool is_lost_ = false;
  std::vector<Change> changes_;
};

/// A machine by a way that can be lost.
struct LossyMachine {
  LossyMonitor* way = nullptr;
  std::unique_ptr<MonitoredMachine> machine;
};

Result<LossyMachine> attach_lossy(const FakeMonitor& qemu) {
  auto way = std::make_unique<LossyMonitor>(TRY(MonitorSocket::connect(qemu.path())));
  LossyMachine made{way.get(), nullptr};
  made.machine = TRY(MonitoredMachine::attach({std::move(way), getpid(), -1}, CardUse::None));
  return made;
}

TEST(MonitoredMachine, GoesOnWhenTheWayThatWasLostInAPauseIsBack) {
  FakeMonitor qemu;
  std::optional<FakeGdbstub> stub;
  stub.emplace(qemu, [](const std::string&) { return gdb_packet("T05thread:01;"); });
  auto lossy = attach_lossy(qemu);
  ASSERT_TRUE(lossy) << lossy.error().message;
  Machine& machine = *lossy->machine;
  {
    auto paused = PausedMachine::pause(machine);
    ASSERT_TRUE(paused) << paused.error().message;
    lossy->way->lose_at("cont");
    stub.reset();  // nor is there a way by that
  }
  EXPECT_FALSE(qemu.running());
  const auto meanwhile = PausedMachine::pause(machine);
  ASSERT_FALSE(meanwhile);
  EXPECT_EQ(meanwhile.error().code, ErrorCode::NotFound) << "it may hold later";

  lossy->way->come_back();
  qemu.send_event_now("RTC_CHANGE");

  EXPECT_TRUE(comes_true([&] { return qemu.running(); }));
  EXPECT_TRUE(PausedMachine::pause(machine));
  EXPECT_TRUE(qemu.running());
  std::string told;
  for (const std::string& news : machine.status().take_news()) told += news + "\n";
  EXPECT_TRUE(has(told, "is lost, and looked for")) << told;
  EXPECT_TRUE(has(told, "is back")) << told;
}

TEST(MonitoredMachine, GoesOnByItsGdbstubWhereTheWayIsLostInAPause) {
  for (const char* last : {"cont", "stop"}) {
    FakeMonitor qemu;
    play_translator(qemu, {0});
    FakeGdbstub stub(qemu, [&](const std::string& request) -> std::string {
      if (request == "?") return gdb_packet("T05thread:01;");
      if (request == "g") return gdb_packet(std::string(1216, '0'));
      if (request == "qC") return gdb_packet("QC1");
      if (request != "c") return gdb_packet("OK");
      qemu.set_running(true);
      return "";
    });
    auto lossy = attach_lossy(qemu);
    ASSERT_TRUE(lossy) << lossy.error().message;
    Machine& machine = *lossy->machine;
    {
      auto paused = PausedMachine::pause(machine);
      ASSERT_TRUE(paused && paused->registers(0));
    }

    lossy->way->lose_at(last);
    { const auto paused = PausedMachine::pause(machine); }

    EXPECT_TRUE(comes_true([&] { return qemu.running(); })) << last;
  }
}

TEST(ObservedMachine, IsStoppedForItsRegistersAndNeedsNoDebugger) {
  FakeMonitor qemu;
  qemu.say("hmp info registers -a", printed(0x1234));
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  EXPECT_EQ(rip_of(*machine->machine), 0x1234U);

  EXPECT_EQ(machine->name, "web1");
  EXPECT_EQ(machine->stopped_by, std::nullopt);
  EXPECT_EQ(machine->limits, Words());
  EXPECT_EQ(qemu.taken(), Words({"stop", "cont"}));
}

// Of -smp 2,maxcpus=4 with core 3 plugged in QEMU lists the vCPUs 0, 1 and 3.
TEST(ObservedMachine, NumbersItsVcpusInARowWhereQemuDoesNot) {
  FakeMonitor qemu;
  qemu.say("query-cpus-fast", listed({0, 1, 3}));
  qemu.say("hmp info registers -a", printed(0x10) + printed(0x11, 1) + printed(0x13, 3));
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->machine->vcpu_count(), 3U);

  auto paused = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(paused) << paused.error().message;

  const auto last = paused->registers(2);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->rip, 0x13U);
  EXPECT_FALSE(paused->registers(3));
}

TEST(ObservedMachine, FollowsVcpusThatArePluggedInAndOut) {
  FakeMonitor qemu;
  qemu.say("query-cpus-fast", listed({0, 1}));
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  const auto seen = [&] {
    std::vector<std::uint64_t> pcs;
    auto paused = PausedMachine::pause(*machine->machine);
    EXPECT_TRUE(paused) << paused.error().message;
    for (unsigned vcpu = 0; vcpu < paused->vcpu_count(); ++vcpu) {
      const auto registers = paused->registers(vcpu);
      EXPECT_TRUE(registers) << registers.error().message;
      if (registers) pcs.push_back(registers->rip);
    }
    return pcs;
  };

  qemu.say("hmp info registers -a", printed(0x10) + printed(0x11, 1));
  EXPECT_EQ(seen(), (std::vector<std::uint64_t>{0x10, 0x11}));

  qemu.say("query-cpus-fast", listed({0, 1, 3, 2}));
  qemu.send_event_next("ACPI_DEVICE_OST");
  qemu.say("hmp info registers -a",
           printed(0x10) + printed(0x11, 1) + printed(0x13, 3) + printed(0x12, 2));
  EXPECT_EQ(seen(), (std::vector<std::uint64_t>{0x10, 0x11, 0x13, 0x12}));

  qemu.say("query-cpus-fast", listed({0, 3, 2}));
  qemu.send_event_next("DEVICE_DELETED");
  qemu.say("hmp info registers -a", printed(0x10) + printed(0x13, 3) + printed(0x12, 2));
  EXPECT_EQ(seen(), (std::vector<std::uint64_t>{0x10, 0x13, 0x12}));
}

TEST(MonitoredMachine, AsksForItsVcpusOnceUntilAnEventTellsThatTheyMayDiffer) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  std::atomic<unsigned> asked{0};
  const auto answer_with = [&](json vcpus) {
    qemu.answer("query-cpus-fast", [&asked, vcpus = std::move(vcpus)](const auto&) {
      ++asked;
      return vcpus;
    });
  };
  const auto pause = [&] { return PausedMachine::pause(*machine->machine).has_value(); };

  answer_with(listed({0}));
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(pause());
  EXPECT_EQ(asked, 1U);

  answer_with(listed({}));
  qemu.send_event_next("ACPI_DEVICE_OST");
  EXPECT_FALSE(pause()) << "which there are is not known";
  answer_with(listed({0, 3}));
  EXPECT_TRUE(pause()) << "it asks again";
  EXPECT_EQ(machine->machine->vcpu_count(), 2U);
  EXPECT_TRUE(pause());
  EXPECT_EQ(asked, 3U);
}

TEST(ObservedMachine, LetsTheGuestGoWhereItsVcpusMakeNoSense) {
  json many = json::array();
  for (int n = 0; n < 4097; ++n) many.push_back({{"cpu-index", n}});
  for (const json& nonsense :
       {listed({0, 1, 1}), listed({0, 4096}), listed({-1}), listed({}), many, json("no list"),
        json::array({{{"cpu-index", "0"}}}), json::array({nullptr})}) {
    FakeMonitor qemu;
    const auto machine = look_at(qemu);
    ASSERT_TRUE(machine) << machine.error().message;
    qemu.say("query-cpus-fast", nonsense);

    EXPECT_FALSE(PausedMachine::pause(*machine->machine)) << nonsense;
    EXPECT_EQ(qemu.taken(), Words({"stop", "cont"})) << nonsense;
    EXPECT_TRUE(qemu.running());
  }
}

TEST(ObservedMachine, IsLookedAtWhileItRunsFromWhenItIsAskedFor) {
  FakeMonitor qemu;
  qemu.say("hmp info registers -a", printed(0x1234));
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  EXPECT_TRUE(machine->machine->vcpus().look_while_they_run());
  EXPECT_FALSE(machine->machine->vcpus().look_while_they_run()) << "it does already";
  EXPECT_EQ(rip_of(*machine->machine), 0x1234U);
  EXPECT_EQ(qemu.taken(), Words());
}

TEST(ObservedMachine, CannotBeWrittenTo) {
  for (const bool in_file : {false, true}) {
    const UniqueFd file(memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(file.get(), FakeMonitor::kLow + FakeMonitor::kHigh), 0);
    ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    FakeMonitor qemu(in_file ? file.get() : -1);
    qemu.ram()[0x5000] = std::byte{3};
    const auto machine = look_at(qemu);
    ASSERT_TRUE(machine) << machine.error().message;
    GuestMemory& memory = machine->machine->memory();

    std::byte byte{7};
    EXPECT_FALSE(memory.write(GuestPhys(0x5000), std::span(&byte, 1)));
    EXPECT_TRUE(memory.mapping(GuestPhys(0x5000), 1).empty());

    EXPECT_TRUE(memory.read(GuestPhys(0x5000), std::span(&byte, 1)));
    EXPECT_EQ(byte, std::byte{3});
  }
}

TEST(ObservedMachine, IsNotStoppedBesideWhoIsAttached) {
  FakeMonitor traced, qemu;
  const auto tracer = attach_to(traced);
  ASSERT_TRUE(tracer);
  qemu.say("hmp info registers -a", printed(0x1234));

  const auto machine = look_at(qemu);  // the same process

  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(rip_of(*machine->machine), 0x1234U);
  EXPECT_EQ(qemu.taken(), Words());
  ASSERT_EQ(machine->limits.size(), 1U);
  EXPECT_TRUE(has(machine->limits[0], "process " + std::to_string(getpid()))) << machine->limits[0];
}

TEST(ObservedMachine, IsNotStoppedWhereItsOwnersDebuggerWouldBeTold) {
  FakeMonitor qemu;
  qemu.say("hmp info registers -a", printed(0x1234));
  const auto device = [](const char* file) {
    return json::array({{{"label", "gdb"}, {"filename", file}}});
  };
  qemu.say("query-chardev", device("tcp:127.0.0.1:1234,server <-> 127.0.0.1:50000"));
  {
    const auto machine = look_at(qemu);
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(rip_of(*machine->machine), 0x1234U);
    EXPECT_EQ(machine->limits.size(), 1U);
  }
  EXPECT_EQ(qemu.taken(), Words());

  qemu.say("query-chardev", device("disconnected:tcp:::1234,server=on"));
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(rip_of(*machine->machine), 0x1234U);
  EXPECT_EQ(machine->limits, Words()) << "nobody would be told";
  EXPECT_EQ(qemu.taken(), Words({"stop", "cont"}));
}

TEST(ObservedMachine, SaysWhyItStandsStill) {
  const auto why = [](const char* status) {
    FakeMonitor qemu;
    qemu.say("hmp info registers -a", printed(0x1234));
    qemu.say("query-status", {{"status", status}});
    const auto machine = look_at(qemu);
    EXPECT_TRUE(machine) << machine.error().message;
    if (!machine) return std::string();
    EXPECT_EQ(rip_of(*machine->machine), 0x1234U);
    EXPECT_EQ(qemu.taken(), Words()) << status;
    return machine->stopped_by.value_or("it runs");
  };

  EXPECT_TRUE(has(why("paused"), "its owner has paused it"));
  EXPECT_TRUE(has(why("suspended"), "sleeps"));
  EXPECT_TRUE(has(why("io-error"), "error of a disk on the host"));
  EXPECT_TRUE(has(why("prelaunch"), "has not started it"));
  EXPECT_TRUE(has(why("shutdown"), "has shut down"));
  EXPECT_TRUE(has(why("colo"), "QEMU has stopped it (colo)"));
}

TEST(ObservedMachine, NamesDrivesThatQemuSlowsDown) {
  const auto drives_of = [](const json& drives) {
    FakeMonitor qemu;
    qemu.say("hmp info registers -a", printed(0x1234));
    qemu.say("query-block", drives);
    const auto machine = look_at(qemu);
    EXPECT_TRUE(machine) << machine.error().message;
    return machine ? machine->throttled_drives() : Words();
  };
  const json inserted = {{"file", "/v/d.img"}, {"iops", 0}, {"iops_rd", 5}, {"bps", 4096}};
  const json slow = {{"device", "d0"}, {"inserted", inserted}};
  const json quick = {{"device", "d1"}, {"inserted", {{"iops", 0}, {"bps", -1}}}};

  EXPECT_EQ(drives_of(json::array({quick, slow, json{{"device", "cd"}}})),
            Words({"QEMU lets its drive d0 (/v/d.img) have 5 reads, 4096 bytes a second at most "
                   "(throttling)"}));
  for (const json& nonsense : {json(5), json::array({5}), json::array({json{{"inserted", 3}}}),
                               json::array({json{{"inserted", {{"iops", "x"}}}}})}) {
    EXPECT_EQ(drives_of(nonsense), Words()) << nonsense.dump();
  }
}

TEST(ObservedMachine, NamesTheDriveWhoseErrorHasStoppedIt) {
  const auto why = [](const json& drives) {
    FakeMonitor qemu;
    qemu.say("hmp info registers -a", printed(0x1234));
    qemu.say("query-status", {{"status", "io-error"}});
    qemu.say("query-block", drives);
    const auto machine = look_at(qemu);
    EXPECT_TRUE(machine) << machine.error().message;
    return machine ? machine->stopped_by.value_or("it runs") : std::string();
  };
  const json good = {{"device", "cd0"}, {"io-status", "ok"}};
  const json broken = {{"device", "d\x1b"}, {"io-status", "failed"}};
  const json full = {{"device", ""},
                     {"qdev", "disk0"},
                     {"io-status", "nospace"},
                     {"inserted", {{"file", "/v/d.img"}}}};

  EXPECT_TRUE(has(why(json::array({good, full})),
                  "its drive disk0 (/v/d.img) has no space left on the host"));
  EXPECT_TRUE(has(why(json::array({broken})), "its drive d? has failed on the host"));
  for (const json& nonsense : {json(good), json::array({good}), json::array({5}),
                               json::array({json{{"io-status", 7}, {"inserted", 3}}})}) {
    EXPECT_TRUE(has(why(nonsense), "error of a disk on the host")) << nonsense.dump();
  }
}

TEST(ObservedMachine, IsRefusedWhereThereIsNothingToLookAt) {
  const auto refused = [](const std::string& command, const json& answer) {
    FakeMonitor qemu;
    qemu.say(command, answer);
    const auto machine = look_at(qemu);
    EXPECT_EQ(qemu.taken(), Words());
    return machine ? std::string() : machine.error().message;
  };

  EXPECT_TRUE(has(refused("query-status", {{"status", "inmigrate"}}), "comes from another host"));
  EXPECT_TRUE(has(refused("query-status", json::object()), "does not say whether"));
  EXPECT_TRUE(has(refused("query-target", {{"arch", "aarch64"}}), "processor is aarch64"));
  EXPECT_TRUE(has(refused("query-sev", {{"enabled", true}}), "encrypted (SEV)"));
}

// Whose guardian would hold the monitor until the memory is there, which may be never.
TEST(ObservedMachine, IsNotStoppedWhileItsMemoryArrives) {
  const auto refused = [](const char* status, const char* migration, auto look) {
    FakeMonitor qemu;
    qemu.say("query-status", {{"status", status}});
    qemu.say("query-migrate", {{"status", migration}});
    const auto machine = look(qemu);
    EXPECT_EQ(qemu.taken(), Words());
    return machine ? std::string() : machine.error().message;
  };
  const auto looked = [](const FakeMonitor& qemu) { return look_at(qemu); };
  const auto attached = [](const FakeMonitor& qemu) { return attach_to(qemu); };

  for (const char* state : {"postcopy-active", "postcopy-paused", "postcopy-recover"}) {
    const std::string words =
        fmt::format("memory still arrives from another host (query-migrate: {})", state);
    EXPECT_TRUE(has(refused("running", state, looked), words));
    EXPECT_TRUE(has(refused("paused", state, looked), words));
    EXPECT_TRUE(has(refused("running", state, attached), words));
  }
  EXPECT_TRUE(has(refused("inmigrate", "active", looked), "(query-migrate: active)"));
  EXPECT_EQ(refused("postmigrate", "postcopy-active", looked), "") << "it is whole where it was";
  EXPECT_EQ(refused("running", "completed", looked), "");
}

TEST(ObservedMachine, LacksRegistersThatQemuPrintsAsNonsense) {
  FakeMonitor qemu;
  qemu.say("hmp info registers -a", "CPU#0\r\nno\r\n");
  const auto machine = look_at(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  auto paused = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(paused);
  EXPECT_FALSE(paused->registers(0));
}

TEST(MonitoredMachine, MapsRamThatNobodyCanShrink) {
  const UniqueFd file(memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), FakeMonitor::kLow + FakeMonitor::kHigh), 0);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  FakeMonitor qemu(file.get());

  const auto machine = attach_to(qemu);

  ASSERT_TRUE(machine) << machine.error().message;
  const auto mapped = machine->machine->memory().mapping(GuestPhys(FakeMonitor::kHighBase), 4096);
  ASSERT_FALSE(mapped.empty());
  qemu.ram()[FakeMonitor::kLow] = std::byte{9};
  EXPECT_EQ(mapped[0], std::byte{9});
}

TEST(MonitoredMachine, SurvivesRamThatItsOwnerShrinks) {
  const UniqueFd file(memfd_create("ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), FakeMonitor::kLow + FakeMonitor::kHigh), 0);
  FakeMonitor qemu(file.get());
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  GuestMemory& memory = machine->machine->memory();
  const auto present = memory.present_extents();
  EXPECT_LE(present.size(), 1U) << "holes are not read, but for the page that showed that we may";
  std::byte byte{1};
  EXPECT_TRUE(memory.write(GuestPhys(0x5000), std::span(&byte, 1)));
  EXPECT_EQ(qemu.ram()[0x5000], std::byte{1});

  ASSERT_EQ(ftruncate(file.get(), 0), 0);

  EXPECT_FALSE(memory.read(GuestPhys(0x5000), std::span(&byte, 1)));
  EXPECT_FALSE(memory.write(GuestPhys(0x5000), std::span(&byte, 1)));
}

TEST(MonitoredMachine, SeesPagesThatABalloonTookAsZeros) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  GuestMemory& memory = machine->machine->memory();
  std::byte byte{7};
  ASSERT_TRUE(memory.write(GuestPhys(0x400000), std::span(&byte, 1)));
  const auto holds = [&](std::uint64_t at) {
    const auto present = memory.present_extents();
    return std::ranges::any_of(present, [&](const GuestMemory::Extent& extent) {
      return GuestPhys(at).is_in(extent.base, extent.size);
    });
  };
  ASSERT_TRUE(holds(0x400000));

  ASSERT_EQ(madvise(qemu.ram() + 0x200000, 4 << 20, MADV_DONTNEED), 0);

  EXPECT_FALSE(holds(0x400000)) << "nothing is there to be scanned";
  EXPECT_TRUE(memory.read(GuestPhys(0x400000), std::span(&byte, 1)));
  EXPECT_EQ(byte, std::byte{0});
}

TEST(MonitoredMachine, FollowsMemoryThatIsPluggedInAndOut) {
  FakeMonitor qemu;
  constexpr std::uint64_t kPlace = 0x1'4000'0000;
  qemu.say("hmp info mtree",
           "  0000000140000000-000000017fffffff (prio 0, i/o): device-memory\r\n");
  const auto host = static_cast<void*>(qemu.ram());
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  GuestMemory& memory = machine->machine->memory();
  std::byte byte{};
  EXPECT_FALSE(memory.read(GuestPhys(kPlace), std::span(&byte, 1)));
  void* const more =
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(more, MAP_FAILED);
  *static_cast<char*>(more) = 5;
  const auto look = [&](const std::string& name, const std::string& line) {
    qemu.say("query-memdev",
             json::array({{{"id", "pc.ram"}, {"size", FakeMonitor::kLow + FakeMonitor::kHigh}},
                          {{"id", "dimm"}, {"size", 1 << 20}}}));
    qemu.say("hmp info mtree -f", FakeMonitor::tree() + line);
    qemu.send_event_now(name);
  };
  qemu.answer("hmp gpa2hva", [&](const json& line) {
    const std::uint64_t at = std::stoull(line.get<std::string>().substr(8), nullptr, 16);
    const bool plugged = at >= kPlace;
    const std::uint64_t address =
        plugged
            ? reinterpret_cast<std::uint64_t>(more) + (at - kPlace)
            : reinterpret_cast<std::uint64_t>(host) +
                  (at < FakeMonitor::kHighBase ? at
                                               : at - FakeMonitor::kHighBase + FakeMonitor::kLow);
    std::array<char, 100> text;
    std::snprintf(text.data(), text.size(), "Host virtual address for 0x0 (%s) is 0x%zx\r\n",
                  plugged ? "dimm" : "pc.ram", std::size_t{address});
    return json(text.data());
  });

  look("ACPI_DEVICE_OST", "  0000000140000000-00000001400fffff (prio 0, ram): dimm\r\n");

  EXPECT_TRUE(comes_true([&] { return memory.read(GuestPhys(kPlace), std::span(&byte, 1)); }));
  EXPECT_EQ(byte, std::byte{5});
  EXPECT_FALSE(memory.read(GuestPhys(kPlace + (1 << 20)), std::span(&byte, 1)));
  look("DEVICE_DELETED", "");
  EXPECT_TRUE(comes_true([&] { return !memory.read(GuestPhys(kPlace), std::span(&byte, 1)); }));
  munmap(more, 1 << 20);
}

TEST(MonitoredMachine, StopsOnceForNestedPausesAndLetsGoOnce) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  {
    const auto outer = PausedMachine::pause(*machine->machine);
    const auto inner = PausedMachine::pause(*machine->machine);
    ASSERT_TRUE(outer && inner);
    EXPECT_FALSE(qemu.running());
  }

  EXPECT_TRUE(qemu.running());
  EXPECT_EQ(qemu.taken(), (Words{"stop", "cont"}));
  EXPECT_TRUE(machine->machine->status().take_news().empty()) << "pauses of ours are no news";
}

TEST(MonitoredMachine, WritesCodeDirectlyUnderKvm) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  auto paused = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(paused);
  const CodeWrite writes[] = {{GuestPhys(0x5000), 0xcc},
                              {GuestPhys(FakeMonitor::kLow), 0xcc},  // no RAM
                              {GuestPhys(0x6000), 0xcc}};

  const auto written = paused->write_code(writes);

  ASSERT_FALSE(written);
  EXPECT_TRUE(has(written.error().message, "0x1000000"));
  EXPECT_EQ(qemu.ram()[0x5000], std::byte{0xcc});
  EXPECT_EQ(qemu.ram()[0x6000], std::byte{0xcc});
}

/// A runtime folder in which a ringside that was killed has left a mark of its pause of this
/// process's machine.
class LeftPause {
 public:
  LeftPause() {
    char folder[] = "/tmp/ringside-pause-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    setenv("XDG_RUNTIME_DIR", folder, 1);
    ringside_ = fork();
    if (ringside_ == 0) {
      PauseMark(getppid()).set();
      raise(SIGKILL);
    }
    waitpid(ringside_, nullptr, 0);
  }
  ~LeftPause() {
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  LeftPause(const LeftPause&) = delete;
  LeftPause& operator=(const LeftPause&) = delete;
  pid_t ringside() const { return ringside_; }

 private:
  std::string folder_;
  pid_t ringside_;
};

TEST(MonitoredMachine, GoesOnFromAPauseThatAKilledRingsideHasLeft) {
  FakeMonitor qemu;
  const LeftPause left;
  qemu.set_running(false);

  const auto machine = attach_to(qemu);

  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->let_go_of, left.ringside());
  EXPECT_EQ(machine->stopped_by, std::nullopt);
  EXPECT_EQ(qemu.taken(), Words({"cont"}));
}

TEST(MonitoredMachine, StaysInAPauseThatCameAfterTheLeftOneWasOver) {
  FakeMonitor qemu;
  const LeftPause left;
  EXPECT_TRUE(attach_to(qemu)) << "which sees it run";
  qemu.set_running(false);

  const auto machine = attach_to(qemu);

  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->let_go_of, std::nullopt);
  EXPECT_EQ(machine->stopped_by, "its owner has paused it");
  EXPECT_EQ(qemu.taken(), Words());
}

TEST(ObservedMachine, IsToldToStandInAPauseThatAKilledRingsideHasLeft) {
  FakeMonitor qemu;
  const LeftPause left;
  qemu.set_running(false);

  const auto machine = look_at(qemu);

  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->stopped_by,
            fmt::format("a ringside that was killed (process {}) has paused it; `ringside clean` "
                        "lets it go on",
                        left.ringside()));
  EXPECT_EQ(qemu.taken(), Words());
}

TEST(MonitoredMachine, LeavesAMarkOnlyWhileItIsPaused) {
  FakeMonitor qemu;
  const LeftPause folder;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  const auto marks = [] {
    const std::filesystem::directory_iterator files(runtime_folder());
    return std::count_if(begin(files), end(files),
                         [](const auto& file) { return file.file_size() != 0; });
  };

  EXPECT_EQ(marks(), 0);
  for (int n = 0; n < 2; ++n) {
    {
      const auto paused = PausedMachine::pause(*machine->machine);
      EXPECT_EQ(marks(), 1);
    }
    EXPECT_EQ(marks(), 0) << "it tells nothing";
  }
}

TEST(MonitoredMachine, LeavesAGuestThatWasPausedPaused) {
  FakeMonitor qemu;
  qemu.set_running(false);
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  { ASSERT_TRUE(PausedMachine::pause(*machine->machine)); }
  machine->machine->shut_down();

  EXPECT_FALSE(qemu.running());
  EXPECT_EQ(qemu.taken(), Words());
}

TEST(MonitoredMachine, AnOwnerWhoPausesJustBeforeUsFindsItPaused) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  qemu.say("query-status", {{"status", "running"}});  // as it was a moment ago
  qemu.set_running(false);

  { ASSERT_TRUE(PausedMachine::pause(*machine->machine)); }

  EXPECT_FALSE(qemu.running());
}

TEST(MonitoredMachine, GoesOnWithTheGuestWhenShutDownInAPause) {
  FakeMonitor qemu;
  auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  auto paused = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(paused);

  machine->machine->shut_down();

  EXPECT_TRUE(qemu.running());
  EXPECT_FALSE(PausedMachine::pause(*machine->machine));
}

TEST(MonitoredMachine, TellsOfAStopThatWasOverBeforeItCouldAsk) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  std::vector<std::string> news;

  qemu.send_event_now("STOP");
  qemu.send_event_now("RESUME");

  EXPECT_TRUE(comes_true([&] {
    for (std::string& line : machine->machine->status().take_news()) news.push_back(line);
    return news.size() == 2;
  }));
  EXPECT_EQ(news, (Words{"it stood still: its owner has paused it, or saved or loaded a snapshot",
                         "it runs again"}));
}

TEST(MonitoredMachine, TellsWhatTheOwnerDoes) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  MachineStatus& status = machine->machine->status();
  std::vector<std::string> news;

  const StopTimes& stop_times = machine->machine->stops();
  qemu.set_running(false);
  qemu.send_event_now("STOP");
  EXPECT_TRUE(comes_true([&] { return stop_times.version() == 1; })) << "it stands";
  qemu.send_event_now("RESUME");
  EXPECT_TRUE(comes_true([&] { return stop_times.version() == 2; })) << "and runs";
  EXPECT_NE(stop_times.ticks(host_tsc()), 0U);
  qemu.send_event_now("SUSPEND");
  qemu.send_event_now("WAKEUP");

  EXPECT_TRUE(comes_true([&] {
    for (std::string& line : status.take_news()) news.push_back(std::move(line));
    return news.size() == 4;
  }));
  EXPECT_EQ(news,
            (Words{"its owner has paused it: tracing waits", "it runs again",
                   "the guest sleeps (suspended to RAM): tracing waits", "the guest woke up"}));
  EXPECT_EQ(status.state(), MachineState::Running);
}

/// A way to a QEMU whose events come after answers that QEMU gave later, as libvirt's may.
class LateMonitor final : public Monitor {
 public:
  explicit LateMonitor(std::unique_ptr<MonitorSocket> qemu) : qemu_(std::move(qemu)) {}

  void hold_events(bool hold) { holds_ = hold; }

  using Monitor::execute;
  Result<json> execute(std::string_view command, const json& arguments) override {
    return qemu_->execute(command, arguments);
  }
  Result<void> pass_descriptor(std::string_view name, int descriptor) override {
    return qemu_->pass_descriptor(name, descriptor);
  }
  int event_fd() const override { return qemu_->event_fd(); }
  Result<std::vector<QmpEvent>> take_events() override {
    const std::lock_guard lock(mutex_);
    for (QmpEvent& event : TRY(qemu_->take_events())) held_.push_back(std::move(event));
    return holds_ ? std::vector<QmpEvent>() : std::exchange(held_, {});
  }
  bool events_are_in_order() const override { return false; }

 private:
  const std::unique_ptr<MonitorSocket> qemu_;
  std::atomic<bool> holds_{false};
  std::mutex mutex_;
  std::vector<QmpEvent> held_;
};

TEST(MonitoredMachine, KnowsItsOwnStopsHoweverLateTheirEventsCome) {
  FakeMonitor qemu;
  FakeGdbstub stub(qemu, [](const std::string&) { return gdb_packet("T05thread:01;"); });
  auto socket = MonitorSocket::connect(qemu.path());
  ASSERT_TRUE(socket) << socket.error().message;
  auto way = std::make_unique<LateMonitor>(std::move(*socket));
  LateMonitor& late = *way;
  const auto machine = MonitoredMachine::attach({std::move(way), getpid(), -1}, CardUse::None);
  ASSERT_TRUE(machine) << machine.error().message;
  std::vector<std::string> news;
  const auto has_news = [&](std::size_t count) {
    for (std::string& line : (*machine)->status().take_news()) news.push_back(std::move(line));
    return news.size() >= count;
  };

  late.hold_events(true);
  for (int i = 0; i < 3; ++i) {
    const auto paused = PausedMachine::pause(**machine);
    ASSERT_TRUE(paused) << paused.error().message;
  }
  late.hold_events(false);
  qemu.send_event_now("WAKEUP");

  EXPECT_TRUE(comes_true([&] { return has_news(1); }));
  EXPECT_EQ(news, Words{"the guest woke up"});
  EXPECT_EQ((*machine)->stops().version() % 2, 0U) << "it runs";
  qemu.set_running(false);
  qemu.send_event_now("STOP");
  EXPECT_TRUE(comes_true([&] { return has_news(2); })) << "its owner's";
}

TEST(MonitoredMachine, StandsStillForAsLongAsItsOwnerHasStoppedIt) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  const StopTimes& stop_times = machine->machine->stops();
  qemu.set_running(false);  // and we have not heard of it

  ASSERT_TRUE(PausedMachine::pause(*machine->machine));

  EXPECT_EQ(stop_times.version(), 1U) << "our pause is over, and it still stands";
  qemu.send_event_now("RESUME");
  EXPECT_TRUE(comes_true([&] { return stop_times.version() == 2; }));
}

TEST(MonitoredMachine, NoticesThatItRanInAPause) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  auto paused = PausedMachine::pause(*machine->machine);
  ASSERT_TRUE(paused);
  const CodeWrite write{GuestPhys(0x5000), 0xcc};

  qemu.send_event_now("RESUME");
  const auto written = paused->write_code(std::span(&write, 1));

  ASSERT_FALSE(written);
  EXPECT_TRUE(has(written.error().message, "let it run"));
  EXPECT_EQ(qemu.ram()[0x5000], std::byte{0});
}

TEST(MonitoredMachine, MustBeLeftWhenItMoves) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  MachineStatus& status = machine->machine->status();
  EXPECT_FALSE(status.must_leave());

  qemu.send_event_now("MIGRATION", {{"status", "setup"}});

  EXPECT_TRUE(comes_true([&] { return status.must_leave().has_value(); }));
  EXPECT_EQ(status.state(), MachineState::Running) << "what is in it can still be taken out";
  EXPECT_TRUE(PausedMachine::pause(*machine->machine));
}

TEST(MonitoredMachine, IsAskedWhetherItMoves) {
  FakeMonitor qemu;
  qemu.say("query-migrate", json::object());
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  qemu.say("query-migrate", {{"status", "active"}});  // and no event: its owner wants none

  const MachineStatus& status = machine->machine->status();
  EXPECT_TRUE(comes_true([&] { return status.must_leave().has_value(); }));
}

TEST(MonitoredMachine, HasMovedWhereItStandsStillForThat) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  qemu.say("query-status", {{"status", "postmigrate"}});
  qemu.send_event_now("STOP");

  MachineStatus& status = machine->machine->status();
  ASSERT_TRUE(comes_true([&] { return status.must_leave().has_value(); }));
  EXPECT_TRUE(has(*status.must_leave(), "breakpoints of ours went along")) << *status.must_leave();
}

TEST(MonitoredMachine, EndsWithItsGuest) {
  struct End {
    const char* event;
    json data;
    MachineState state;
    const char* cause;
  };
  for (const End& end :
       {End{"SHUTDOWN", {{"reason", "guest-shutdown"}}, MachineState::PoweredOff, ""},
        End{"SHUTDOWN", {{"reason", "guest-reset"}}, MachineState::Rebooted, ""},
        End{"SHUTDOWN",
            {{"reason", "host-qmp-quit"}},
            MachineState::Died,
            "its owner ended it (host-qmp-quit)"},
        End{"RESET", {{"guest", true}}, MachineState::Rebooted, ""},
        End{"SUSPEND_DISK", json::object(), MachineState::Died,
            "the guest has suspended itself to disk; what of ours was in it went along, and "
            "`ringside clean` takes it out when it is awake"},
        End{"GUEST_PANICKED", json::object(), MachineState::Panicked, ""}}) {
    FakeMonitor qemu;
    const auto machine = attach_to(qemu);
    ASSERT_TRUE(machine) << machine.error().message;
    MachineStatus& status = machine->machine->status();

    qemu.send_event_now(end.event, end.data);

    EXPECT_TRUE(comes_true([&] { return status.state() != MachineState::Running; }));
    EXPECT_EQ(status.state(), end.state) << end.event;
    EXPECT_EQ(status.exit_reason(), end.cause);
    EXPECT_FALSE(PausedMachine::pause(*machine->machine));
    EXPECT_TRUE(qemu.running());
  }
}

TEST(MonitoredMachine, DoesNotWaitForAGuestThatHasEndedAndWhoseQemuStays) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;
  MachineStatus& status = machine->machine->status();

  qemu.send_event_next("SHUTDOWN", {{"reason", "guest-shutdown"}});
  qemu.send_event_next("STOP");  // with it, when the thread looks for a migration

  EXPECT_TRUE(comes_true([&] { return status.state() != MachineState::Running; }));
  machine->machine->shut_down();
  EXPECT_EQ(status.state(), MachineState::PoweredOff);
  EXPECT_EQ(status.take_news(), Words());
}

TEST(MonitoredMachine, WritesNothingIntoWhatBootsAfterAReset) {
  FakeMonitor qemu;
  const auto machine = attach_to(qemu);
  ASSERT_TRUE(machine) << machine.error().message;

  qemu.send_event_next("RESET", {{"guest", true}});  // arrives with what the pause asks
  const auto paused = PausedMachine::pause(*machine->machine);

  EXPECT_FALSE(paused);
  EXPECT_TRUE(qemu.running()) << "it is not left standing";
  EXPECT_EQ(machine->machine->state(), MachineState::Rebooted);
}

}  // namespace
}  // namespace ringside::vmm
