#include "providers/fire/channel.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

Channel chosen(bool has_exits, unsigned vcpus, unsigned cpus, Channel wanted = Channel::Auto) {
  const auto channel = choose_channel(wanted, {has_exits, vcpus, cpus});
  EXPECT_TRUE(channel);
  return channel.value_or(Channel::Auto);
}

TEST(ChannelChoices, SpinWantsACpuBesideTheVcpus) {
  EXPECT_EQ(chosen(true, 2, 3), Channel::Spin);
  EXPECT_EQ(chosen(true, 2, 2), Channel::Exit);
  EXPECT_EQ(chosen(true, 1, 1), Channel::Exit);
}

TEST(ChannelChoices, AMachineInAnotherProcessHasOnlyOne) {
  EXPECT_EQ(chosen(false, 4, 1), Channel::Spin);

  const auto refused = choose_channel(Channel::Exit, {false, 1, 8});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--machine kvm"), std::string::npos);
}

TEST(ChannelChoices, WhatTheUserNamesIsTaken) {
  EXPECT_EQ(chosen(true, 1, 8, Channel::Exit), Channel::Exit);
  EXPECT_EQ(chosen(true, 8, 1, Channel::Spin), Channel::Spin);
  EXPECT_GE(online_cpus(), 1u);
}

}  // namespace
}  // namespace ringside::providers
