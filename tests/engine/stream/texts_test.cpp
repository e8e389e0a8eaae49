// Texts of windows at a desk over a real model: what is continued, beside what, and what fails.
#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/stream/demo_desk.h"

namespace vigil::stream::texts_test {
namespace {

using stream::testing::DemoDesk;
using stream::testing::expect_same;
using stream::testing::ModelDesk;
using stream::testing::noise_window;
using stream::testing::question;
using stream::testing::rules;

std::vector<ClipRequest> two_clips() {
  return {{noise_window(2, 15), rules()}, {noise_window(3, 16), rules()}};
}

/// Why a text has no end; empty if it has one.
std::string failure_of(const DeskNews::Told& told) {
  if (!told.failure) return "";
  try {
    std::rethrow_exception(told.failure);
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

/// What was told of a question of a window.
const DeskNews::Told& told_of(const DeskNews& news, const WindowId& window, std::size_t question) {
  const auto found = std::find_if(news.told.begin(), news.told.end(), [&](const DeskNews::Told& each) {
    return each.window == window && each.question == question;
  });
  if (found == news.told.end()) throw std::out_of_range("nothing was told of this question");
  return *found;
}

TEST(TextsTest, AreContinuedOnceAndInAnyOrder) {
  DemoDesk parts;
  const std::vector<ClipRequest> batch = two_clips();
  const auto whole = DemoDesk().answer(batch);
  const auto asked = parts.clips.ask(batch);
  ASSERT_TRUE(parts.desk.explain(asked[1].window, 2));
  ASSERT_TRUE(parts.desk.explain(asked[0].window, 1));
  DeskNews news = parts.work();
  ASSERT_EQ(news.told.size(), 2U);
  expect_same(told_of(news, asked[1].window, 2).answer, whole[1][2]);
  expect_same(told_of(news, asked[0].window, 1).answer, whole[0][1]);
  // The same once more, beside one that was not.
  EXPECT_FALSE(parts.desk.explain(asked[1].window, 2));
  EXPECT_TRUE(parts.desk.explain(asked[1].window, 0));
  EXPECT_FALSE(parts.desk.explain(asked[0].window, 1));
  EXPECT_FALSE(parts.desk.explain(asked[1].window, 0));
  news = parts.work();
  ASSERT_EQ(news.told.size(), 1U);
  expect_same(told_of(news, asked[1].window, 0).answer, whole[1][0]);
}

TEST(TextsTest, WhatIsNotThereToContinueTakesNobodyWithIt) {
  DemoDesk parts;
  const ClipRequest request{noise_window(2, 15), rules()};
  const WindowId id = parts.clips.ask(std::span(&request, 1))[0].window;
  WindowId foreign = id;
  foreign.epoch += 1;
  EXPECT_FALSE(parts.desk.explain(foreign, 0));
  EXPECT_TRUE(parts.desk.explain(id, 0));
  EXPECT_FALSE(parts.desk.explain({"another", 0, 0}, 0));
  EXPECT_FALSE(parts.desk.explain(id, 3));
  const DeskNews news = parts.work();
  ASSERT_EQ(news.told.size(), 1U);
  expect_same(told_of(news, id, 0).answer, DemoDesk().answer(std::span(&request, 1))[0][0]);
}

/// Overwrites all keys and values that are there, which makes every logit NaN that comes after them.
void spoil(const ModelDesk& parts) {
  const kv::PageStore& pages = parts.model->parts.front()->pages;
  for (kv::PageId page = 0; page < pages.pages(); ++page)
    if (parts.model->book.references(page) > 0)
      std::memset(pages.page(page), 0xff, static_cast<std::size_t>(pages.layout().page_bytes()));
}

TEST(TextsTest, OneWithoutTokensTakesNoOtherWithIt) {
  const std::vector<ClipRequest> batch = two_clips();
  const auto whole = DemoDesk().answer(batch);
  // Such that all of them draw on after the first token.
  ASSERT_GT(std::min(whole[0][1].tokens.size(), whole[1][2].tokens.size()), 1U);
  DemoDesk parts;
  const std::int64_t pages = parts.free_pages();
  const WindowId bad = parts.clips.ask(std::span(batch).first(1))[0].window;
  spoil(parts);
  const WindowId good = parts.clips.ask(std::span(batch).last(1))[0].window;
  ASSERT_TRUE(parts.desk.explain(bad, 1));
  ASSERT_TRUE(parts.desk.explain(good, 2));
  const DeskNews news = parts.work();
  EXPECT_EQ(failure_of(told_of(news, bad, 1)), "no token has a logit above minus infinity");
  EXPECT_EQ(failure_of(told_of(news, good, 2)), "");
  expect_same(told_of(news, good, 2).answer, whole[1][2]);
  EXPECT_FALSE(parts.desk.explain(bad, 1)) << "once";
  parts.desk.done(bad);
  parts.desk.done(good);
  EXPECT_EQ(parts.free_pages(), pages);
}

/// Fails every pass in which the text of one sequence goes on by a token.
struct FailingPasses final : run::Passes {
  explicit FailingPasses(run::Passes& of) : passes(of) {}

  void run(const run::Pass& pass) override {
    for (const kernels::AttentionSegment& segment : pass.segments)
      if (segment.own.size() == 1 && segment.keys.front() == first_slot)
        throw std::runtime_error("a bad row");
    passes.run(pass);
  }
  std::span<const float> key_distances(const run::Pass& pass) override { return passes.key_distances(pass); }
  std::int32_t likeliest(std::size_t i) const override { return passes.likeliest(i); }
  std::span<const model::Candidate> likeliest(std::size_t i, std::size_t count) override {
    return passes.likeliest(i, count);
  }
  std::span<const float> logits(std::size_t i) override { return passes.logits(i); }
  void copy_pages(std::span<const kv::PageCopy> copies) override { passes.copy_pages(copies); }
  void take_pages(std::span<const kv::PageCopy> copies) override { passes.take_pages(copies); }
  std::size_t page_bytes() const override { return passes.page_bytes(); }
  std::uint64_t pages_form() const override { return passes.pages_form(); }
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override { passes.read_pages(pages, to); }
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override {
    passes.write_pages(pages, from);
  }
  void settle() noexcept override { passes.settle(); }

  run::Passes& passes;
  /// Where the sequence begins.
  std::int32_t first_slot = -1;
};

TEST(TextsTest, APassThatFailsTakesNobodyButItsCauseWithIt) {
  DemoDesk parts;
  FailingPasses passes(parts.passes);
  StreamDesk desk(*parts.model->folder, parts.model->prompts, parts.model->book, passes, {});
  Clips clips(desk, parts.questions, parts.clock);
  const std::vector<ClipRequest> batch = two_clips();
  const auto whole = DemoDesk().answer(batch);
  const std::int64_t pages = parts.free_pages();
  const WindowId bad = clips.ask(std::span(batch).first(1))[0].window;
  // The window's first page is the first that the book gave out.
  for (kv::PageId page = 0; passes.first_slot < 0; ++page)
    if (parts.model->book.references(page) > 0) passes.first_slot = page * parts.model->book.page_tokens();
  const WindowId good = clips.ask(std::span(batch).last(1))[0].window;
  ASSERT_TRUE(desk.explain(good, 2));
  ASSERT_TRUE(desk.explain(bad, 1));
  while (desk.due()) desk.work({});
  const DeskNews news = desk.take_news();
  EXPECT_THROW(std::rethrow_exception(told_of(news, bad, 1).failure), std::runtime_error);
  expect_same(told_of(news, good, 2).answer, whole[1][2]);
  desk.done(bad);
  desk.done(good);
  EXPECT_EQ(parts.free_pages(), pages);
}

// Two desks over one model, on streams of their own: what one prefills while texts go on at the other must
// not show in either.
TEST(TextsTest, GoOnBesideThePrefillOfOthers) {
  DemoDesk parts(8192);
  ModelDesk other(parts.model, {kernels::Stream::cpu(2)}, {}, parts.model.get());
  const ClipRequest request{noise_window(2, 17), {question("Is there a car? Explain.", 24)}};
  const Answer expected = DemoDesk().answer(std::span(&request, 1))[0][0];
  for (int round = 0; round < 5; ++round) {
    const WindowId id = parts.clips.ask(std::span(&request, 1))[0].window;
    auto loan = parts.desk.lend(id, 0);
    ASSERT_TRUE(loan);
    DeskNews news;
    std::thread generation([&] {
      other.desk.adopt(std::move(*loan));
      news = other.work();
    });
    const auto beside = parts.clips.ask(std::span(&request, 1))[0];
    generation.join();
    ASSERT_EQ(news.told.size(), 1U);
    expect_same(news.told[0].answer, expected);
    EXPECT_NEAR(beside.answers[0].probability_yes, expected.probability_yes, 1e-4);
    parts.desk.done(id);
    parts.desk.done(beside.window);
    EXPECT_EQ(parts.free_pages(), parts.model->book.pages());
  }
}

}  // namespace
}  // namespace vigil::stream::texts_test
