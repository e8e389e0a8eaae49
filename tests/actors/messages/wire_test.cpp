// What may leave a process comes back as it was, and takes no secret with it.
#include "actors/messages/wire.h"

#include <limits>
#include <set>

#include <caf/all.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/values/masked_text.h"
#include "tests/actors/events.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kUrl =
    "rtsp://marked-user:marked-password@marked-host:8554/marked-path?token=marked-token";

class Wire : public ::testing::Test {
 protected:
  Wire() {
    gate_->inputs = {{{kUrl, config::mask_credentials(kUrl)}, {config::Role::detect}},
                     {{std::string(kUrl) + "/main", "marked-shown"}, {config::Role::record}}};
    gate_->username = {"marked-name", "***"};
    gate_->password = {"marked-word", "***"};
    gate_->stream.tls.ca_file = "/etc/marked-ca.pem";
    gate_->stream.window = {40s, 8s, 10min};
    gate_->stream.pruning.refresh = config::Refresh::none;
    gate_->stream.fps = 2.5;
    config::RuleSettings& rule = gate_->rules[0];
    rule.title = "{rule} at {camera}";
    rule.threshold = 0.7;
    rule.confirm = {3, 5};
    rule.severity = config::Severity::detection;
    rule.max_per_hour = 17;
    rule.max_tokens = 99;
    rule.topics = {"staff", "night"};
    rule.snooze_until = kStart;
    rule.explain = true;
    gate_->rules.push_back(rule);
    gate_->rules[1].name = "car";
    gate_->rules[1].snooze_until.reset();
  }

  std::vector<char> written(const caf::message& message) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    auto whole = message;
    EXPECT_FALSE(sink(whole));
    bytes_.append(bytes.begin(), bytes.end());
    return bytes;
  }

  /// As another node gets it: a message with its type's name.
  template <class T>
  T through(const T& value) {
    const std::vector<char> bytes = written(caf::make_message(value));
    caf::message read;
    caf::binary_deserializer source(system_, bytes);
    // Not source(read), which keeps its errors to itself.
    if (const auto error = read.load(source)) ADD_FAILURE() << system_.render(error);
    if (read.match_elements<T>()) return read.get_as<T>(0);
    ADD_FAILURE() << "another message";
    return {};
  }

  /// Whether what is written of it cannot be read.
  template <class T>
  bool is_refused(const T& value) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    T whole = value;
    EXPECT_FALSE(sink(whole));
    caf::binary_deserializer source(system_, bytes);
    return static_cast<bool>(source(whole));
  }

  FramePatch patch() const {
    FramePatch patch;
    patch.watch = watch_->ref();
    media::SampledFrame frame;
    frame.image = image(7, {640, 352});
    patch.frames = {frame, frame};
    patch.seconds = 12.25;
    patch.duration = 0.8;
    patch.sequence = 77;
    patch.generation = 3;
    patch.captured = {clock_.now() - 1500ms, kStart};
    return patch;
  }

  WindowAnswers window() const {
    WindowAnswers window = *window_of(watch_, 12, {0.25F, 0.75F});
    window.answers[0].tokens = {1, -2, 3};
    window.answers[0].finish = stream::FinishReason::length;
    window.answers[0].prompt_tokens = 1234;
    window.answers[0].shared_tokens = 1200;
    window.captured = {clock_.now() - 2s, kStart + 5ms};
    window.encoded = {clock_.now() - 1s, clock_.now() - 900ms};
    window.id = stream::WindowId{"gate", 7, 42};
    return window;
  }

  std::shared_ptr<OwnCamera> gate_ = camera("gate");
  ManualClock clock_;
  TestConfig config_;
  caf::actor_system system_{config_};
  /// All that was written.
  std::string bytes_;
  WatchPtr watch_ = watched(*camera("gate"), 9);
};

TEST_F(Wire, AMomentIsAnAge) {
  const auto moment = clock_.now() - 1500ms;
  EXPECT_EQ(age_of(moment, clock_), Age{1'500'000});
  ManualClock other;
  other.advance(1000h);
  EXPECT_EQ(moment_of(Age{1'500'000}, other), other.now() - 1500ms) << "by the clock of whoever reads it";
  EXPECT_EQ(age_of(clock_.now() + 3s, clock_), Age{-3'000'000}) << "one that is to come";
  EXPECT_EQ(moment_of(Age{-3'000'000}, other), other.now() + 3s);
  for (const auto extreme :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    const auto far = moment_of(Age{extreme}, other) - other.now();
    EXPECT_GT(std::chrono::abs(far), 1000h);
    EXPECT_EQ(far<0s, extreme> 0) << "what nobody can have meant overflows nothing";
  }
}

TEST_F(Wire, ReportsComeBackAsTheyWere) {
  for (const CameraState state :
       {CameraState::connecting, CameraState::up, CameraState::stalled, CameraState::down}) {
    EXPECT_EQ(through(state), state);
    const CameraReport report{"gate", state, "refused", true};
    EXPECT_EQ(through(report), report);
    const StatusChange change{watch_->ref(), state, "refused"};
    EXPECT_EQ(through(change), change);
  }
  for (const PatchOutcome outcome : {PatchOutcome::encoded, PatchOutcome::dropped, PatchOutcome::lost}) {
    const PatchAck ack{"gate", 3, 77, outcome, "encode_failed", 0.25};
    EXPECT_EQ(through(ack), ack);
  }
  const RecorderReport recorder{"gate", true, "why"};
  EXPECT_EQ(through(recorder), recorder);
  const Explanation explanation{7, "Yes, a \xe4\xba\xba.", "no words"};
  EXPECT_EQ(through(explanation), explanation);
  const DrainReport drain{true, true, {"camera gate: refused", ""}};
  EXPECT_EQ(through(drain), drain);
}

TEST_F(Wire, SettingsComeBackAsTheyWere) {
  const WatchSettings settings = watch_of(*gate_, 12);
  EXPECT_EQ(through(settings), settings);
  EXPECT_EQ(through(settings).rules[0].snooze_until, kStart);
  EXPECT_EQ(through(settings).rules[1].snooze_until, std::nullopt);
  EXPECT_EQ(through(settings).rules[0].max_per_hour, 17);
  EXPECT_EQ(through(settings).rules[0].max_tokens, 99);
  for (const bool lossless : {false, true}) {
    WatchSettings other = settings;
    other.lossless = lossless;
    other.pruning = {.policy = config::Pruning::scene,
                     .motion_threshold = 1.5,
                     .residual_weight = 0.0625,
                     .refresh = config::Refresh::first_k,
                     .refresh_share = 0.25,
                     .kv_budget = config::mebibytes(300),
                     .audit = 7};
    EXPECT_EQ(through(other), other);
  }
}

TEST_F(Wire, WhatWasChosenOfAPatchGoesWithIt) {
  FramePatch sent = patch();
  sent.encoded = base::GridMask::none(12, 22);
  sent.encoded->add(0, 0);
  sent.encoded->add(11, 21);
  sent.kept = base::GridMask::all(12, 22);
  sent.standing_out = base::GridMask::none(12, 22);
  sent.standing_out->add(7, 3);
  sent.audit = 48.5;
  const PatchForm form = through(form_of(sent, clock_));
  const FramePatchPtr read = patch_of(form, sent.frames, clock_);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->encoded, sent.encoded);
  EXPECT_EQ(read->kept, sent.kept);
  EXPECT_EQ(read->standing_out, sent.standing_out);
  EXPECT_EQ(read->audit, sent.audit);
  const auto broken = [&](auto&& change) {
    PatchForm other = form;
    change(other);
    return patch_of(other, sent.frames, clock_) == nullptr;
  };
  EXPECT_TRUE(broken([](PatchForm& x) { x.encoded.cells.back() = 12 * 22; })) << "beyond the grid";
  EXPECT_TRUE(broken([](PatchForm& x) { x.encoded.cells.front() = -1; }));
  EXPECT_TRUE(broken([](PatchForm& x) { std::swap(x.encoded.cells.front(), x.encoded.cells.back()); }));
  EXPECT_TRUE(broken([](PatchForm& x) { x.encoded.cells.push_back(x.encoded.cells.back()); })) << "twice";
  EXPECT_TRUE(broken([](PatchForm& x) { x.standing_out.cells.back() = 12 * 22; }));
  EXPECT_TRUE(broken([](PatchForm& x) { x.kept.height = 0; }));
  EXPECT_TRUE(broken([](PatchForm& x) { x.kept.width = -22; }));
  EXPECT_TRUE(broken([](PatchForm& x) { x.kept.height = x.kept.width = 1 << 30; }))
      << "no such memory is taken";
}

TEST_F(Wire, APatchIsDescribedAndItsPixelsGoAnotherWay) {
  const FramePatch sent = patch();
  const PatchForm form = through(form_of(sent, clock_));
  EXPECT_EQ(form, form_of(sent, clock_));
  EXPECT_EQ(form.frames, 2U);
  EXPECT_EQ(form.width, 640);
  EXPECT_EQ(form.height, 352);
  ManualClock other;
  other.advance(77h);
  const FramePatchPtr read = patch_of(form, sent.frames, other);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->watch, sent.watch);
  EXPECT_EQ(read->seconds, sent.seconds);
  EXPECT_EQ(read->duration, sent.duration);
  EXPECT_EQ(read->sequence, 77U);
  EXPECT_EQ(read->generation, 3U);
  EXPECT_EQ(read->captured.steady, other.now() - 1500ms);
  EXPECT_EQ(read->captured.wall, kStart);
  EXPECT_EQ(read->frames.size(), 2U);
  EXPECT_EQ(read->encoded, std::nullopt) << "all";
  EXPECT_EQ(read->kept, std::nullopt);
  EXPECT_EQ(read->standing_out, std::nullopt) << "nobody said";
  EXPECT_EQ(read->audit, std::nullopt);
  EXPECT_LT(bytes_.size(), 400U) << "no pixel is in it";
  EXPECT_EQ(patch_of(form, {sent.frames[0]}, other), nullptr) << "another number";
  media::SampledFrame wider;
  wider.image = image(7, {704, 352});
  EXPECT_EQ(patch_of(form, {sent.frames[0], wider}, other), nullptr) << "another size";
  EXPECT_EQ(patch_of(form, {sent.frames[0], {}}, other), nullptr);
}

TEST_F(Wire, AnswersComeBackWithTheSettingsThatTheyReferTo) {
  gate_->rules.resize(2);
  watch_ = watched(*gate_, 9);
  const WindowAnswers sent = window();
  const WindowForm form = through(form_of(sent, clock_));
  ManualClock other;
  other.advance(77h);
  WatchBook book;
  EXPECT_EQ(answers_of(form, book, other), nullptr) << "nobody told its settings";
  book.put(watch_);
  const WindowAnswersPtr read = answers_of(form, book, other);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->watch, watch_);
  EXPECT_EQ(read->start, sent.start);
  EXPECT_EQ(read->end, sent.end);
  EXPECT_EQ(read->start_wall, sent.start_wall);
  EXPECT_EQ(read->end_wall, sent.end_wall);
  EXPECT_EQ(read->frames, sent.frames);
  EXPECT_EQ(read->captured.steady, other.now() - 2s);
  EXPECT_EQ(read->captured.wall, sent.captured.wall);
  EXPECT_EQ(read->encoded.begin, other.now() - 1s);
  EXPECT_EQ(read->encoded.end, other.now() - 900ms);
  EXPECT_EQ(read->id, (stream::WindowId{"gate", 7, 42}));
  ASSERT_EQ(read->answers.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->answers[i].text, sent.answers[i].text);
    EXPECT_EQ(read->answers[i].probability_yes, sent.answers[i].probability_yes);
    EXPECT_EQ(read->answers[i].tokens, sent.answers[i].tokens);
    EXPECT_EQ(read->answers[i].finish, sent.answers[i].finish);
    EXPECT_EQ(read->answers[i].prompt_tokens, sent.answers[i].prompt_tokens);
    EXPECT_EQ(read->answers[i].shared_tokens, sent.answers[i].shared_tokens);
  }
  WindowForm fewer = form;
  fewer.answers.pop_back();
  EXPECT_EQ(answers_of(fewer, book, other), nullptr) << "each rule has its answer";
  WindowAnswers plain = sent;
  plain.id.reset();
  EXPECT_EQ(answers_of(through(form_of(plain, clock_)), book, other)->id, std::nullopt);
  const Explain explain{*sent.id, 1, 7};
  EXPECT_EQ(through(explain), explain);
  const Done done{*sent.id};
  EXPECT_EQ(through(done), done);
  const Returned returned{*sent.id, 2};
  EXPECT_EQ(through(returned), returned);
}

TEST_F(Wire, EvidenceIsAskedForAndReported) {
  const EvidenceRequest request{"gate", "north", "person", "E1", {1.5, 9.5, 7.25}, kStart};
  const EvidenceRequest read = through(request);
  EXPECT_EQ(read.camera, "gate");
  EXPECT_EQ(read.tenant, "north");
  EXPECT_EQ(read.rule, "person");
  EXPECT_EQ(read.episode, "E1");
  EXPECT_EQ(read.span.from, 1.5);
  EXPECT_EQ(read.span.to, 9.5);
  EXPECT_EQ(read.span.moment, 7.25);
  EXPECT_EQ(read.moment, kStart);
  EvidenceReport report{"E1", {}};
  EXPECT_EQ(through(report), report);
  report.evidence = {EvidenceState::ready, "gate/x.jpg", "gate/x.mp4", "why", kStart,
                     kStart - 5s,          kStart + 7s,  12345,        "h264"};
  EXPECT_EQ(through(report), report);
}

TEST_F(Wire, HandlesOfActorsArriveAsThemselves) {
  const vision_actor vision = system_.spawn([](vision_actor::pointer self) -> vision_actor::behavior_type {
    return {
        [](join_atom, const WatchPtr&, std::uint32_t) {},
        [](const WatchPtr&) {},
        [](const FramePatchPtr&) {},
        [self](end_atom, const std::string&) { self->quit(); },
    };
  });
  const Route route = through(Route{"gate", "cuda:0", vision});
  EXPECT_EQ(route.camera, "gate");
  EXPECT_EQ(route.device, "cuda:0");
  EXPECT_EQ(route.vision, vision);
  EXPECT_FALSE(through(Route{"gate", "", {}}).vision) << "nowhere";
  const Route both = through(Route{"gate", "cuda:1", {}, "cuda:0", vision});
  EXPECT_EQ(both.former, "cuda:0");
  EXPECT_EQ(both.former_vision, vision);
  for (const DeviceState state : {DeviceState::up, DeviceState::restarting, DeviceState::lost}) {
    const DeviceReport report = through(DeviceReport{"cuda:0", state, "broken", vision});
    EXPECT_EQ(report.device, "cuda:0");
    EXPECT_EQ(report.state, state);
    EXPECT_EQ(report.reason, "broken");
    EXPECT_EQ(report.vision, vision);
  }
  caf::anon_send(vision, end_atom_v, std::string("gate"));
  while (dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).try_run_once()) {
  }
}

TEST_F(Wire, WhatNamesNoStateIsRefused) {
  EXPECT_FALSE(is_refused(CameraReport{"gate", CameraState::down, "", false}));
  EXPECT_TRUE(is_refused(CameraReport{"gate", static_cast<CameraState>(4), "", false}));
  EXPECT_TRUE(is_refused(PatchAck{"gate", 1, 1, static_cast<PatchOutcome>(4), ""}));
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_TRUE(is_refused(PatchAck{"gate", 1, 1, PatchOutcome::encoded, "", share})) << share;
  EXPECT_TRUE(is_refused(StatusChange{{"gate", 1}, static_cast<CameraState>(200), ""}));
  EXPECT_TRUE(is_refused(DeviceReport{"cuda:0", static_cast<DeviceState>(3), "", {}}));
  EvidenceReport report;
  report.evidence.state = static_cast<EvidenceState>(4);
  EXPECT_TRUE(is_refused(report));
  WatchSettings settings = watch_of(*gate_);
  EXPECT_FALSE(is_refused(settings));
  settings.rules[0].severity = static_cast<config::Severity>(2);
  EXPECT_TRUE(is_refused(settings));
  WindowForm window;
  window.answers.resize(1);
  EXPECT_FALSE(is_refused(window));
  window.answers[0].finish = static_cast<stream::FinishReason>(3);
  EXPECT_TRUE(is_refused(window));
}

TEST_F(Wire, NumbersThatMakeNoSenseAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto settings = [&](auto change) {
    WatchSettings value = watch_of(*gate_);
    change(value);
    return is_refused(value);
  };
  EXPECT_FALSE(settings([](auto&) {}));
  EXPECT_TRUE(settings([](auto& value) { value.fps = 0; }));
  EXPECT_TRUE(settings([&](auto& value) { value.fps = nan; }));
  EXPECT_TRUE(settings([](auto& value) { value.window.stride = 0s; }));
  EXPECT_TRUE(settings([](auto& value) { value.window.length = 1s; })) << "shorter than a stride";
  EXPECT_TRUE(settings([](auto& value) { value.window.memory = -1s; }));
  EXPECT_TRUE(settings([](auto& value) { value.pruning.refresh = config::Refresh::all; }))
      << "no keys are kept that it could remember";
  EXPECT_FALSE(settings([](auto& value) {
    value.pruning.refresh = config::Refresh::all;
    value.window.memory = 0s;
  }));
  EXPECT_TRUE(settings([&](auto& value) { value.rules[0].threshold = static_cast<float>(nan); }));
  EXPECT_TRUE(settings([](auto& value) { value.rules[0].confirm.needed = 0; }));
  EXPECT_TRUE(settings([](auto& value) { value.rules[0].confirm = {3, 2}; }));
  EXPECT_TRUE(settings([](auto& value) { value.rules[0].max_tokens = -1; }));
  PatchForm described = form_of(patch(), clock_);
  EXPECT_FALSE(is_refused(described));
  described.duration = 0;
  EXPECT_TRUE(is_refused(described));
  WindowForm answers = form_of(window(), clock_);
  EXPECT_FALSE(is_refused(answers));
  answers.frames = -1;
  EXPECT_TRUE(is_refused(answers));
  answers = form_of(window(), clock_);
  answers.answers[0].probability_yes = 1.5F;
  EXPECT_TRUE(is_refused(answers));
}

TEST_F(Wire, ACutMessageIsRefused) {
  const std::vector<char> bytes = written(caf::make_message(watch_of(*gate_, 12)));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    caf::message read;
    caf::binary_deserializer source(system_, part);
    EXPECT_TRUE(read.load(source)) << length;
  }
}

TEST_F(Wire, NoAddressAndNoPasswordIsInAnyMessage) {
  watch_ = watched(*gate_, 9);
  Fleet fleet({gate_}, 1);
  const auto change = fleet.report("gate", CameraState::down, "refused");
  const WatchPtr told = change->watch;
  through(*told);
  through(*watch_);
  through(StatusChange{told->ref(), change->state, change->reason});
  through(CameraReport{gate_->name, CameraState::down, "refused", false});
  through(RecorderReport{gate_->name, false, "refused"});
  through(form_of(patch(), clock_));
  through(form_of(window(), clock_));
  through(ack_of(patch(), PatchOutcome::dropped, "encode_failed"));
  through(Explain{{"gate", 1, 2}, 0, 1});
  through(Done{{"gate", 1, 2}});
  through(Returned{{"gate", 1, 2}, 0});
  through(Explanation{1, "Yes.", ""});
  through(EvidenceRequest{gate_->name, "north", "person", "E", {}, kStart});
  through(EvidenceReport{"E", {}});
  through(DeviceReport{"cpu", DeviceState::up, "", {}});
  through(Route{gate_->name, "cpu", {}});
  through(DrainReport{false, true, {"camera gate: refused"}});
  EXPECT_THAT(bytes_, HasSubstr("gate"));
  EXPECT_THAT(bytes_, HasSubstr("Is there a person in the room?")) << "text is found as it is";
  EXPECT_THAT(bytes_, Not(HasSubstr("marked")));
  EXPECT_THAT(bytes_, Not(HasSubstr("rtsp")));
}

}  // namespace
}  // namespace vigil::actors
