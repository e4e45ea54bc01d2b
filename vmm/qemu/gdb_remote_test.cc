#include "vmm/qemu/gdb_remote.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "vmm/qemu/fake_peer.h"

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;

/// Register text in which each byte is its own offset, so every field shows where it came from.
std::string counted_registers() {
  std::string hex;
  for (unsigned i = 0; i < 608; ++i) {
    hex += "0123456789abcdef"[i >> 4 & 15];
    hex += "0123456789abcdef"[i & 15];
  }
  return hex;
}

std::uint64_t bytes_from(unsigned at, unsigned size) {
  std::uint64_t value = 0;
  for (unsigned i = size; i-- > 0;) value = value << 8 | ((at + i) & 0xff);
  return value;
}

TEST(DecodeRegisters, TakesEachFieldFromItsPlace) {
  const auto r = decode_registers(counted_registers());

  ASSERT_TRUE(r);
  EXPECT_EQ(r->rax, bytes_from(0, 8));
  EXPECT_EQ(r->rbx, bytes_from(8, 8));
  EXPECT_EQ(r->rcx, bytes_from(16, 8));
  EXPECT_EQ(r->rdx, bytes_from(24, 8));
  EXPECT_EQ(r->rsi, bytes_from(32, 8));
  EXPECT_EQ(r->rdi, bytes_from(40, 8));
  EXPECT_EQ(r->rbp, bytes_from(48, 8));
  EXPECT_EQ(r->rsp, bytes_from(56, 8));
  EXPECT_EQ(r->r8, bytes_from(64, 8));
  EXPECT_EQ(r->r15, bytes_from(120, 8));
  EXPECT_EQ(r->rip, bytes_from(128, 8));
  EXPECT_EQ(r->rflags, bytes_from(136, 4));
  EXPECT_EQ(r->cs, bytes_from(140, 4));
  EXPECT_EQ(r->ss, bytes_from(144, 4));
  EXPECT_EQ(r->fs_base, bytes_from(164, 8));
  EXPECT_EQ(r->gs_base, bytes_from(172, 8));
  EXPECT_EQ(r->kernel_gs_base, bytes_from(180, 8));
  EXPECT_EQ(r->cr0, bytes_from(188, 8));
  EXPECT_EQ(r->cr3, bytes_from(204, 8));
  EXPECT_EQ(r->cr4, bytes_from(212, 8));
  EXPECT_EQ(r->efer, bytes_from(228, 8));
}

TEST(DecodeRegisters, RefusesTextThatIsTooShortOrNotHexadecimal) {
  EXPECT_FALSE(decode_registers(""));
  EXPECT_FALSE(decode_registers("E14"));
  EXPECT_FALSE(decode_registers(counted_registers().substr(0, 471)));
  EXPECT_TRUE(decode_registers(counted_registers().substr(0, 472)));
  EXPECT_FALSE(decode_registers(std::string(1216, 'x')));
}

TEST(GdbRemote, PausesAndResumesWithoutASuperfluousByte) {
  std::string seen;
  {
    FakePeer stub([&](FakePeer& peer) {
      seen += peer.receive_packet();
      peer.send(kStopped);
      seen += peer.receive_until("#63");  // any '+' before it would stop a running guest
      peer.send("+");
      seen += peer.receive_packet();
      peer.send(kStopped);
    });
    GdbRemote gdb(stub.client());

    EXPECT_TRUE(gdb.pause());
    EXPECT_TRUE(gdb.resume());
    EXPECT_TRUE(gdb.pause());
  }
  EXPECT_EQ(seen, "\x03$c#63\x03");
}

// QEMU 7.2 and 10: the stub of a machine in the state "suspended" ignores 0x03.
TEST(GdbRemote, TellsAGuestThatSleepsAndStopsItOnceItIsAwake) {
  std::string seen;
  {
    FakePeer stub([&](FakePeer& peer) {
      seen += peer.receive_packet();
      peer.send("+");  // of the request before
      seen += peer.receive_packet();
      seen += peer.receive_packet();
      peer.send("+" + gdb_packet("OK") + "+" + gdb_packet("QC1"));
      seen += peer.receive_until("\x03");  // a '+' before it: QEMU would overlook it else
      peer.send(kStopped);
    });
    GdbRemote gdb(stub.client());

    const auto asleep = gdb.pause();

    ASSERT_FALSE(asleep);
    EXPECT_EQ(asleep.error().code, ErrorCode::Io);
    EXPECT_NE(asleep.error().message.find("sleeps"), std::string::npos);
    EXPECT_TRUE(gdb.in_step());
    EXPECT_TRUE(gdb.pause());
  }
  EXPECT_EQ(seen, "\x03Hg1qC+\x03");
}

TEST(GdbRemote, PausesAGuestThatWakesUpOrStopsWhileItIsAskedWhy) {
  const std::string current = gdb_packet("QC1");
  // It wakes up: the request's first byte is the interrupt. It was slow: the interrupt came first.
  for (const std::string& answer : {kStopped + current, kStopped + gdb_packet("OK") + current}) {
    FakePeer stub([&](FakePeer& peer) {
      peer.receive_packet();
      peer.receive_packet();
      peer.receive_packet();
      peer.send(answer);
      peer.receive_packet();
      peer.send(gdb_packet("OK"));
      peer.receive_packet();
      peer.send(gdb_packet(counted_registers()));
    });
    GdbRemote gdb(stub.client());

    EXPECT_TRUE(gdb.pause());
    EXPECT_TRUE(gdb.read_registers(0)) << "nothing is left that could be taken for its answer";
  }
}

TEST(GdbRemote, ReadsTheRegistersOfTheRequestedCpu) {
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    seen.push_back(peer.receive_packet());
    peer.send("+" + gdb_packet("OK"));
    seen.push_back(peer.receive_packet());
    peer.send("+" + gdb_packet(counted_registers()));
  });
  GdbRemote gdb(stub.client());

  const auto r = gdb.read_registers(11);

  ASSERT_TRUE(r);
  EXPECT_EQ(r->rip, bytes_from(128, 8));
  EXPECT_EQ(seen, (std::vector<std::string>{"Hgc", "g"}));
}

TEST(GdbRemote, StaysInStepAfterARefusedCpu) {
  FakePeer stub([](FakePeer& peer) {
    for (const char* answer : {"E22", "00", "OK"}) {
      peer.receive_packet();
      peer.send(gdb_packet(answer));
    }
    peer.receive_packet();
    peer.send(gdb_packet(counted_registers()));
  });
  GdbRemote gdb(stub.client());

  EXPECT_FALSE(gdb.read_registers(7));
  EXPECT_TRUE(gdb.read_registers(0));
}

TEST(GdbRemote, SkipsAStopThatWasReportedLate) {
  FakePeer stub([](FakePeer& peer) {
    peer.receive_packet();
    peer.send(kStopped + gdb_packet("OK"));
    peer.receive_packet();
    peer.send(kStopped + gdb_packet(counted_registers()));
  });
  GdbRemote gdb(stub.client());

  EXPECT_TRUE(gdb.read_registers(0));
}

TEST(GdbRemote, WritesEveryByteWithABoundedNumberInFlight) {
  constexpr std::size_t kWrites = 1000;
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    for (;;) {
      std::string packet = peer.receive_packet();
      if (packet.empty()) return;
      peer.send(gdb_packet("OK"));
      seen.push_back(std::move(packet));
    }
  });
  std::vector<CodeWrite> writes;
  for (std::size_t i = 0; i < kWrites; ++i) {
    writes.push_back({GuestPhys(0xffffffff81000000 + 16 * i), static_cast<std::uint8_t>(i)});
  }
  {
    GdbRemote gdb(stub.client());
    ASSERT_TRUE(gdb.write_bytes(writes, GuestMemory()));
    EXPECT_TRUE(gdb.write_bytes({}, GuestMemory()));
  }
  stub.await_end();
  ASSERT_EQ(seen.size(), kWrites + 4);
  EXPECT_EQ(seen[0], "Qqemu.PhyMemMode:1");
  EXPECT_EQ(seen[1], "Mffffffff81000000,1:00");
  EXPECT_EQ(seen[kWrites], "Mffffffff81003e70,1:e7");
  EXPECT_EQ(seen[kWrites + 1], "Qqemu.PhyMemMode:0") << "another debugger would be surprised";
}

TEST(GdbRemote, NeighboursShareARequest) {
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    for (int n = 0; n < 5; ++n) {
      seen.push_back(peer.receive_packet());
      peer.send(gdb_packet(seen.size() == 3 ? "E14" : "OK"));
    }
  });
  std::vector<CodeWrite> writes{{GuestPhys(0x10), 1}, {GuestPhys(0x11), 2}, {GuestPhys(0x13), 3}};
  for (unsigned n = 0; n < 1025; ++n) writes.push_back({GuestPhys(0x1000 + n), 0xcc});

  GdbRemote gdb(stub.client());
  const auto written = gdb.write_bytes(writes, GuestMemory());

  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("0x13"), std::string::npos) << written.error().message;
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[1], "M10,2:0102");
  EXPECT_EQ(seen[2], "M13,1:03");
  EXPECT_TRUE(seen[3].starts_with("M1000,400:cccc"));
  EXPECT_EQ(seen[4], "M1400,1:cc");
}

TEST(GdbRemote, ARequestGoesOverWhatStandsBetweenTwoWrites) {
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    for (int n = 0; n < 3; ++n) {
      seen.push_back(peer.receive_packet());
      peer.send(gdb_packet("OK"));
    }
  });
  std::vector<std::byte> ram(0x1000, std::byte{0x90});
  const std::vector<CodeWrite> writes{{GuestPhys(0x10), 1}, {GuestPhys(0x13), 0xcc}};

  GdbRemote gdb(stub.client());
  ASSERT_TRUE(gdb.write_bytes(writes, GuestMemory({{GuestPhys(0), ram}})));

  EXPECT_EQ(seen[1], "M10,4:019090cc");
}

TEST(GdbRemote, NoRequestGoesOverWhatAnotherOneHasNotWrittenYet) {
  std::vector<std::byte> ram(0x1000, std::byte{0xcc});
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    for (int n = 0; n < 3; ++n) {
      seen.push_back(peer.receive_packet());
      peer.send(gdb_packet("OK"));
    }
  });
  // By the second and third alone the first one's byte would come back.
  const std::vector<CodeWrite> writes{
      {GuestPhys(0x12), 2}, {GuestPhys(0x10), 1}, {GuestPhys(0x14), 3}, {GuestPhys(0x15), 4, true}};

  GdbRemote gdb(stub.client());
  ASSERT_TRUE(gdb.write_bytes(writes, GuestMemory({{GuestPhys(0), ram}})));

  EXPECT_EQ(seen[1], "M10,6:01cc02cc0304");
}

TEST(GdbRemote, WritesNothingByAStubThatKnowsNoPhysicalMemory) {
  std::vector<std::string> seen;
  FakePeer stub([&](FakePeer& peer) {
    seen.push_back(peer.receive_packet());
    peer.send(gdb_packet(""));
    seen.push_back(peer.receive_packet());
  });
  {
    GdbRemote gdb(stub.client());
    const CodeWrite write{GuestPhys(0x1000), 0xcc};

    const auto written = gdb.write_bytes({&write, 1}, GuestMemory());

    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::Unsupported);
    EXPECT_TRUE(gdb.in_step());
  }
  stub.await_end();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1], "");
}

TEST(GdbRemote, ARefusalDoesNotSteerTheTerminal) {
  FakePeer stub([](FakePeer& peer) {
    peer.receive_packet();
    peer.send(gdb_packet("E\x1b[2J\n"));
    peer.send(gdb_packet(counted_registers()));
  });
  GdbRemote gdb(stub.client());

  const auto registers = gdb.read_registers(0);

  ASSERT_FALSE(registers);
  EXPECT_EQ(registers.error().message, "QEMU's gdbstub refused a request: E?[2J?");
}

TEST(GdbRemote, NamesTheFirstRefusedByteAndWritesTheOthers) {
  unsigned taken = 0;
  {
    FakePeer stub([&](FakePeer& peer) {
      peer.receive_packet();
      peer.send(gdb_packet("OK"));
      for (int i = 0; i < 200; ++i) {
        peer.receive_packet();
        ++taken;
        peer.send(gdb_packet(i == 150 || i == 160 ? "E14" : "OK"));
      }
      peer.receive_packet();
      peer.send(gdb_packet("OK"));
    });
    GdbRemote gdb(stub.client());
    std::vector<CodeWrite> writes;
    for (unsigned i = 0; i < 200; ++i) writes.push_back({GuestPhys(0x1000 + 2 * i), 0xcc});

    const auto done = gdb.write_bytes(writes, GuestMemory());

    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("0x112c"), std::string::npos) << done.error().message;
  }
  EXPECT_EQ(taken, 200u);
}

/// The result of pause() with a stub that answers with `bytes` and then closes.
ErrorCode pause_against(const std::string& bytes) {
  FakePeer stub([&](FakePeer& peer) {
    peer.receive_packet();
    peer.send(bytes);
  });
  GdbRemote gdb(stub.client(), milliseconds(2000));
  const auto paused = gdb.pause();
  return paused ? ErrorCode::Usage : paused.error().code;
}

TEST(GdbRemote, SurvivesHostileAnswers) {
  EXPECT_EQ(pause_against(""), ErrorCode::MachineGone);
  EXPECT_EQ(pause_against("$T02thr"), ErrorCode::MachineGone);
  EXPECT_EQ(pause_against("$T02thread:01;#"), ErrorCode::MachineGone);
  EXPECT_EQ(pause_against("$T02thread:01;#00"), ErrorCode::Invalid) << "checksum";
  EXPECT_EQ(pause_against("$T02thread:01;#zz"), ErrorCode::Invalid) << "checksum";
  EXPECT_EQ(pause_against(gdb_packet("W00")), ErrorCode::MachineGone) << "the guest has ended";
  EXPECT_EQ(pause_against("$" + std::string(200'000, 'T')), ErrorCode::Invalid) << "no end";
  EXPECT_EQ(pause_against(std::string(200'000, '+')), ErrorCode::MachineGone) << "noise";
  std::string answers;
  for (int i = 0; i < 100; ++i) answers += gdb_packet("OK");
  EXPECT_EQ(pause_against(answers), ErrorCode::Invalid) << "never a stop";
}

TEST(GdbRemote, GivesUpOnAStubThatTakesItsTimeForEachByte) {
  constexpr std::size_t kWrites = 400;
  FakePeer stub([](FakePeer& peer) {
    for (std::size_t n = 0; n <= kWrites && !peer.receive_packet().empty(); ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      peer.send(gdb_packet("OK"));
    }
  });
  GdbRemote gdb(stub.client(), std::chrono::milliseconds(200));
  const std::vector<CodeWrite> writes(kWrites, CodeWrite{GuestPhys(0x1000), 0xcc});

  const auto written = gdb.write_bytes(writes, GuestMemory());

  ASSERT_FALSE(written) << "though no answer alone took long";
  EXPECT_EQ(written.error().code, ErrorCode::MachineGone);
  EXPECT_FALSE(gdb.in_step());
}

TEST(GdbRemote, AsksWhatKeepsAnAnswerAndGivesUpWhereNoneWillCome) {
  FakePeer stub([](FakePeer& peer) {
    peer.receive_packet();
    peer.send(kStopped);  // the guest ran: the request's first byte was an interrupt
    peer.receive_packet();
    peer.send(gdb_packet(counted_registers()));
    peer.receive_until("nothing that is ever sent");
  });
  GdbRemote gdb(stub.client(), std::chrono::hours(1));
  unsigned asked = 0;
  gdb.set_check([&asked]() -> Result<void> {
    if (++asked < 2) return {};
    return fail(ErrorCode::NotFound, "its owner let it run");
  });

  const auto registers = gdb.read_registers(0);

  ASSERT_FALSE(registers);
  EXPECT_EQ(registers.error().message, "its owner let it run");
  EXPECT_EQ(asked, 2U);
  EXPECT_TRUE(gdb.saw_stop());
  EXPECT_FALSE(gdb.in_step());
}

TEST(GdbRemote, GivesUpOnAStubThatSaysNothing) {
  FakePeer stub([](FakePeer& peer) { peer.receive_until("nothing that is ever sent"); });
  GdbRemote gdb(stub.client(), milliseconds(20));

  const auto paused = gdb.pause();

  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, ErrorCode::MachineGone);
}

TEST(GdbRemote, ForgetsStopsThatSomebodyElseCaused) {
  std::atomic<bool> sent{false};
  FakePeer stub([&](FakePeer& peer) {
    for (int i = 0; i < 100; ++i) peer.send(kStopped);
    sent = true;
    peer.receive_packet();
    peer.send("+" + gdb_packet("OK"));
    peer.receive_packet();
    peer.send("+" + gdb_packet(counted_registers()));
    peer.receive_until("never sent");
  });
  GdbRemote gdb(stub.client());
  while (!sent) std::this_thread::yield();

  ASSERT_TRUE(gdb.forget_stops());

  EXPECT_TRUE(gdb.read_registers(0));
}

}  // namespace
}  // namespace ringside::vmm
