#include "fleet/dock/text_arrivals.h"

#include <gtest/gtest.h>

#include "fleet/wire/link_frames.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPage = 4;

class TextArrivalsTest : public ::testing::Test {
 protected:
  /// Three pages, of a text that has said two tokens.
  actors::CarriedTextPtr text(std::uint64_t ticket = 7) {
    auto made = std::make_shared<actors::CarriedText>();
    made->ticket = ticket;
    made->watch = {"gate", actors::version_of(5, 1)};
    made->text.seen = {3, 4};
    made->text.max_tokens = 20;
    made->text.sampling.stop = {"end"};
    made->text.tokens = {300, 301};
    made->text.position = {5, 6, 7};
    made->text.probability_yes = 0.5F;
    made->text.prompt_tokens = 40;
    made->text.shared_tokens = 30;
    made->view = {3, {{0, 0, 8, false}, {1, 2, 8, false}, {2, 0, 3, true}}};
    made->is_far = true;
    made->pages_form = 11;
    made->page_bytes = kPage;
    made->due = clock_.now() - 2s;
    made->deadline = clock_.now() + 9s;
    const auto bytes = std::make_shared<std::string>("aaaabbbbcccc");
    for (std::size_t i = 0; i < 3; ++i)
      made->pages.push_back(reinterpret_cast<const std::byte*>(bytes->data()) + i * kPage);
    made->owners.push_back(bytes);
    return made;
  }
  /// As it comes out of the wire.
  template <class Frame>
  static Frame sent(const Frame& frame) {
    const auto read_back = read(write(LinkFrame(frame)));
    return std::get<Frame>(*read_back);
  }
  TextForm form(std::uint64_t ticket = 7) { return sent(TextFrame{form_of(*text(ticket), clock_)}).form; }
  PackedPages pages(int i, std::uint64_t ticket = 7) {
    return sent(pages_of(text(ticket), kPage)[static_cast<std::size_t>(i)]);
  }
  static std::string refusal(const std::vector<TextArrivals::News>& news) {
    return news.empty() ? "none" : news.front().text ? "whole" : news.front().refusal;
  }

  actors::testing::ManualClock clock_;
  TextArrivals arrivals_{clock_, 100};
};

TEST_F(TextArrivalsTest, RoomForWhatDoesNotComeAnyMoreIsForOthers) {
  TextArrivals arrivals(clock_, 2 * 3 * kPage);
  EXPECT_EQ(refusal(arrivals.begin("s1", form())), "none");
  EXPECT_EQ(refusal(arrivals.begin("s2", form(8))), "none");
  EXPECT_EQ(refusal(arrivals.begin("s3", form(9))), "too many texts are on their way");
  clock_.advance(5s);
  EXPECT_EQ(refusal(arrivals.take("s2", pages(0, 8))), "none");
  clock_.advance(TextArrivals::kPatience - 5s);
  const auto overdue = arrivals.take_overdue();
  ASSERT_EQ(overdue.size(), 1U) << "of the other one, pages come";
  EXPECT_EQ(overdue[0].first, "s1");
  EXPECT_EQ(overdue[0].second.ticket, 7U);
  EXPECT_EQ(overdue[0].second.refusal, "its pages did not come in time");
  EXPECT_EQ(refusal(arrivals.begin("s3", form(9))), "none");
  EXPECT_EQ(refusal(arrivals.take("s1", pages(1))), "none") << "late pages are passed over";
}

TEST_F(TextArrivalsTest, AllComesOutAsItWent) {
  EXPECT_EQ(refusal(arrivals_.begin("s1", form())), "none");
  EXPECT_EQ(arrivals_.bytes(), 3 * kPage);
  EXPECT_EQ(refusal(arrivals_.take("s1", pages(0))), "none");
  EXPECT_EQ(refusal(arrivals_.take("s1", pages(1))), "none");
  const auto news = arrivals_.take("s1", pages(2));
  ASSERT_EQ(news.size(), 1U);
  ASSERT_TRUE(news[0].text);
  EXPECT_EQ(arrivals_.bytes(), 0U);
  const actors::CarriedText& there = *news[0].text;
  const actors::CarriedTextPtr here = text();
  EXPECT_EQ(there.ticket, 7U);
  EXPECT_EQ(there.watch, here->watch);
  EXPECT_EQ(there.view, here->view);
  EXPECT_EQ(there.is_far, here->is_far);
  EXPECT_EQ(there.pages_form, here->pages_form);
  EXPECT_EQ(there.due, here->due);
  EXPECT_EQ(there.deadline, here->deadline);
  EXPECT_EQ(there.text.seen, here->text.seen);
  EXPECT_EQ(there.text.max_tokens, here->text.max_tokens);
  EXPECT_EQ(there.text.sampling.stop, here->text.sampling.stop);
  EXPECT_EQ(there.text.tokens, here->text.tokens);
  EXPECT_EQ(there.text.position, here->text.position);
  EXPECT_EQ(there.text.probability_yes, here->text.probability_yes);
  EXPECT_EQ(there.text.prompt_tokens, here->text.prompt_tokens);
  EXPECT_EQ(there.text.shared_tokens, here->text.shared_tokens);
  ASSERT_EQ(there.pages.size(), 3U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(there.pages[1]), kPage), "bbbb");
}

TEST_F(TextArrivalsTest, PagesGoTogetherAsFarAsAMessageHasRoom) {
  EXPECT_EQ(pages_of(text(), 1).size(), 3U) << "one at least";
  const auto two = pages_of(text(), 2 * kPage + 1);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].pages.size(), 2U);
  EXPECT_EQ(two[1].first, 2);
}

TEST_F(TextArrivalsTest, WhatDoesNotFitIsRefusedAndTheRestOfItPassedOver) {
  const auto spoil = [&](const std::function<void(PackedPages&)>& how) {
    arrivals_.begin("s1", form());
    PackedPages bad = pages(0);
    how(bad);
    const std::string why = refusal(arrivals_.take("s1", bad));
    EXPECT_EQ(arrivals_.bytes(), 0U);
    EXPECT_EQ(refusal(arrivals_.take("s1", pages(1))), "none");
    return why;
  };
  const std::string misfit = "its pages do not fit";
  EXPECT_EQ(spoil([](PackedPages& p) { p.first = 1; }), misfit);
  EXPECT_EQ(spoil([](PackedPages& p) { p.first = -1; }), misfit);
  EXPECT_EQ(spoil([](PackedPages& p) { p.pages.clear(); }), misfit);
  EXPECT_EQ(spoil([](PackedPages& p) { p.pages[0] = p.pages[0].part(0, 3); }), misfit) << "truncated";
  EXPECT_EQ(spoil([](PackedPages& p) { p.pages.resize(4, p.pages[0]); }), misfit) << "more than it has";
}

TEST_F(TextArrivalsTest, FormsThatAreNoneAreRefused) {
  const std::vector<std::function<void(TextForm&)>> spoiled = {
      [](TextForm& f) { f.watch.camera.clear(); },
      [](TextForm& f) { f.page_bytes = 0; },
      [](TextForm& f) { f.page_bytes = kMostPageBytes + 1; },
      [](TextForm& f) { f.view.pages = -1; },
      [](TextForm& f) { f.view.parts.pop_back(); },
      [](TextForm& f) { f.view.parts[0].page = 3; },
      [](TextForm& f) { f.left = std::numeric_limits<std::int64_t>::max(); },
      [](TextForm& f) { f.due = std::numeric_limits<std::int64_t>::min(); },
  };
  for (std::size_t i = 0; i < spoiled.size(); ++i) {
    TextForm bad = form();
    spoiled[i](bad);
    EXPECT_EQ(refusal(arrivals_.begin("s1", bad)), "that is no text") << i;
    EXPECT_EQ(arrivals_.bytes(), 0U);
  }
}

TEST_F(TextArrivalsTest, OfOneNodeOneComesAtATimeAndOfAllTogetherSoMuch) {
  arrivals_.begin("s1", form(1));
  const auto news = arrivals_.begin("s1", form(2));
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news[0].ticket, 1U);
  EXPECT_EQ(news[0].refusal, "its pages did not come");
  EXPECT_EQ(arrivals_.bytes(), 3 * kPage);
  // Of the one before.
  EXPECT_EQ(refusal(arrivals_.take("s1", pages(0, 1))), "none");
  for (int i = 2; i < 9; ++i) arrivals_.begin("s" + std::to_string(i), form());
  EXPECT_EQ(arrivals_.bytes(), 96U);
  EXPECT_EQ(refusal(arrivals_.begin("s9", form())), "too many texts are on their way");
  arrivals_.forget("s1");
  EXPECT_EQ(refusal(arrivals_.begin("s9", form())), "none");
  EXPECT_EQ(refusal(arrivals_.take("s1", pages(0, 2))), "none") << "of a node that began anew";
}

TEST_F(TextArrivalsTest, WhatNobodyCanTakeIsNotSent) {
  EXPECT_TRUE(can_pack(*text()));
  auto large = std::make_shared<actors::CarriedText>(*text());
  large->page_bytes = kMostPageBytes + 1;
  EXPECT_FALSE(can_pack(*large));
  large->page_bytes = kMostPageBytes;
  large->pages.resize(65);
  EXPECT_FALSE(can_pack(*large));
}

}  // namespace
}  // namespace vigil::fleet
