#include "actors/target/explanations.h"

#include <chrono>
#include <stdexcept>

#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;

const stream::WindowId kWindow{"gate", 3, 7};
constexpr base::Clock::TimePoint kNow{100s};

stream::DeskNews::Told told(std::size_t question, std::vector<std::int32_t> tokens) {
  stream::DeskNews::Told result{kWindow, question, {}, nullptr, kNow - 2s};
  result.answer.text = "Yes, a man.";
  result.answer.tokens = std::move(tokens);
  return result;
}

TEST(Explanations, EachIsToldToTheOneWhoAsked) {
  Explanations explanations;
  explanations.ask(kWindow, 0, 11);
  explanations.ask(kWindow, 2, 12);
  const Explanations::Told second = explanations.tell(told(2, {1, 2, 3, 4}), kNow);
  EXPECT_EQ(second.explanation, (Explanation{12, "Yes, a man.", ""}));
  EXPECT_EQ(second.tokens, 4);
  EXPECT_EQ(second.later, 3) << "the first one was there with the window's answers";
  EXPECT_EQ(second.seconds, 2);
  EXPECT_EQ(explanations.tell(told(0, {1}), kNow).explanation.ticket, 11U);
}

TEST(Explanations, WhatHasNoEndIsToldWithItsReason) {
  Explanations explanations;
  explanations.ask(kWindow, 0, 11);
  stream::DeskNews::Told failed = told(0, {});
  failed.failure = std::make_exception_ptr(std::runtime_error("its time is over"));
  const Explanations::Told result = explanations.tell(failed, kNow);
  EXPECT_EQ(result.explanation, (Explanation{11, "", "its time is over"}));
  EXPECT_EQ(result.tokens, 0);
  EXPECT_EQ(Explanations::gone(5), (Explanation{5, "", "the window has left the cache"}));
}

TEST(Explanations, AnAnswerThatEndedWithItsFirstTokenTookNoTime) {
  Explanations explanations;
  explanations.ask(kWindow, 0, 11);
  stream::DeskNews::Told at_once = told(0, {1});
  at_once.begun.reset();
  const Explanations::Told result = explanations.tell(at_once, kNow);
  EXPECT_EQ(result.later, 0);
  EXPECT_EQ(result.seconds, 0);
}

}  // namespace
}  // namespace vigil::actors
