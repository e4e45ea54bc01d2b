// Subroutines about the guest, its addresses, and json().
#include <gtest/gtest.h>

#include "dif/testing/subroutine_fixture.h"

namespace ringside::dif {
namespace {

using testing::kKernel;
using testing::kUser;
using testing::SubroutineTest;

constexpr std::uint64_t kLock = kKernel + 0x100;

TEST_F(SubroutineTest, LocksAreWhatTheContextSaysOfThem) {
  const auto ask = [&](Subroutine which) {
    return as_number(which, {number(std::int64_t(kLock))});
  };
  guest_.locks = {{{LockFact::Owner, kLock}, 5},     {{LockFact::Adaptive, kLock}, 1},
                  {{LockFact::Spins, kLock}, 0},     {{LockFact::ReadHeld, kLock}, 1},
                  {{LockFact::WriteHeld, kLock}, 0}, {{LockFact::HasWriter, kLock}, 1}};
  EXPECT_EQ(ask(Subroutine::MutexOwner), 5);
  EXPECT_EQ(ask(Subroutine::MutexAdaptive), 1);
  EXPECT_EQ(ask(Subroutine::MutexSpin), 0);
  EXPECT_EQ(ask(Subroutine::RwReadHeld), 1);
  EXPECT_EQ(ask(Subroutine::RwWriteHeld), 0);
  EXPECT_EQ(ask(Subroutine::RwIswriter), 1);
  EXPECT_EQ(call(Subroutine::MutexOwner, {number(0)}).error().kind, FaultKind::BadAddress);
}

TEST_F(SubroutineTest, AMutexIsOwnedByWhoRuns) {
  guest_.set(ContextVariable::Curthread, kKernel);
  guest_.locks[{LockFact::Owner, kLock}] = kKernel;
  guest_.locks[{LockFact::Owner, kLock + 8}] = kKernel + 64;
  EXPECT_EQ(as_number(Subroutine::MutexOwned, {number(std::int64_t(kLock))}), 1);
  EXPECT_EQ(as_number(Subroutine::MutexOwned, {number(std::int64_t(kLock + 8))}), 0);
  EXPECT_EQ(call(Subroutine::MutexOwned, {number(0)}).error().kind, FaultKind::BadAddress);
}

TEST_F(SubroutineTest, AFreeMutexIsNotOwnedByTheIdleTask) {
  guest_.set(ContextVariable::Curthread, 0);
  guest_.locks[{LockFact::Owner, kLock}] = 0;
  EXPECT_EQ(as_number(Subroutine::MutexOwned, {number(std::int64_t(kLock))}), 0);
}

TEST_F(SubroutineTest, DeviceNumbersAreTheKernelsOwn) {
  EXPECT_EQ(as_number(Subroutine::Getmajor, {number(8 << 20 | 3)}), 8);
  EXPECT_EQ(as_number(Subroutine::Getminor, {number(8 << 20 | 3)}), 3);
  EXPECT_EQ(as_number(Subroutine::Getminor, {number(0xf'ffff)}), 0xf'ffff);
  EXPECT_EQ(as_number(Subroutine::Getmajor, {number(-1)}), 0xfff);
}

TEST_F(SubroutineTest, APathIsOfAPathOrOfADirectoryEntryInAMount) {
  guest_.paths[{5, 6}] = "/data/input";
  guest_.kernel_memory.put_value(kKernel, std::uint64_t{6});
  guest_.kernel_memory.put_value(kKernel + 8, std::uint64_t{5});
  EXPECT_EQ(as_text(Subroutine::DPath, {number(std::int64_t(kKernel))}), "/data/input");
  EXPECT_EQ(as_text(Subroutine::DPath, {number(5), number(6)}), "/data/input");
  EXPECT_EQ(as_text(Subroutine::DPath, {number(6), number(5)}), "(fault)");
  EXPECT_EQ(as_text(Subroutine::DPath, {number(0)}), "(fault)");
  guest_.paths[{5, 6}] = std::string("/a\0b", 4);
  EXPECT_EQ(as_text(Subroutine::DPath, {number(5), number(6)}), "/a");
  guest_.paths[{5, 6}] = std::string(5000, 'x');
  EXPECT_EQ(as_text(Subroutine::DPath, {number(5), number(6)}), std::string(256, 'x'));
}

TEST_F(SubroutineTest, APacketIsCopiedFromWhereItsDataBeginsAndTheRestIsZero) {
  guest_.packets[{9, PacketPart::Data}] = {{}, "packet"};
  const auto copied = [&](std::int64_t bytes) {
    std::string made(static_cast<std::size_t>(bytes), '?');
    const auto handle = call(Subroutine::Copyoutmbuf, {number(9), number(bytes)});
    const bool read =
        handle && memory_.read(*handle, std::as_writable_bytes(std::span(made))).has_value();
    return read ? made : "(fault)";
  };
  EXPECT_EQ(copied(8), std::string("packet\0\0", 8));
  EXPECT_EQ(copied(3), "pac");
  EXPECT_EQ(call(Subroutine::Copyoutmbuf, {number(10), number(8)}).error().kind,
            FaultKind::BadAddress);
  EXPECT_EQ(call(Subroutine::Copyoutmbuf, {number(9), number(-1)}).error().kind,
            FaultKind::NoScratch);
}

TEST_F(SubroutineTest, NumbersAreAddedUpToABound) {
  for (unsigned i = 0; i < 3; ++i)
    guest_.kernel_memory.put_value(kKernel + i * 16, ~std::uint64_t{0});
  const auto sum = [&](std::int64_t count) {
    return call(Subroutine::Sum32, {number(std::int64_t(kKernel)), number(16), number(count)});
  };
  EXPECT_EQ(sum(3), 3 * std::uint64_t{UINT32_MAX});
  EXPECT_EQ(call(Subroutine::Sum32, {number(std::int64_t(kKernel)), number(0), number(4096)}),
            4096 * std::uint64_t{UINT32_MAX});
  EXPECT_EQ(sum(0), 0u);
  EXPECT_EQ(sum(4).error().kind, FaultKind::BadAddress);
  EXPECT_EQ(sum(4097).error().kind, FaultKind::IllegalOperation);
  EXPECT_EQ(sum(-1).error().kind, FaultKind::IllegalOperation);
}

TEST_F(SubroutineTest, CopyoutWritesTheProcess) {
  EXPECT_EQ(call(Subroutine::Copyout, {text("abc"), number(kUser), number(0)}), 0u)
      << "nothing to write";
  EXPECT_EQ(call(Subroutine::Copyout, {text("abc"), number(0), number(3)}).error().kind,
            FaultKind::BadAddress);
  EXPECT_EQ(call(Subroutine::Copyout, {text("abc"), number(kUser), number(1 << 30)}).error().kind,
            FaultKind::NoScratch);
  EXPECT_EQ(call(Subroutine::Copyout, {number(0), number(kUser), number(4)}).error().kind,
            FaultKind::BadAddress);
  EXPECT_EQ(call(Subroutine::Copyoutstr, {text("abc"), number(0), number(4)}).error().kind,
            FaultKind::BadAddress);
  EXPECT_EQ(call(Subroutine::Copyoutstr, {text("abc"), number(0), number(0)}), 0u);
  EXPECT_EQ(guest_.written_size, 0u);
}

TEST_F(SubroutineTest, CopyoutWritesSoManyBytesAndCopyoutstrEndsThem) {
  const auto written = [this](Subroutine which, std::int64_t size) {
    const TupleValue source = text("abcdef");
    const std::size_t used = memory_.scratch_used();
    EXPECT_EQ(call(which, {source, number(kUser), number(size)}), 0u);
    EXPECT_EQ(memory_.scratch_used(), used) << "it needs none any more";
    EXPECT_EQ(guest_.written_at, kUser);
    // SAFETY: characters may alias any bytes.
    return std::string(reinterpret_cast<const char*>(guest_.written.data()), guest_.written_size);
  };
  using std::string_literals::operator""s;
  EXPECT_EQ(written(Subroutine::Copyout, 1), "a"s);
  EXPECT_EQ(written(Subroutine::Copyout, 7), "abcdef\0"s);
  EXPECT_EQ(written(Subroutine::Copyoutstr, 1), "\0"s);
  EXPECT_EQ(written(Subroutine::Copyoutstr, 4), "abc\0"s);
  EXPECT_EQ(written(Subroutine::Copyoutstr, 7), "abcdef\0"s);
  EXPECT_EQ(written(Subroutine::Copyoutstr, 8), "abcdef\0"s);
}

TEST_F(SubroutineTest, ProgenyofAsksForAnInt) {
  guest_.ancestor = -5;
  EXPECT_EQ(as_number(Subroutine::Progenyof, {number(0xffff'fffb)}), 1);
  EXPECT_EQ(as_number(Subroutine::Progenyof, {number(5)}), 0);
}

TEST_F(SubroutineTest, OnlyScratchIsADestination) {
  std::array<std::byte, 16> globals{};
  memory_.set_arena(Arena::Globals, globals);
  guest_.user_memory.put_value(kUser, std::uint64_t{1});
  const TupleValue global = number(std::int64_t(make_handle(Arena::Globals, 0)));
  EXPECT_EQ(call(Subroutine::Bcopy, {text("x"), global, number(1)}).error().kind,
            FaultKind::BadAddress);
  EXPECT_EQ(call(Subroutine::Copyinto, {number(kUser), number(1), global}).error().kind,
            FaultKind::BadAddress);
}

TEST_F(SubroutineTest, BcopyWithinScratchMayOverlap) {
  const TupleValue whole = text("abcdef");
  TupleValue later = whole;
  later.value += 2;
  EXPECT_EQ(call(Subroutine::Bcopy, {whole, later, number(4)}), 0u);
  EXPECT_EQ(memory_.string(whole.value, 256), "ababcd");
}

TEST_F(SubroutineTest, AllocaShowsNothingThatAnEarlierClauseLeft) {
  (void)text(std::string(64, 'x'));
  memory_.begin_clause();

  const auto at = call(Subroutine::Alloca, {number(64)});

  ASSERT_TRUE(at);
  std::array<std::byte, 64> bytes;
  ASSERT_TRUE(memory_.read(*at, bytes));
  EXPECT_EQ(bytes, (std::array<std::byte, 64>{}));
}

TEST_F(SubroutineTest, AllocaGivesScratchUntilItIsGone) {
  EXPECT_TRUE(call(Subroutine::Alloca, {number(0)}));
  const Fault none = call(Subroutine::Alloca, {number(-1)}).error();
  EXPECT_EQ(none.kind, FaultKind::NoScratch);
  EXPECT_EQ(none.pc, 0u);
  EXPECT_EQ(none.address, 0u);
  EXPECT_EQ(call(Subroutine::Alloca, {number(65537)}).error().kind, FaultKind::NoScratch);
  EXPECT_TRUE(call(Subroutine::Alloca, {number(65536)}));
  EXPECT_EQ(call(Subroutine::Alloca, {number(1)}).error().kind, FaultKind::NoScratch);
  memory_.begin_firing(guest_.kernel(), guest_.user());
  EXPECT_TRUE(call(Subroutine::Alloca, {number(65536)})) << "each firing has all of it";
}

TEST_F(SubroutineTest, Inet6IsWrittenAsRfc5952Says) {
  const auto inet6 = [&](std::vector<unsigned> groups) {
    std::uint64_t at = kKernel;
    for (const unsigned group : groups) {
      guest_.kernel_memory.put_value(at++, static_cast<std::uint8_t>(group >> 8));
      guest_.kernel_memory.put_value(at++, static_cast<std::uint8_t>(group));
    }
    memory_.begin_firing(guest_.kernel(), guest_.user());
    return as_text(Subroutine::InetNtop, {number(10), number(std::int64_t(kKernel))});
  };
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 0}), "::");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 1}), "::1");
  EXPECT_EQ(inet6({0x2001, 0xdb8, 0, 0, 1, 0, 0, 1}), "2001:db8::1:0:0:1") << "the first run";
  EXPECT_EQ(inet6({1, 0, 0, 0, 0, 0, 0, 2}), "1::2");
  EXPECT_EQ(inet6({0, 0, 0, 0, 1, 0, 0, 2}), "::1:0:0:2") << "the longest run";
  EXPECT_EQ(inet6({0, 0, 1, 0, 0, 0, 0, 2}), "0:0:1::2") << "wherever it is";
  EXPECT_EQ(inet6({0x2001, 0xdb8, 0, 1, 1, 1, 1, 1}), "2001:db8:0:1:1:1:1:1") << "no run of one";
  EXPECT_EQ(inet6({0xfe80, 0, 0, 0, 0, 0, 0, 0}), "fe80::");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0xffff, 0x7f00, 1}), "::ffff:127.0.0.1");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0xffff, 0, 0}), "::ffff:0.0.0.0");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0x102, 0x304}), "::1.2.3.4") << "compatible with IPv4";
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 2}), "::0.0.0.2");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 1, 0x102, 0x304}), "::1:102:304");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0xffff, 0, 0x100, 0}), "::ffff:0:100:0");
  EXPECT_EQ(inet6({0xABCD, 1, 2, 3, 4, 5, 6, 0xFFFF}), "abcd:1:2:3:4:5:6:ffff");
}

TEST_F(SubroutineTest, InetNtoa6WritesAnIpv4AddressInsideAlone) {
  const auto inet6 = [&](std::array<std::uint8_t, 16> bytes) {
    guest_.kernel_memory.put_value(kKernel, bytes);
    memory_.begin_firing(guest_.kernel(), guest_.user());
    return as_text(Subroutine::InetNtoa6, {number(std::int64_t(kKernel))});
  };
  EXPECT_EQ(inet6({0xab, 0xcd, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0xff, 0xff}),
            "abcd:1:2:3:4:5:6:ffff");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}), "127.0.0.1");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1}), "127.0.0.1");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}), "0.0.0.2");
  EXPECT_EQ(inet6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "::1");
  EXPECT_EQ(inet6({}), "::");
}

TEST_F(SubroutineTest, InetNtopTakesLinuxsFamilies) {
  guest_.kernel_memory.put_value(kKernel, std::uint32_t{0x0100'007f});
  const TupleValue at = number(std::int64_t(kKernel));
  EXPECT_EQ(as_text(Subroutine::InetNtop, {number(2), at}), "127.0.0.1");
  EXPECT_EQ(call(Subroutine::InetNtop, {number(26), at}).error().kind, FaultKind::IllegalOperation)
      << "AF_INET6 of Solaris";
  EXPECT_EQ(call(Subroutine::InetNtop, {number(2), number(0)}).error().kind, FaultKind::BadAddress);
}

TEST_F(SubroutineTest, LinkNtopWritesHardwareAddresses) {
  guest_.kernel_memory.put_value(kKernel, std::uint64_t{0x00'00'0f'5e'00'16'3e'52});
  const TupleValue at = number(std::int64_t(kKernel));
  EXPECT_EQ(as_text(Subroutine::LinkNtop, {number(1), at}), "52:3e:16:00:5e:0f");
  for (std::uint64_t n = 8; n < 20; ++n) {
    guest_.kernel_memory.put_value(kKernel + n, static_cast<std::uint8_t>(0xf0 + n));
  }
  memory_.begin_firing(guest_.kernel(), guest_.user());
  EXPECT_EQ(as_text(Subroutine::LinkNtop, {number(32), at}),
            "52:3e:16:00:5e:0f:00:00:f8:f9:fa:fb:fc:fd:fe:ff:00:01:02:03")
      << "Infiniband";
  EXPECT_EQ(call(Subroutine::LinkNtop, {number(772), at}).error().kind,
            FaultKind::IllegalOperation);
}

TEST_F(SubroutineTest, MemstrJoinsWhatNulsPart) {
  guest_.kernel_memory.put(kKernel, std::as_bytes(std::span("ls\0-l\0x", 8)));
  const TupleValue at = number(std::int64_t(kKernel));
  EXPECT_EQ(as_text(Subroutine::Memstr, {at, number(' '), number(8)}), "ls -l x");
  EXPECT_EQ(as_text(Subroutine::Memstr, {at, number(' '), number(0)}), "");
  EXPECT_EQ(as_text(Subroutine::Memstr, {at, number(' '), number(1)}), "");
  EXPECT_EQ(as_text(Subroutine::Memstr, {at, number(' '), number(3)}), "ls");
  guest_.kernel_memory.put(kKernel, std::vector<std::byte>(1000, std::byte{'y'}));
  memory_.begin_firing(guest_.kernel(), guest_.user());
  const auto cut = call(Subroutine::Memstr, {at, number(' '), number(1000)});
  ASSERT_TRUE(cut);
  EXPECT_EQ(memory_.string(*cut, 256), std::string(256, 'y')) << "as long as a string may be";
}

constexpr std::string_view kDocument =
    R"( { "a" : [ 10 , { "b" : "x\ty" } , [ ] , "s" ] , "n" : null, "t":true, "f" : -1.5e3,)"
    R"( "o" : { "p" : [1, 2] }, "q\u0041" : "\u00e9\ud83d\ude00\"\\\/", "" : 1, "a" : 2 } )";

class JsonTest : public SubroutineTest {
 protected:
  std::string json(std::string_view path, std::string_view document = kDocument) {
    return as_text(Subroutine::Json, {text(document), text(path)});
  }
};

TEST_F(JsonTest, FindsEachKindOfValue) {
  EXPECT_EQ(json("a[0]"), "10");
  EXPECT_EQ(json("a[1].b"), R"(x\ty)");
  EXPECT_EQ(json("a[3]"), "s");
  EXPECT_EQ(json("n"), "null");
  EXPECT_EQ(json("t"), "true");
  EXPECT_EQ(json("f"), "-1.5e3");
  EXPECT_EQ(json("o"), R"({ "p" : [1, 2] })");
  EXPECT_EQ(json("o.p"), "[1, 2]");
  EXPECT_EQ(json("a[2]"), "[ ]");
  EXPECT_EQ(json("qA"), R"(\u00e9\ud83d\ude00\"\\\/)") << "strings as they stand, names as meant";
  EXPECT_EQ(json("[1][0]", "[0, [\"in\"]]"), "in");
  EXPECT_EQ(json("[9]", "[0,1,2,3,4,5,6,7,8,\"ninth\",10]"), "ninth");
  EXPECT_EQ(json("[10]", "[0,1,2,3,4,5,6,7,8,9,\"tenth\"]"), "tenth");
  EXPECT_EQ(json("[:]", "[0]"), "(null)");
  EXPECT_EQ(json("a.0"), "10") << "an index may stand after a dot";
  EXPECT_EQ(json("0", "[7]"), "7");
  EXPECT_EQ(json("[000000001]", "[5,6]"), "6");
  EXPECT_EQ(json("[0000000001]", "[5,6]"), "(null)") << "no index is so long";
}

TEST_F(JsonTest, WhatIsSkippedMayHoldAnything) {
  EXPECT_EQ(json("b", R"({"a":["x","]"],"b":1})"), "1");
  EXPECT_EQ(json("b", R"({"a":{"k":"}"},"b":2})"), "2");
  EXPECT_EQ(json("b", R"({"a":"\\","b":3})"), "3");
  const auto nested = [this](std::size_t depth) {
    const std::string open(depth, '['), close(depth, ']');
    return json("b", R"({"a":)" + open + close + R"(,"b":4})");
  };
  EXPECT_EQ(nested(100), "4");
  EXPECT_EQ(nested(115), "4");
}

TEST_F(JsonTest, ANumberBeginsWithADigitOrAMinus) {
  for (const char* number : {"0", "9", "-0", "1e5", "1E+5", "2.5"}) {
    EXPECT_EQ(json("a", std::string(R"({"a":)") + number + "}"), number);
  }
  for (const char* none : {"+1", ".5", "e5", "/", ":", "nul", "truest", "0x1"}) {
    EXPECT_EQ(json("a", std::string(R"({"a":)") + none + "}"), "(null)") << none;
  }
}

TEST_F(JsonTest, NamesMayBeEscapes) {
  EXPECT_EQ(json("x9:", R"({"\u0078\u0039\u003a":1})"), "1") << "digits up to 9, letters up to f";
  EXPECT_EQ(json("xJoO", R"({"\u0078\u004a\u006F\u004f":2})"), "2");
  EXPECT_EQ(json("\xc3\xa9", R"({"\u00e9":3})"), "3") << "two bytes of UTF-8";
  EXPECT_EQ(json("\xc2\xa2", R"({"\u00a2":3})"), "3");
  EXPECT_EQ(json("\xe2\x82\xac", R"({"\u20ac":4})"), "4") << "three";
  EXPECT_EQ(json("\xf0\x9f\x98\x80", R"({"\ud83d\ude00":5})"), "5") << "four";
  EXPECT_EQ(json("\xf4\x8f\xbf\xbf", R"({"\udbff\udfff":6})"), "6") << "the last character of all";
  EXPECT_EQ(json("\xf0\x90\x80\x80", R"({"\ud800\udc00":7})"), "7") << "the first of four bytes";
  EXPECT_EQ(json("\x7f", R"({"\u007f":1})"), "1");
  EXPECT_EQ(json("\xc2\x80", R"({"\u0080":1})"), "1");
  EXPECT_EQ(json("\xdf\xbf", R"({"\u07ff":1})"), "1");
  EXPECT_EQ(json("\xe0\xa0\x80", R"({"\u0800":1})"), "1");
  EXPECT_EQ(json("\xef\xbf\xbf", R"({"\uffff":1})"), "1");
  EXPECT_EQ(json("\b\f\n\r\t/\\\"", R"({"\b\f\n\r\t\/\\\"":1})"), "1");
  EXPECT_EQ(json("xAF", R"({"\u0078\u0041\u0046":1})"), "1");
  EXPECT_EQ(json("a", R"({"\u00G0":0,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"\u00@0":0,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"\u00`0":0,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"\u00g0":0,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"\u00:0":0,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"\u00/0":0,"a":1})"), "(null)");
}

TEST_F(JsonTest, HalfOfAPairOfEscapesStandsForItself) {
  EXPECT_EQ(json("\xed\xa0\xbd"
                 "A",
                 R"({"\ud83d\u0041":1})"),
            "1")
      << "no second half follows";
  EXPECT_EQ(json("\xed\xa0\xbd\xee\x80\x80", R"({"\ud83d\ue000":1})"), "1") << "one too large";
  EXPECT_EQ(json("\xed\xa0\xbd\xed\xaf\xbf", R"({"\ud83d\udbff":1})"), "1") << "one too small";
  EXPECT_EQ(json("\xed\xb0\x80\xed\xb0\x80", R"({"\udc00\udc00":1})"), "1");
  EXPECT_EQ(json("\xed\x9f\xbf\xed\xb0\x80", R"({"\ud7ff\udc00":1})"), "1");
  EXPECT_EQ(json("\xed\xa0\xbd", R"({"\ud83d":1})"), "1");
}

TEST_F(JsonTest, WhatIsNotThereIsNull) {
  for (const char* path : {"b", "a[4]", "a.b", "a[1].c", "o[0]", "n.x", "a[2][0]", "", ".", "a.",
                           "a[", "a[]", "a[x]", "a[1", "a[99999999999]", "[0]"}) {
    EXPECT_EQ(json(path), "(null)") << path;
  }
}

TEST_F(JsonTest, WhatIsNoJsonIsNull) {
  EXPECT_EQ(json("a", ""), "(null)");
  EXPECT_EQ(json("a", "{"), "(null)");
  EXPECT_EQ(json("a", R"({"a")"), "(null)");
  EXPECT_EQ(json("a", R"({"a":})"), "(null)");
  EXPECT_EQ(json("a", R"({"a":"x)"), "(null)");
  EXPECT_EQ(json("a", R"({"a":"\q"})"), "(null)");
  EXPECT_EQ(json("a", R"({"a":"\u00"})"), "(null)");
  EXPECT_EQ(json("a", R"({"b":[}],"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"b":word,"a":1})"), "(null)");
  EXPECT_EQ(json("a", R"({"a":{"b":[1)"), "(null)");
  for (const char* cut : {R"({"a":12)", R"({"a":true)", R"({"a":null)", R"({"a":12:)"}) {
    EXPECT_EQ(json("a", cut), "(null)") << cut;
  }
  EXPECT_EQ(json("a", R"({"a":12 )"), "12") << "a blank ends a number, too";
  for (const char* bad :
       {R"({"b":"\u00ZZ","a":1})", R"({"b":["\q"],"a":1})", R"({"\q":0,"a":1})"}) {
    EXPECT_EQ(json("a", bad), "(null)") << "nothing counts after a bad escape: " << bad;
  }
  EXPECT_EQ(json("a", R"({"b":)" + std::string(200, '[')), "(null)");
}

TEST_F(JsonTest, NullArgumentsFault) {
  EXPECT_EQ(call(Subroutine::Json, {number(0), text("a")}).error().kind, FaultKind::BadAddress);
}

}  // namespace
}  // namespace ringside::dif
