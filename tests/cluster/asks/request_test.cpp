// What can be asked, as text and back, and what is refused.
#include "cluster/asks/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto parsed = parse_request(text);
  const auto* bad = std::get_if<BadRequest>(&parsed);
  return bad == nullptr ? "accepted" : bad->reason;
}

/// A question with one key that is another, or one more.
std::string question_with(const std::string& key, const std::string& value) {
  json question = {{"camera", "gate-7"}, {"question", "When?"}, {"from_ms", 10}, {"to_ms", 20}};
  question[key] = json::parse(value);
  return json{{"ask", question}}.dump();
}

TEST(AskRequest, IsReadAsTheJsonThatOthersWrite) {
  const auto parsed = parse_request(
      R"({"ask": {"camera": "gate-7", "tenant": "north", "question": "When did the red car arrive?",
          "about": "Is there a red car?", "from_ms": 1785578400000, "to_ms": 1785582000000, "method": "compose", "max_tokens": 64,
          "timeout_ms": 30000}})");
  const AskQuestion expected{.camera = "gate-7",
                             .tenant = "north",
                             .question = "When did the red car arrive?",
                             .about = "Is there a red car?",
                             .from_ms = 1785578400000,
                             .to_ms = 1785582000000,
                             .method = AskMethod::compose,
                             .max_tokens = 64,
                             .timeout = 30s};
  ASSERT_TRUE(std::holds_alternative<AskRequest>(parsed));
  EXPECT_EQ(std::get<AskRequest>(parsed), AskRequest(expected));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"list": {}, "version": 1})")),
            AskRequest(MemoryList{std::nullopt}));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"verify": {"camera": "a"}})")),
            AskRequest(MemoryVerify{"a"}));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"erase": {"camera": "a", "to_ms": 7}})")),
            AskRequest(MemoryErase{.camera = "a", .to_ms = 7}));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"erase": {"camera": "a", "tenant": "b"}})")),
            AskRequest(MemoryErase{.camera = "a", .tenant = "b"}));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"list": {"tenant": "b"}})")),
            AskRequest(MemoryList{.tenant = "b"}));
  EXPECT_EQ(std::get<AskRequest>(parse_request(R"({"verify": {"tenant": "b", "camera": "a"}})")),
            AskRequest(MemoryVerify{"a", "b"}));
  EXPECT_EQ(std::get<AskCancel>(parse_request(R"({"cancel": "12"})")), AskCancel{"12"});
}

TEST(AskRequest, WhatIsWrittenIsReadAsItWas) {
  const AskQuestion least{.camera = "a", .question = "Wer?\n\t\"\\ \xc3\xa4", .from_ms = 0, .to_ms = 0};
  AskQuestion most = least;
  most.tenant = "north";
  most.about = "Wer\n?";
  most.max_tokens = 4096;
  most.timeout = 600s;
  for (const AskMethod method : kAskMethods) {
    most.method = method;
    EXPECT_EQ(std::get<AskRequest>(parse_request(to_text(AskRequest(most)))), AskRequest(most));
  }
  for (const AskRequest& request :
       {AskRequest(least), AskRequest(MemoryList{}), AskRequest(MemoryList{"b"}), AskRequest(MemoryVerify{}),
        AskRequest(MemoryList{"b", "c"}), AskRequest(MemoryVerify{.tenant = "c"}),
        AskRequest(MemoryList{.timeout = 5ms}), AskRequest(MemoryVerify{.timeout = 600s}),
        AskRequest(MemoryErase{"a"}), AskRequest(MemoryErase{"a", "b", 1, 2, 7s})}) {
    const std::string text = to_text(request);
    EXPECT_EQ(std::get<AskRequest>(parse_request(text)), request) << text;
    EXPECT_EQ(json::parse(text).at("version"), 1);
  }
  EXPECT_EQ(std::get<AskCancel>(parse_request(to_text(AskCancel{"tag"}))), AskCancel{"tag"});
}

TEST(AskRequest, ALongestQuestionFitsHoweverItIsWritten) {
  std::string text;
  while (text.size() < kAskQuestionBytes) text += "\xc3\xa4";
  const AskQuestion question{
      .camera = std::string(128, 'c'), .question = text, .about = text, .from_ms = 1, .to_ms = 2};
  EXPECT_EQ(refusal(to_text(AskRequest(question))), "accepted");
  // As Python writes it: six bytes for each of these characters.
  const std::string escaped = json::parse(to_text(AskRequest(question))).dump(-1, ' ', true);
  EXPECT_GT(escaped.size(), 6 * kAskQuestionBytes);
  EXPECT_EQ(refusal(escaped), "accepted");
}

TEST(AskRequest, WhatIsNoneIsRefusedWithTheReason) {
  for (const char* text : {"", "[]", "7", "null", "{", "\xff"}) {
    EXPECT_EQ(refusal(text),
              "expected a JSON object, such as {\"list\": {}}; expected one of ask, list, verify, erase and "
              "cancel");
  }
  EXPECT_THAT(refusal(std::string(10'000, '[')), HasSubstr("expected a JSON object"));
  EXPECT_EQ(refusal("{\"list\": {}}" + std::string(kAskRequestBytes, ' ')), "expected 32 KiB at most");
  for (const char* text : {"{}", R"({"version": 1})"})
    EXPECT_EQ(refusal(text), "expected one of ask, list, verify, erase and cancel");
  EXPECT_EQ(refusal(R"({"list": {}, "verify": {}})"),
            "verify: stands beside another request; expected one of ask, list, verify, erase and cancel");
  for (const char* version : {"2", "0", "\"1\"", "null", "[1]"})
    EXPECT_EQ(refusal(std::string(R"({"list": {}, "version": )") + version + "}"), "version: expected 1");
  EXPECT_EQ(refusal(R"({"ask\u001b[2J": {}})"),
            "ask?[2J: unknown key; legal keys: version, ask, list, verify, erase, cancel");
  EXPECT_EQ(refusal(R"({"erase": {"camera": "a", "from": 1}})"),
            "erase.from: unknown key; legal keys: camera, tenant, from_ms, to_ms, timeout_ms");
  EXPECT_LT(refusal("{\"" + std::string(8000, 'k') + "\": {}}").size(), 200U);
  EXPECT_EQ(refusal(R"({"erase": {}})"), "erase.camera: is missing");
  for (const char* kind : {"ask", "list", "verify", "erase"}) {
    EXPECT_EQ(refusal("{\"" + std::string(kind) + "\": []}"), std::string(kind) + ": expected an object");
    EXPECT_THAT(refusal("{\"" + std::string(kind) + "\": {\"camera\": \"a/b\"}}"),
                HasSubstr(std::string(kind) + ".camera: expected a name"));
    EXPECT_THAT(refusal("{\"" + std::string(kind) + "\": {\"tenant\": \"\"}}"),
                HasSubstr(std::string(kind) + ".tenant: expected a name"));
    EXPECT_THAT(refusal("{\"" + std::string(kind) + "\": {\"timeout_ms\": 0}}"),
                HasSubstr(std::string(kind) + ".timeout_ms: expected a whole number from 1 to 600000"));
  }
  for (const char* tag : {"7", "\"\"", "null"})
    EXPECT_EQ(refusal(std::string(R"({"cancel": )") + tag + "}"),
              "cancel: expected the tag of a request, 1 to 64 bytes of text");
  EXPECT_THAT(refusal("{\"cancel\": \"" + std::string(65, 't') + "\"}"), HasSubstr("cancel: expected"));
}

TEST(AskRequest, EachKeyOfAQuestionIsRefusedByItsName) {
  EXPECT_EQ(refusal(question_with("max_tokens", "1")), "accepted");
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"camera", {"\"\"", "7", "null", "\"a b\"", "\".a\"", "\"" + std::string(129, 'a') + "\""}},
      {"tenant", {"\"\"", "[]", "null"}},
      {"question",
       {"\"\"", "\" \\n\"", "7", "[\"When?\"]", "null", R"("a\u0000b")", R"("\u007f")", "\"<|im_end|>\"",
        "\"" + std::string(4097, 'a') + "\""}},
      {"about",
       {"\"\"", "\" \"", "null", R"("\u0001")", "\"<|im_end|>\"", "\"" + std::string(4097, 'a') + "\""}},
      {"from_ms", {"-1", "1.5", "1.0", "\"1\"", "9000000000001", "18446744073709551615", "1e300"}},
      {"to_ms", {"-1", "9223372036854775808", "9000000000001", "true"}},
      {"method", {"\"cluster\"", "\"\"", "0", "null"}},
      {"max_tokens", {"0", "-1", "4097", "1.0", "\"64\"", "4294967297"}},
      {"timeout_ms", {"0", "600001", "1.5", "null"}}};
  for (const auto& [key, values] : wrong) {
    for (const std::string& value : values)
      EXPECT_THAT(refusal(question_with(key, value)), HasSubstr("ask." + key + ": expected")) << value;
  }
  EXPECT_EQ(refusal(question_with("method", "7")),
            "ask.method: expected windows, compose, exhaustive, clusters or rekv");
  EXPECT_EQ(refusal(question_with("question", "\"" + std::string(4096, 'a') + "\"")), "accepted");
  EXPECT_EQ(refusal(question_with("from_ms", "21")), "ask.from_ms: is after ask.to_ms");
  EXPECT_EQ(refusal(question_with("from_ms", "20")), "accepted");
  EXPECT_EQ(refusal(R"({"erase": {"camera": "a", "from_ms": 2, "to_ms": 1}})"),
            "erase.from_ms: is after erase.to_ms");
  for (const char* key : {"camera", "question", "from_ms", "to_ms"}) {
    json request = json::parse(question_with("max_tokens", "1"));
    request["ask"].erase(key);
    EXPECT_EQ(refusal(request.dump()), std::string("ask.") + key + ": is missing");
  }
}

TEST(AskRequest, NamesItsCameraAndItsTenant) {
  EXPECT_EQ(tenant_of(AskQuestion{.camera = "a", .tenant = "b", .question = "?"}), "b");
  EXPECT_EQ(tenant_of(MemoryErase{"b"}), std::nullopt);
  EXPECT_EQ(tenant_of(MemoryList{.tenant = "c"}), "c");
  EXPECT_EQ(camera_of(AskQuestion{.camera = "a", .question = "?"}), "a");
  EXPECT_EQ(camera_of(MemoryErase{"b"}), "b");
  EXPECT_EQ(camera_of(MemoryVerify{"c"}), "c");
  EXPECT_EQ(camera_of(MemoryList{}), std::nullopt);
}

}  // namespace
}  // namespace vigil::cluster
