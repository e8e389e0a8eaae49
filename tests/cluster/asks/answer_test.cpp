// Replies as parts and back, and what is none.
#include "cluster/asks/answer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::optional<AskReply> parse(const std::vector<std::string>& texts) {
  std::vector<zmq::message_t> parts;
  for (const std::string& text : texts) parts.emplace_back(text.data(), text.size());
  return parse_reply(parts);
}

TEST(AskReply, ComesBackAsItWas) {
  const std::string largest = "\"" + std::string(kAskAnswerBytes - 2, 'a') + "\"";
  for (const AskReply& reply : {AskReply(AskAnswer{R"({"text": "at 10:15"})"}), AskReply(AskAnswer{largest}),
                                AskReply(AskProgress{R"({"windows": 3})"}),
                                AskReply(AskRefusal{AskRefusalType::busy, "later", 500ms}),
                                AskReply(AskRefusal{AskRefusalType::bad_request, "no"}),
                                AskReply(AskRefusal{AskRefusalType::forbidden, "no"}),
                                AskReply(AskRefusal{AskRefusalType::unavailable, "no"}),
                                AskReply(AskRefusal{AskRefusalType::too_late, "no", 0ms})}) {
    const auto again = parse(to_parts(reply));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, reply);
  }
}

TEST(AskReply, IsWrittenAsItsPageSays) {
  const auto answer = to_parts(AskAnswer{"{}"});
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_EQ(json::parse(answer[0]), json::parse(R"({"version": 1, "kind": "answer"})"));
  EXPECT_EQ(answer[1], "{}");
  const auto refused = to_parts(AskRefusal{AskRefusalType::busy, "later", 500ms});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(json::parse(refused[0]), json::parse(R"({"version": 1, "kind": "refused", "type": "busy",
                                                     "message": "later", "retry_after_ms": 500})"));
}

TEST(AskReply, WhatIsNoneIsNothing) {
  const std::string answer = R"({"version": 1, "kind": "answer"})";
  EXPECT_TRUE(parse({answer, "{}"}).has_value());
  EXPECT_FALSE(parse({}).has_value());
  EXPECT_FALSE(parse({answer}).has_value());
  EXPECT_FALSE(parse({answer, "{}", ""}).has_value());
  EXPECT_FALSE(parse({answer, "{"}).has_value());
  EXPECT_FALSE(parse({answer, "\"\xff\""}).has_value());
  EXPECT_FALSE(parse({answer, "\"" + std::string(kAskAnswerBytes, 'a') + "\""}).has_value());
  EXPECT_FALSE(parse({answer + std::string(4096, ' '), "{}"}).has_value());
  for (const char* header :
       {"", "[]", "7", "{}", R"({"kind": "answer"})", R"({"version": 2, "kind": "answer"})",
        R"({"version": 1, "kind": "novel"})", R"({"version": 1, "kind": ["answer"]})", R"({"version": 1})"}) {
    EXPECT_FALSE(parse({header, "{}"}).has_value()) << header;
  }
  const std::string refused = R"({"version": 1, "kind": "refused", "type": "busy", "message": "m")";
  EXPECT_TRUE(parse({refused + "}"}).has_value());
  EXPECT_FALSE(parse({refused + "}", "{}"}).has_value());
  for (const char* retry : {"-1", "1.5", "\"1\"", "null", "86400001", "18446744073709551615"})
    EXPECT_FALSE(parse({refused + ", \"retry_after_ms\": " + retry + "}"}).has_value()) << retry;
  EXPECT_FALSE(parse({R"({"version": 1, "kind": "refused", "type": "lazy", "message": "m"})"}).has_value());
  EXPECT_FALSE(parse({R"({"version": 1, "kind": "refused", "type": "busy", "message": 7})"}).has_value());
  EXPECT_FALSE(parse({R"({"version": 1, "kind": "refused", "type": "busy"})"}).has_value());
}

TEST(AskReply, AMessageIsOneLineWhoeverWroteIt) {
  const auto reply =
      parse({R"({"version": 1, "kind": "refused", "type": "busy", "message": "a\u001b[2J\nb"})"});
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(std::get<AskRefusal>(*reply).message, "a?[2J?b");
}

}  // namespace
}  // namespace vigil::cluster
