#include "cli/options/buffer_sizes.h"

#include <gtest/gtest.h>

#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

TEST(BufferSizes, AreWrittenAsDtraceDoes) {
  EXPECT_EQ(size_text(128 << 20), "128m");
  EXPECT_EQ(size_text(1 << 30), "1g");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(3 << 10), "3k");
}

TEST(BufferSizes, ThatWereLoweredAreNamed) {
  EXPECT_EQ(lowered_text({dif::BufferKind::Principal, 2 << 20}), "buffer size lowered to 2m");
  EXPECT_EQ(lowered_text({dif::BufferKind::Aggregation, 512 << 10}),
            "aggregation size lowered to 512k");
}

}  // namespace
}  // namespace ringside::cli
