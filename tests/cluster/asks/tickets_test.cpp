// The books of requests that are under way, without sockets.
#include "cluster/asks/tickets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using TimePoint = base::Clock::TimePoint;

AskRoute route(const std::string& connection, const std::string& tag, int descriptor = 1) {
  return {.routing_id = connection, .delimited = false, .tag = tag, .connection = descriptor};
}

AskRequest question(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
  return AskQuestion{.camera = "gate", .question = "When?", .timeout = timeout};
}

AskTicket opened(const std::variant<AskTicket, AskRefusal>& result) {
  const auto* ticket = std::get_if<AskTicket>(&result);
  EXPECT_NE(ticket, nullptr);
  return ticket == nullptr ? 0 : *ticket;
}

AskRefusal refused(const std::variant<AskTicket, AskRefusal>& result) {
  const auto* refusal = std::get_if<AskRefusal>(&result);
  EXPECT_NE(refusal, nullptr);
  return refusal == nullptr ? AskRefusal{} : *refusal;
}

TEST(AskTickets, GiveEachRequestToWhoeverTakesItOnce) {
  AskTickets tickets({});
  const AskTicket first = opened(tickets.open(route("a", "1"), {}, question(), TimePoint(1s)));
  const AskTicket second = opened(tickets.open(route("b", "1"), Asker{"k"}, MemoryList{}, TimePoint(2s)));
  EXPECT_NE(first, second);
  const auto taken = tickets.take_untaken();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].ticket, first);
  EXPECT_EQ(taken[0].request, question());
  EXPECT_EQ(taken[0].deadline, TimePoint(61s));
  EXPECT_EQ(taken[1].who, Asker{"k"});
  EXPECT_THAT(tickets.take_untaken(), IsEmpty());
  EXPECT_EQ(tickets.size(), 2U);
  tickets.close(first);
  EXPECT_EQ(tickets.find(first), nullptr);
  EXPECT_NE(tickets.find(second), nullptr);
  EXPECT_THAT(tickets.take_given_up(), IsEmpty());
}

TEST(AskTickets, AClientHasItsShareAndAllHaveTheirs) {
  AskTickets tickets({.all = 3, .of_client = 2, .retry_after = 700ms});
  const AskTicket first = opened(tickets.open(route("a", "1"), {}, question(), {}));
  opened(tickets.open(route("a", "2"), {}, question(), {}));
  EXPECT_EQ(
      refused(tickets.open(route("a", "3"), {}, question(), {})),
      (AskRefusal{AskRefusalType::busy, "as many requests of this client as may be are under way", 700ms}));
  opened(tickets.open(route("b", "1"), {}, question(), {}));
  EXPECT_EQ(refused(tickets.open(route("c", "1"), {}, question(), {})),
            (AskRefusal{AskRefusalType::busy, "as many requests as may be are under way", 700ms}));
  tickets.close(first);
  opened(tickets.open(route("a", "3"), {}, question(), {}));
}

TEST(AskTickets, AKeyHasOneShareHoweverItConnects) {
  AskTickets tickets({.of_client = 1});
  opened(tickets.open(route("a", "1"), Asker{"k"}, question(), {}));
  EXPECT_EQ(refused(tickets.open(route("b", "1"), Asker{"k"}, question(), {})).type, AskRefusalType::busy);
  opened(tickets.open(route("c", "1"), Asker{"another"}, question(), {}));
}

TEST(AskTickets, ATagIsOneRequestsOfAConnection) {
  AskTickets tickets({});
  const AskTicket first = opened(tickets.open(route("a", "1"), {}, question(), {}));
  EXPECT_EQ(refused(tickets.open(route("a", "1"), {}, question(), {})),
            (AskRefusal{AskRefusalType::bad_request, "tag: is of a request that is not answered yet"}));
  opened(tickets.open(route("b", "1"), {}, question(), {}));
  tickets.close(first);
  opened(tickets.open(route("a", "1"), {}, question(), {}));
}

TEST(AskTickets, ARequestIsOverAtItsOwnDeadline) {
  AskTickets tickets({.patience = 10s, .longest = 20s});
  const AskTicket patient = opened(tickets.open(route("a", "1"), {}, question(1h), TimePoint(0s)));
  const AskTicket hasty =
      opened(tickets.open(route("a", "2"), {}, MemoryErase{.camera = "gate", .timeout = 5s}, TimePoint(0s)));
  const AskTicket usual = opened(tickets.open(route("a", "3"), {}, MemoryList{}, TimePoint(0s)));
  tickets.take_untaken();
  EXPECT_THAT(tickets.expire(TimePoint(4999ms)), IsEmpty());
  const auto late = tickets.expire(TimePoint(5s));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].route.tag, "2");
  EXPECT_EQ(late[0].patience, 5s);
  EXPECT_THAT(tickets.take_given_up(), ElementsAre(GivenUpAsk{hasty, AskEnd::too_late}));
  EXPECT_EQ(tickets.expire(TimePoint(20s)).size(), 2U);
  EXPECT_THAT(tickets.take_given_up(),
              ElementsAre(GivenUpAsk{patient, AskEnd::too_late}, GivenUpAsk{usual, AskEnd::too_late}));
  EXPECT_EQ(tickets.size(), 0U);
}

TEST(AskTickets, AClientThatGoesTakesItsRequestsAlong) {
  AskTickets tickets({});
  const AskTicket first = opened(tickets.open(route("a", "1", 7), {}, question(), {}));
  opened(tickets.open(route("b", "1", 8), {}, question(), {}));
  const AskTicket third = opened(tickets.open(route("a", "2", 7), {}, question(), {}));
  tickets.take_untaken();
  tickets.lost(7);
  tickets.lost(9);
  EXPECT_THAT(tickets.take_given_up(),
              ElementsAre(GivenUpAsk{first, AskEnd::gone}, GivenUpAsk{third, AskEnd::gone}));
  EXPECT_EQ(tickets.size(), 1U);
}

TEST(AskTickets, AClientWithdrawsItsOwnAlone) {
  AskTickets tickets({});
  const AskTicket first = opened(tickets.open(route("a", "1"), {}, question(), {}));
  tickets.take_untaken();
  EXPECT_FALSE(tickets.cancel("b", "1"));
  EXPECT_FALSE(tickets.cancel("a", "2"));
  EXPECT_TRUE(tickets.cancel("a", "1"));
  EXPECT_FALSE(tickets.cancel("a", "1"));
  EXPECT_THAT(tickets.take_given_up(), ElementsAre(GivenUpAsk{first, AskEnd::cancelled}));
}

TEST(AskTickets, WhoNeverTookARequestOrHasAnsweredItIsToldOfNoEnd) {
  AskTickets tickets({});
  opened(tickets.open(route("a", "untaken", 1), {}, question(), {}));
  EXPECT_TRUE(tickets.cancel("a", "untaken"));
  EXPECT_THAT(tickets.take_untaken(), IsEmpty());
  const AskTicket answered = opened(tickets.open(route("a", "1", 1), {}, question(1s), TimePoint(0s)));
  tickets.take_untaken();
  tickets.find(answered)->held = AskAnswer{"{}"};
  EXPECT_THAT(tickets.held(), ElementsAre(answered));
  EXPECT_THAT(tickets.expire(TimePoint(1s)), IsEmpty()) << "too late was not the answerer";
  EXPECT_EQ(tickets.size(), 0U);
  EXPECT_THAT(tickets.take_given_up(), IsEmpty());
}

}  // namespace
}  // namespace vigil::cluster
