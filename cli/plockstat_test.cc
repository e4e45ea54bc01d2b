#include "cli/plockstat.h"

#include <gtest/gtest.h>

#include <string_view>

namespace ringside::cli {
namespace {

bool has(const std::string& program, std::string_view text) {
  return program.find(text) != std::string::npos;
}

TEST(Plockstat, HasWhatItIsAskedFor) {
  const std::string waits = plockstat_program({});
  EXPECT_TRUE(has(waits, "Mutex block") && has(waits, "R/W writer block"));
  EXPECT_FALSE(has(waits, "hold") || has(waits, "exit"));
  EXPECT_TRUE(has(waits, "@mtx_block_count[uaddr(arg0), uaddr(ucaller)] = count();"));

  const std::string holds = plockstat_program({.contention = false, .hold = true});
  EXPECT_TRUE(has(holds, "Mutex hold") && has(holds, "R/W reader hold"));
  EXPECT_FALSE(has(holds, "block"));

  const std::string both = plockstat_program({.hold = true, .depth = 7, .seconds = 3});
  EXPECT_TRUE(has(both, "Mutex hold") && has(both, "Mutex block"));
  EXPECT_TRUE(has(both, "[uaddr(arg0), ustack(7)]") && has(both, "tick-3s { exit(0); }"));
}

TEST(Plockstat, WhoGivesUpHasNotWaited) {
  EXPECT_TRUE(has(plockstat_program({}),
                  "mutex-error /self->mtx_block[arg0]/ { self->mtx_block[arg0] = 0; }"));
}

}  // namespace
}  // namespace ringside::cli
