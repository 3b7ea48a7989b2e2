#include "engine/devices/virtual_gpu/values/peer_talk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "engine/devices/virtual_gpu/values/peer_audit.h"
#include "tests/support/test_folder.h"
#include "traces/base/descriptor.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

/// Rank in the job of the communicator's rank 0.
constexpr int kFirstOfJob = 4;
constexpr int kRanksOfJob = 8;

/// Two ranks of a communicator, in one process. `memory` stands for the device's memory of each.
struct PeerTalkTest : testing::Test {
  std::shared_ptr<PeerTalk> talk_of(int rank, int ranks = 2) {
    return std::make_shared<PeerTalk>(
        PeerSettings{
            folder.path(), kFirstOfJob + rank, kRanksOfJob, PeerPatience{std::chrono::seconds(1)}, {}},
        "key", rank, ranks);
  }
  CollectiveCall call(Collective collective, int rank, Bytes bytes, int root = 0) {
    char* const own = memory.at(static_cast<std::size_t>(rank)).data();
    return {.collective = collective,
            .send = own,
            .receive = own + 32,
            .bytes = bytes,
            .type = NumberType::kInt8,
            .reduction = Reduction::kSum,
            .is_root = root == rank,
            .root = root};
  }
  void give(int rank, std::vector<char> bytes) {
    values.at(static_cast<std::size_t>(rank))
        .write(memory.at(static_cast<std::size_t>(rank)).data(), bytes.data(),
               static_cast<Bytes>(bytes.size()));
  }
  std::vector<char> received(int rank, Bytes bytes) {
    return values.at(static_cast<std::size_t>(rank))
        .read(memory.at(static_cast<std::size_t>(rank)).data() + 32, bytes);
  }

  TestFolder folder;
  std::array<std::array<char, 64>, 2> memory{};
  std::array<SmallValues, 2> values;
  std::shared_ptr<PeerTalk> first = talk_of(0), second = talk_of(1);
};

TEST_F(PeerTalkTest, ARankThatLeavesEarlierIsReportedByTheOneThatComesLater) {
  const auto reports_both = ThrowsMessage<Error>(
      AllOf(HasSubstr("calls nothing more at end.py:1"), HasSubstr("calls all_reduce of 4 bytes")));
  first->call(call(Collective::kAllReduce, 0, 4), "train.py:1", values[0]);
  EXPECT_THAT([&] { second->leave("end.py:1"); }, reports_both);
  EXPECT_THAT([&] { first->call(call(Collective::kAllReduce, 0, 4), "train.py:2", values[0]); },
              reports_both);
}

TEST_F(PeerTalkTest, RanksThatLeaveAfterTheSameCollectivesAgree) {
  for (const int rank : {0, 1}) {
    const auto& talk = rank == 0 ? first : second;
    talk->call(call(Collective::kAllReduce, rank, 4), "", values.at(static_cast<std::size_t>(rank)));
    talk->leave("");
  }
}

TEST_F(PeerTalkTest, ValuesComeWhenTheyAreRead) {
  give(0, {1});
  give(1, {5});
  first->call(call(Collective::kAllGather, 0, 2), "a.py:1", values[0]);
  second->call(call(Collective::kAllGather, 1, 2), "a.py:1", values[1]);
  EXPECT_THAT(received(0, 2), ElementsAre(1, 5));
  EXPECT_THAT(received(1, 2), ElementsAre(1, 5));
}

TEST_F(PeerTalkTest, WhatKernelsComputedIsUnknown) {
  give(0, {1});
  first->call(call(Collective::kAllReduce, 0, 1), "", values[0]);
  second->call(call(Collective::kAllReduce, 1, 1), "", values[1]);
  EXPECT_THAT(received(0, 1), IsEmpty());
  EXPECT_THAT(received(1, 1), IsEmpty());
}

TEST_F(PeerTalkTest, ASentValueIsReceivedInItsOrder) {
  for (const char number : {'a', 'b'}) {
    give(0, {number});
    first->call(call(Collective::kSend, 0, 1, 1), "a.py:1", values[0]);
  }
  for (const char number : {'a', 'b'}) {
    second->call(call(Collective::kReceive, 1, 1, 0), "a.py:2", values[1]);
    EXPECT_THAT(received(1, 1), ElementsAre(number));
  }
}

TEST_F(PeerTalkTest, CallsThatDoNotMatchAreReportedWithBothPlaces) {
  first->call(call(Collective::kAllReduce, 0, 8), "a.py:1", values[0]);
  EXPECT_THAT(
      [&] { second->call(call(Collective::kAllReduce, 1, 16), "b.py:2", values[1]); },
      ThrowsMessage<Error>(AllOf(HasSubstr("rank 5 calls all_reduce of 16 bytes of int8 by sum at b.py:2"),
                                 HasSubstr("rank 4 calls all_reduce of 8 bytes of int8 by sum at a.py:1"))));
}

TEST_F(PeerTalkTest, ReductionsThatDoNotMatchAreReported) {
  CollectiveCall of_first = call(Collective::kAllReduce, 0, 8),
                 of_second = call(Collective::kAllReduce, 1, 8);
  of_first.type = of_second.type = NumberType::kBfloat16;
  of_second.reduction = Reduction::kMax;
  first->call(of_first, "a.py:1", values[0]);
  EXPECT_THAT([&] { second->call(of_second, "b.py:2", values[1]); },
              ThrowsMessage<Error>(AllOf(HasSubstr("all_reduce of 8 bytes of bfloat16 by maximum at b.py:2"),
                                         HasSubstr("all_reduce of 8 bytes of bfloat16 by sum at a.py:1"))));
}

TEST_F(PeerTalkTest, AMessageOfAnotherSizeIsReportedWithBothPlaces) {
  give(0, {1, 2});
  first->call(call(Collective::kSend, 0, 2, 1), "a.py:1", values[0]);
  second->call(call(Collective::kReceive, 1, 1, 0), "b.py:2", values[1]);
  EXPECT_THAT([&] { received(1, 1); }, ThrowsMessage<Error>(AllOf(HasSubstr("a.py:1"), HasSubstr("b.py:2"))));
}

TEST_F(PeerTalkTest, WaitsForALimitedTime) {
  give(0, {1});
  first->call(call(Collective::kAllReduce, 0, 1), "train.py:3", values[0]);
  EXPECT_THAT(
      [&] { received(0, 1); },
      ThrowsMessage<Error>(HasSubstr("rank 4 has waited 1 s for a value of rank 5 in all_reduce of 1 bytes "
                                     "of int8 by sum at train.py:3")));
}

TEST_F(PeerTalkTest, ARankReceivesWhatItSendsToItself) {
  give(0, {7});
  first->call(call(Collective::kSend, 0, 1, 0), "", values[0]);
  first->call(call(Collective::kReceive, 0, 1, 0), "", values[0]);
  EXPECT_THAT(received(0, 1), ElementsAre(7));
}

TEST_F(PeerTalkTest, LongMessagesAreComparedByTheNextCall) {
  first->call(call(Collective::kSend, 0, 2 * SmallValues::kLargest, 1), "a.py:1", values[0]);
  second->call(call(Collective::kReceive, 1, 4 * SmallValues::kLargest, 0), "a.py:2", values[1]);
  EXPECT_THAT([&] { second->call(call(Collective::kAllReduce, 1, 1), "", values[1]); },
              ThrowsMessage<Error>(AllOf(HasSubstr("a.py:1"), HasSubstr("a.py:2"))));
}

TEST_F(PeerTalkTest, RanksThatRanBeforeGiveWhatTheyBroadcastAndSend) {
  give(0, {7});
  EXPECT_THAT(first->call_alone(call(Collective::kBroadcast, 0, 1, 0), "", values[0]), IsEmpty());
  EXPECT_THAT(first->call_alone(call(Collective::kSend, 0, 1, 1), "", values[0]), IsEmpty());
  EXPECT_THAT(second->call_alone(call(Collective::kBroadcast, 1, 1, 0), "", values[1]), ElementsAre(7));
  EXPECT_THAT(second->call_alone(call(Collective::kReceive, 1, 1, 0), "", values[1]), ElementsAre(7));
  EXPECT_THAT(second->call_alone(call(Collective::kReceive, 1, 1, 0), "", values[1]), IsEmpty());
}

TEST_F(PeerTalkTest, RanksThatRanBeforeAreComparedWith) {
  first->call_alone(call(Collective::kAllReduce, 0, 1), "a.py:1", values[0]);
  EXPECT_THAT([&] { second->call_alone(call(Collective::kAllReduce, 1, 2), "a.py:2", values[1]); },
              ThrowsMessage<Error>(AllOf(HasSubstr("a.py:1"), HasSubstr("a.py:2"))));
}

TEST_F(PeerTalkTest, ARankAloneDoesNotCompareTheSizesOfObjects) {
  CollectiveCall own = call(Collective::kAllGather, 0, 1), other = call(Collective::kAllGather, 1, 2);
  own.is_of_objects = other.is_of_objects = true;
  first->call_alone(own, "a.py:1", values[0]);
  EXPECT_NO_THROW(second->call_alone(other, "a.py:2", values[1]));
  first->call_alone(own, "a.py:3", values[0]);
  EXPECT_THAT([&] { second->call_alone(call(Collective::kAllGather, 1, 1), "a.py:4", values[1]); },
              ThrowsMessage<Error>(AllOf(HasSubstr("all_gather of objects at a.py:3"), HasSubstr("a.py:4"))));
}

/// Ranks that have ended, by the messages between them.
struct PeerAuditTest : PeerTalkTest {
  void send(Bytes bytes, const std::string& site) {
    first->call(call(Collective::kSend, 0, bytes, 1), site, values[0]);
  }
  void receive(Bytes bytes, const std::string& site) {
    second->call(call(Collective::kReceive, 1, bytes, 0), site, values[1]);
  }
  std::vector<std::string> problems_after_leaving() {
    first->leave("");
    second->leave("");
    return unmatched_messages(folder.path());
  }
};

TEST_F(PeerAuditTest, MessagesThatAreReceivedAsTheyWereSentMatch) {
  for (const Bytes bytes : {Bytes{4}, SmallValues::kLargest + 1}) {
    send(bytes, "a.py:1");
    receive(bytes, "a.py:2");
  }
  EXPECT_THAT(problems_after_leaving(), IsEmpty());
}

TEST_F(PeerAuditTest, NamesTheFirstMessageThatNobodyReceives) {
  send(4, "a.py:1");
  receive(4, "a.py:2");
  send(8, "a.py:3");
  send(12, "a.py:4");
  EXPECT_THAT(problems_after_leaving(),
              ElementsAre("rank 4 sends 8 bytes of int8 at a.py:3, which no rank receives"));
}

TEST_F(PeerAuditTest, NamesAMessageThatNobodySends) {
  receive(4, "a.py:2");
  EXPECT_THAT(problems_after_leaving(),
              ElementsAre("rank 5 receives 4 bytes of int8 at a.py:2, which no rank sends"));
}

TEST_F(PeerAuditTest, NamesAMessageOfAnotherSize) {
  send(4, "a.py:1");
  receive(8, "a.py:2");
  EXPECT_THAT(
      problems_after_leaving(),
      ElementsAre("rank 4 sends 4 bytes of int8 at a.py:1, and rank 5 receives 8 bytes of int8 at a.py:2"));
}

TEST_F(PeerAuditTest, AMessageToItselfMatches) {
  first->call(call(Collective::kSend, 0, 4, 0), "", values[0]);
  first->call(call(Collective::kReceive, 0, 4, 0), "", values[0]);
  EXPECT_THAT(problems_after_leaving(), IsEmpty());
}

TEST_F(PeerAuditTest, ARankThatFailedIsNotCompared) {
  send(4, "a.py:1");
  first->leave("");
  EXPECT_THAT(unmatched_messages(folder.path()), IsEmpty());
}

TEST_F(PeerAuditTest, AMessageToARankThatNeverCameIsReportedIfAllRanksHaveRun) {
  const auto rank = [&](int of_job, int ranks_of_job, const std::string& key) {
    return std::make_shared<PeerTalk>(PeerSettings{folder.path(), of_job, ranks_of_job, std::nullopt, {}},
                                      key, 0, 2);
  };
  const TestFolder other;
  const auto alone = rank(0, 2, "pair");
  alone->call_alone(call(Collective::kSend, 0, 4, 1), "a.py:1", values[0]);
  alone->leave("");
  first.reset();
  second.reset();
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(peer_file_name("pair", 0).substr(0, 16))) std::filesystem::remove(entry);
  }
  EXPECT_THAT(unmatched_messages(folder.path()), IsEmpty());
  rank(1, 2, "another pair")->leave("");
  EXPECT_THAT(unmatched_messages(folder.path()),
              ElementsAre("rank 0 sends 4 bytes of int8 at a.py:1, which no rank receives"));
}

TEST_F(PeerTalkTest, ASignalEndsTheWait) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(pipe2(pipe.data(), O_NONBLOCK), 0);
  const Descriptor come(pipe[0]), told(pipe[1]);
  const unsigned char number = SIGTERM;
  ASSERT_EQ(write(told.get(), &number, 1), 1);
  const PeerPatience patience{std::chrono::seconds(5), come.get()};
  PeerChannel channel({folder.path(), kFirstOfJob, kRanksOfJob, patience, {}}, {{"own", 0}, {"other", 1}}, 0);
  EXPECT_THAT(
      [&] { channel.hear(1, 0); },
      ThrowsMessage<Error>(HasSubstr("rank 4 was interrupted while it waited for a value of rank 1 of "
                                     "the communicator")));
}

}  // namespace
}  // namespace offprof
