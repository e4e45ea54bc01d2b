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

TEST_F(SubroutineTest, ByteOrderAndCase) {
  EXPECT_EQ(as_number(Subroutine::Htons, {number(0x1234)}), 0x3412);
  EXPECT_EQ(as_number(Subroutine::Ntohl, {number(0x12345678)}), 0x78563412);
  EXPECT_EQ(as_number(Subroutine::Htonll, {number(1)}), std::int64_t{1} << 56);
  EXPECT_EQ(as_text(Subroutine::Toupper, {text("Vfs_read1")}), "VFS_READ1");
  EXPECT_EQ(as_text(Subroutine::Tolower, {text("ETH0")}), "eth0");
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

TEST_F(SubroutineTest, CopyinAndCopyintoFillScratch) {
  guest_.user_memory.put_value(kUser, std::uint64_t{77});
  const auto at = call(Subroutine::Copyin, {number(kUser), number(8)});
  ASSERT_TRUE(at);
  std::uint64_t value = 0;
  ASSERT_TRUE(memory_.read(*at, std::as_writable_bytes(std::span(&value, 1))));
  EXPECT_EQ(value, 77u);

  const auto room = call(Subroutine::Alloca, {number(8)});
  ASSERT_TRUE(call(Subroutine::Copyinto, {number(kUser), number(8), number(std::int64_t(*room))}));
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
