#include "dif/evaluate/subroutines.h"

#include <gtest/gtest.h>

#include "dif/testing/subroutine_fixture.h"

namespace ringside::dif {
namespace {

using testing::kKernel;
using testing::kUser;
using testing::SubroutineTest;

TEST_F(SubroutineTest, StrlenAndStrjoin) {
  EXPECT_EQ(as_number(Subroutine::Strlen, {text("workload")}), 8);
  EXPECT_EQ(as_text(Subroutine::Strjoin, {text("vfs_"), text("read")}), "vfs_read");
  EXPECT_EQ(as_text(Subroutine::Strjoin, {text(""), text("")}), "");
  EXPECT_EQ(
      as_text(Subroutine::Strjoin, {text(std::string(200, 'a')), text(std::string(100, 'b'))}),
      std::string(200, 'a') + std::string(56, 'b'))
      << "cut at strsize";
}

/// As many as a subroutine looks at, each as long as a string may be.
TEST_F(SubroutineTest, FourStringsOfTheGuestAreKeptAtOnce) {
  guest_.kernel_memory.put(kKernel, std::vector<std::byte>(4096, std::byte{'x'}));
  for (int round = 0; round < 2; ++round) {
    memory_.release_staging();
    for (unsigned n = 0; n < Memory::kStagedStrings; ++n) {
      const auto one = memory_.another_string(kKernel, 10'000);
      ASSERT_TRUE(one);
      EXPECT_EQ(*one, std::string(256, 'x'));
    }
    EXPECT_EQ(memory_.another_string(kKernel, 10'000).error().kind, FaultKind::NoScratch);
  }
  EXPECT_EQ(memory_.string(kKernel, 3), "xxx");
}

TEST_F(SubroutineTest, EachCallHasRoomForTheGuestsStringsAnew) {
  guest_.kernel_memory.put(kKernel, std::vector<std::byte>(4096, std::byte{'x'}));
  for (unsigned call = 0; call <= Memory::kStagedStrings; ++call) {
    EXPECT_EQ(as_number(Subroutine::Strlen, {number(std::int64_t(kKernel))}), 256) << call;
  }
}

TEST_F(SubroutineTest, StringsOfTheGuestAreReadByCopy) {
  guest_.kernel_memory.put_text(kKernel + 60, "crosses a line");
  EXPECT_EQ(as_number(Subroutine::Strlen, {number(std::int64_t(kKernel + 60))}), 14);
  EXPECT_EQ(as_text(Subroutine::Strjoin, {number(std::int64_t(kKernel + 60)), text("!")}),
            "crosses a line!");
}

TEST_F(SubroutineTest, AStringWithoutEndIsCutAtStrsize) {
  guest_.kernel_memory.put(kKernel, std::vector<std::byte>(4096, std::byte{'x'}));
  EXPECT_EQ(as_number(Subroutine::Strlen, {number(std::int64_t(kKernel))}), 256);
  const std::string joined =
      as_text(Subroutine::Strjoin, {number(std::int64_t(kKernel)), text("tail")});
  EXPECT_EQ(joined, std::string(256, 'x'));
}

TEST_F(SubroutineTest, SubstrFollowsItsDocumentedCases) {
  const auto substr = [&](std::int64_t at, std::optional<std::int64_t> n) {
    std::vector<TupleValue> a{text("abcdef"), number(at)};
    if (n) a.push_back(number(*n));
    return as_text(Subroutine::Substr, a);
  };
  EXPECT_EQ(substr(2, {}), "cdef");
  EXPECT_EQ(substr(2, 3), "cde");
  EXPECT_EQ(substr(-2, {}), "ef");
  EXPECT_EQ(substr(-3, 2), "de");
  EXPECT_EQ(substr(1, -2), "bcd");
  EXPECT_EQ(substr(6, {}), "");
  EXPECT_EQ(substr(2, 0), "");
  EXPECT_EQ(substr(-8, 3), "a") << "two bytes of the three lie before the string";
  EXPECT_EQ(substr(INT64_MIN, 5), "");
  EXPECT_EQ(substr(INT64_MAX, INT64_MIN), "");
  EXPECT_EQ(substr(-6, {}), "abcdef");
  EXPECT_EQ(substr(-20, {}), "abcdef") << "all that lies before the string is cut off";
  EXPECT_EQ(substr(-8, 2), "") << "none of it reaches the string";
  EXPECT_EQ(substr(-8, 1), "");
  EXPECT_EQ(substr(5, 5), "f");
  EXPECT_EQ(substr(0, 6), "abcdef");
  EXPECT_EQ(substr(0, -5), "a");
  EXPECT_EQ(substr(0, -6), "");
  EXPECT_EQ(substr(2, -3), "c");
  EXPECT_EQ(substr(2, -4), "");
  EXPECT_EQ(substr(-2, -1), "e");
}

TEST_F(SubroutineTest, SearchesAnswerWithPlacesInTheOriginal) {
  const TupleValue path = text("/usr/lib/x");
  EXPECT_EQ(call(Subroutine::Strchr, {path, number('/')}), path.value);
  EXPECT_EQ(call(Subroutine::Strrchr, {path, number('/')}), path.value + 8);
  EXPECT_EQ(call(Subroutine::Strstr, {path, text("lib")}), path.value + 5);
  EXPECT_EQ(call(Subroutine::Strchr, {path, number('q')}), 0u);
  EXPECT_EQ(call(Subroutine::Strstr, {path, text("nope")}), 0u);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/")}), 0);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(1)}), 4);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("q")}), -1);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("/")}), 8);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("/"), number(7)}), 4);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("/"), number(-1)}), -1);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("/"), number(0)}), 0);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("/"), number(INT64_MAX)}), 8);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("q")}), -1);
  EXPECT_EQ(call(Subroutine::Strrchr, {path, number('q')}), 0u);
  EXPECT_EQ(call(Subroutine::Strchr, {path, number(0)}), path.value + 10)
      << "the end of the string";
  EXPECT_EQ(call(Subroutine::Strrchr, {path, number(0)}), path.value + 10);
  EXPECT_EQ(call(Subroutine::Strstr, {path, text("")}), path.value);
}

TEST_F(SubroutineTest, IndexAndRindexBeginWhereTheyAreTold) {
  const TupleValue path = text("/usr/lib/x");
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(-1)}), 0);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(4)}), 4);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(5)}), 8);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(9)}), -1);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("/"), number(INT64_MAX)}), -1);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text("")}), 0) << "nothing is everywhere";
  EXPECT_EQ(as_number(Subroutine::Index, {path, text(""), number(3)}), 3);
  EXPECT_EQ(as_number(Subroutine::Index, {path, text(""), number(100)}), 10);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text("")}), 10);
  EXPECT_EQ(as_number(Subroutine::Rindex, {path, text(""), number(-1)}), 0);
}

TEST_F(SubroutineTest, StrtokGoesOnWithinAFiring) {
  EXPECT_EQ(as_text(Subroutine::Strtok, {text("::a:b::c"), text(":")}), "a");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(":")}), "b");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(":")}), "c");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(":")}), "(null)");

  EXPECT_EQ(as_text(Subroutine::Strtok, {text("a:b"), text(":")}), "a");
  memory_.begin_clause();
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(":")}), "b");

  EXPECT_EQ(as_text(Subroutine::Strtok, {text("a:b"), text(":")}), "a");
  subroutines_.begin_firing();
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(":")}), "(null)");

  EXPECT_EQ(as_text(Subroutine::Strtok, {text("::"), text(":")}), "(null)");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(";")}), "(null)")
      << "once it has found none, there is nothing to go on with";
}

TEST_F(SubroutineTest, StrtokGoesOnAtTheDelimiterOfTheLastToken) {
  EXPECT_EQ(as_text(Subroutine::Strtok, {text("a,b;c,d"), text(",")}), "a");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(";")}), ",b");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(",")}), ";c");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(",")}), "d");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(",")}), "(null)");

  EXPECT_EQ(as_text(Subroutine::Strtok, {text("a,"), text(",")}), "a");
  EXPECT_EQ(as_text(Subroutine::Strtok, {number(0), text(";")}), ",");
}

TEST_F(SubroutineTest, PathNames) {
  EXPECT_EQ(as_text(Subroutine::Basename, {text("/usr/lib/")}), "lib");
  EXPECT_EQ(as_text(Subroutine::Basename, {text("lib")}), "lib");
  EXPECT_EQ(as_text(Subroutine::Basename, {text("//")}), "/");
  EXPECT_EQ(as_text(Subroutine::Basename, {text("")}), ".");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("/usr/lib/")}), "/usr");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("/usr")}), "/");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("usr")}), ".");
  EXPECT_EQ(as_text(Subroutine::Cleanpath, {text("/a/./b//../c")}), "/a/c");
  EXPECT_EQ(as_text(Subroutine::Cleanpath, {text("/../..")}), "/");
  EXPECT_EQ(as_text(Subroutine::Cleanpath, {text("../../a/b/..")}), "../../a");
  EXPECT_EQ(as_text(Subroutine::Cleanpath, {text("a/..")}), ".");
  EXPECT_EQ(as_text(Subroutine::Cleanpath, {text("")}), "");
  EXPECT_EQ(as_text(Subroutine::Basename, {text("/usr//lib//")}), "lib");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("/usr//lib//")}), "/usr");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("//")}), "/");
  EXPECT_EQ(as_text(Subroutine::Dirname, {text("")}), ".");
}

TEST_F(SubroutineTest, CleanpathTakesBackWhatIsNotTwoDotsItself) {
  const auto clean = [this](std::string_view path) {
    return as_text(Subroutine::Cleanpath, {text(path)});
  };
  for (const char* gone : {"x/..", "xy/..", ".x/..", "x./..", ".../.."})
    EXPECT_EQ(clean(gone), ".");
  EXPECT_EQ(clean("a/xy/.."), "a");
  EXPECT_EQ(clean("/a/.."), "/");
  EXPECT_EQ(clean("/a/b/../../.."), "/");
  EXPECT_EQ(clean("a/../.."), "..");
  EXPECT_EQ(clean("a//"), "a");
  EXPECT_EQ(clean("/"), "/");
  EXPECT_EQ(clean("a/..b"), "a/..b");
}

TEST_F(SubroutineTest, NumbersToTextAndBack) {
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(INT64_MIN)}), "-9223372036854775808");
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(255), number(16)}), "0xff");
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(0), number(8)}), "0");
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(5), number(2)}), "101");
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(5), number(37)}), "(fault)");
  EXPECT_EQ(as_number(Subroutine::Strtoll, {text("  -42x")}), -42);
  EXPECT_EQ(as_number(Subroutine::Strtoll, {text("0xff"), number(16)}), 255);
  EXPECT_EQ(as_number(Subroutine::Strtoll, {text("")}), 0);
}

TEST_F(SubroutineTest, NumbersHaveABaseFrom2To36) {
  const auto written = [this](std::int64_t value, std::int64_t base) {
    return as_text(Subroutine::Lltostr, {number(value), number(base)});
  };
  EXPECT_EQ(written(-1, 2), std::string(64, '1'));
  EXPECT_EQ(written(35, 36), "z");
  EXPECT_EQ(written(-8, 10), "-8");
  EXPECT_EQ(written(8, 8), "010");
  EXPECT_EQ(written(0, 16), "0x0");
  EXPECT_EQ(as_text(Subroutine::Lltostr, {number(-8)}), "-8");
  EXPECT_EQ(as_number(Subroutine::Strtoll, {text("101"), number(2)}), 5);
  EXPECT_EQ(as_number(Subroutine::Strtoll, {text("Zz9"), number(36)}), 35 * 36 * 36 + 35 * 36 + 9);
  for (const std::int64_t base : {-10, 0, 1, 37}) {
    EXPECT_EQ(written(5, base), "(fault)");
    EXPECT_EQ(as_text(Subroutine::Strtoll, {text("5"), number(base)}), "(fault)");
  }
}

TEST_F(SubroutineTest, StrtollTakesBlanksASignAndDigitsOfItsBase) {
  const auto read = [this](std::string_view digits, std::int64_t base) {
    return as_number(Subroutine::Strtoll, {text(digits), number(base)});
  };
  EXPECT_EQ(read("\t\n\v\f\r +1090", 10), 1090);
  EXPECT_EQ(read("-", 10), 0);
  EXPECT_EQ(read("--1", 10), 0);
  EXPECT_EQ(read("178", 8), 15);
  EXPECT_EQ(read("aAfFgG", 16), 0xaaff);
  EXPECT_EQ(read("0X1f", 16), 0x1f);
  EXPECT_EQ(read("0x1f", 10), 0) << "a prefix of base 16 alone";
  for (const char* none : {"1/", "1:", "1@", "1[", "1`", "1{"})
    EXPECT_EQ(read(none, 36), 1) << none;
  EXPECT_EQ(read("18446744073709551618", 10), 2) << "it wraps";
}

TEST_F(SubroutineTest, RandIsAnIntThatIsNotTheLastOne) {
  bool negative = false, positive = false;
  std::int64_t last = as_number(Subroutine::Rand, {});
  for (int n = 0; n < 100; ++n) {
    const std::int64_t next = as_number(Subroutine::Rand, {});
    EXPECT_EQ(next, static_cast<std::int32_t>(next));
    EXPECT_NE(next, last);
    (next < 0 ? negative : positive) = true;
    last = next;
  }
  EXPECT_TRUE(negative && positive);
}

TEST_F(SubroutineTest, ByteOrderAndCase) {
  EXPECT_EQ(as_number(Subroutine::Htons, {number(0x1234)}), 0x3412);
  EXPECT_EQ(as_number(Subroutine::Ntohl, {number(0x12345678)}), 0x78563412);
  EXPECT_EQ(as_number(Subroutine::Htonll, {number(1)}), std::int64_t{1} << 56);
  EXPECT_EQ(as_text(Subroutine::Toupper, {text("Vfs_read1")}), "VFS_READ1");
  EXPECT_EQ(as_text(Subroutine::Tolower, {text("ETH0")}), "eth0");
  EXPECT_EQ(as_text(Subroutine::Toupper, {text("`az{@AZ[")}), "`AZ{@AZ[");
  EXPECT_EQ(as_text(Subroutine::Tolower, {text("`az{@AZ[")}), "`az{@az[");
}

TEST_F(SubroutineTest, InetNtoaReadsNetworkOrder) {
  guest_.kernel_memory.put_value(kKernel, std::uint32_t{0x0100'007f});
  EXPECT_EQ(as_text(Subroutine::InetNtoa, {number(std::int64_t(kKernel))}), "127.0.0.1");
}

TEST_F(SubroutineTest, CopyinstrReadsUserTextUpToItsEnd) {
  guest_.user_memory.put_text(kUser + 60, "/etc/passwd");
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser + 60)}), "/etc/passwd");
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser + 60), number(4)}), "/etc");
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser + 60), number(0)}), "");

  const auto unmapped = call(Subroutine::Copyinstr, {number(kUser)});
  ASSERT_FALSE(unmapped);
  EXPECT_EQ(unmapped.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(unmapped.error().address, kUser);
}

TEST_F(SubroutineTest, CopyinstrFaultsWhereTheTextRunsIntoNothing) {
  guest_.user_memory.put_text(kUser, "abc");
  guest_.user_memory.unmap(kUser + 3);
  EXPECT_EQ(call(Subroutine::Copyinstr, {number(kUser)}).error().address, kUser + 3);
}

TEST_F(SubroutineTest, CopyinstrKeepsNoMoreScratchThanTheTextNeeds) {
  guest_.user_memory.put(kUser, std::vector<std::byte>(1000, std::byte{'u'}));
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser), number(7)}), std::string(7, 'u'));
  EXPECT_EQ(memory_.scratch_used(), 8u) << "with its NUL";
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser), number(8)}), std::string(8, 'u'));
  EXPECT_EQ(memory_.scratch_used(), 24u);
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser)}), std::string(256, 'u'));
  EXPECT_EQ(as_text(Subroutine::Copyinstr, {number(kUser), number(-1)}), std::string(256, 'u'));
}

TEST_F(SubroutineTest, ScratchIsWrittenUpToItsLastByte) {
  const std::uint64_t all = EngineOptions().scratch_size;
  const auto may = [this](Arena arena, std::uint64_t offset, std::uint64_t size) {
    return memory_.writable(make_handle(arena, offset), size).has_value();
  };
  EXPECT_TRUE(may(Arena::Scratch, all - 8, 8));
  EXPECT_FALSE(may(Arena::Scratch, all - 8, 9));
  EXPECT_TRUE(may(Arena::Scratch, all, 0));
  EXPECT_FALSE(may(Arena::Scratch, all + 1, 0));
  EXPECT_FALSE(may(Arena::Scratch, 8, UINT64_MAX));
  for (const Arena arena : {Arena::Constants, Arena::Names, Arena::Context, Arena::Dynamic}) {
    EXPECT_FALSE(may(arena, 0, 1));
  }
  std::array<std::byte, 8> out{};
  EXPECT_EQ(memory_.read_state(make_handle(Arena::Scratch, all - 4), out).error().address,
            make_handle(Arena::Scratch, all))
      << "the first byte that is not there";
}

TEST_F(SubroutineTest, ScratchThatALoopFreesIsWhatItHadTaken) {
  (void)text("before");
  const std::size_t used = memory_.scratch_used();
  (void)text("inside");
  memory_.free_scratch(used);
  EXPECT_EQ(memory_.scratch_used(), used);
  memory_.free_scratch(used + 8);
  EXPECT_EQ(memory_.scratch_used(), used) << "never more than is in use";
}

TEST_F(SubroutineTest, CopyinAndCopyintoFillScratch) {
  guest_.user_memory.put_value(kUser, std::uint64_t{77});
  const auto at = call(Subroutine::Copyin, {number(kUser), number(8)});
  ASSERT_TRUE(at);
  std::uint64_t value = 0;
  ASSERT_TRUE(memory_.read(*at, std::as_writable_bytes(std::span(&value, 1))));
  EXPECT_EQ(value, 77u);
  EXPECT_TRUE(call(Subroutine::Copyin, {number(0), number(0)})) << "nothing is read";

  const auto room = call(Subroutine::Alloca, {number(8)});
  EXPECT_EQ(call(Subroutine::Copyinto, {number(kUser), number(8), number(std::int64_t(*room))}),
            0u);
  ASSERT_TRUE(memory_.read(*room, std::as_writable_bytes(std::span(&value, 1))));
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(call(Subroutine::Copyin, {number(kUser), number(INT64_MAX)}).error().kind,
            FaultKind::NoScratch);
  EXPECT_EQ(call(Subroutine::Copyinto, {number(kUser), number(8), number(kUser)}).error().kind,
            FaultKind::BadAddress)
      << "only scratch can be written";
}

TEST_F(SubroutineTest, WrongNumberOfArgumentsIsIllegal) {
  EXPECT_EQ(call(Subroutine::Strjoin, {text("a")}).error().kind, FaultKind::IllegalOperation);
  EXPECT_EQ(call(Subroutine::Rand, {number(1)}).error().kind, FaultKind::IllegalOperation);
  EXPECT_EQ(call(Subroutine::Msgsize, {number(1)}).error().kind, FaultKind::IllegalOperation);
}

}  // namespace
}  // namespace ringside::dif
