// From patches to windows to answers: the queue before the vision tower, the assembler, the desk, and the two
// batched passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cache/room_book.h"
#include "actors/prefill/ask.h"
#include "actors/prefill/window_assembler.h"
#include "actors/prefill/window_desk.h"
#include "actors/prefill/window_fit.h"
#include "actors/target/explain.h"
#include "actors/vision/encode.h"
#include "actors/vision/patch_queue.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

FramePatchPtr frame_patch(const WatchPtr& owner, double seconds, std::uint8_t value = 1,
                          std::uint32_t generation = 0) {
  auto patch = std::make_shared<FramePatch>();
  patch->watch = owner->ref();
  patch->seconds = seconds;
  patch->duration = 1;
  patch->generation = generation;
  media::SampledFrame frame;
  frame.image = image(value);
  patch->frames = {frame, frame};
  return patch;
}

VisualPatchPtr visual_patch(const WatchPtr& owner, double seconds, float value = 1, double duration = 1) {
  auto tokens = std::make_shared<model::VisualTokens>();
  tokens->embeddings = one_number(value);
  tokens->grid_height = tokens->grid_width = 1;
  tokens->seconds = seconds;
  tokens->duration = duration;
  auto patch = std::make_shared<VisualPatch>();
  patch->watch = owner->ref();
  patch->tokens = tokens;
  patch->frames = 2;
  patch->captured = {base::Clock::TimePoint(std::chrono::seconds(100)),
                     base::Clock::WallTime(std::chrono::seconds(1785578400))};
  return patch;
}

std::vector<std::string> names(const std::vector<FramePatchPtr>& patches) {
  std::vector<std::string> result;
  for (const auto& patch : patches)
    result.push_back(patch->watch.camera + '@' + std::to_string(static_cast<int>(patch->seconds)));
  return result;
}

TEST(WindowAssembler, ANewLengthCountsFromTheNextWindowOn) {
  const auto with_length = [](std::chrono::seconds length) {
    config::CameraSettings settings = *camera("a");
    settings.stream.window = {length, std::chrono::seconds(2)};
    return watched(settings);
  };
  WindowAssembler assembler(with_length(std::chrono::seconds(4)));
  std::vector<std::pair<double, double>> windows;
  const auto push = [&](std::chrono::seconds length, int second) {
    for (const DueWindow& due :
         assembler.push(visual_patch(with_length(length), second), with_length(length)).due)
      windows.emplace_back(due.end, static_cast<double>(due.patches.size()));
  };
  for (int second = 0; second < 8; ++second) push(std::chrono::seconds(4), second);
  for (int second = 8; second < 16; ++second) push(std::chrono::seconds(8), second);
  for (int second = 16; second < 20; ++second) push(std::chrono::seconds(2), second);
  using Window = std::pair<double, double>;
  // It grows from what is still there.
  EXPECT_THAT(windows,
              ElementsAre(Window(2, 2), Window(4, 4), Window(6, 4), Window(8, 4), Window(10, 4),
                          Window(12, 6), Window(14, 8), Window(16, 8), Window(18, 2), Window(20, 2)));
}

TEST(PatchQueue, ServesCamerasInTurnWithinTheCreditOfTheNextStage) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  const WatchPtr b = watch("b");
  const WatchPtr c = watch("c");
  for (const WatchPtr& each : {a, b, c}) {
    EXPECT_EQ(queue.join(*each).credits, 4U) << "two strides of two patches";
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(frame_patch(each, i)));
  }
  queue.grant("a", 10);
  queue.grant("b", 1);
  queue.grant("nobody", 1);
  EXPECT_THAT(names(queue.pop(2).patches), ElementsAre("a@0", "b@0"));
  EXPECT_THAT(names(queue.pop(8).patches), ElementsAre("a@1", "a@2")) << "b has no credit left, c never had";
  queue.grant("b", 5);
  queue.grant("c", 5);
  EXPECT_THAT(names(queue.pop(8).patches), ElementsAre("b@1", "c@0", "b@2", "c@1", "c@2"))
      << "the turn goes on behind a";
  EXPECT_EQ(queue.size(), 0U);
}

TEST(PatchQueue, IsBoundedForEachCamera) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  EXPECT_FALSE(queue.push(frame_patch(a, 0))) << "it has not joined";
  queue.join(*a);
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += queue.push(frame_patch(a, i)) ? 1 : 0;
  EXPECT_EQ(taken, 8);
  EXPECT_EQ(queue.size(), 8U);
}

TEST(PatchQueue, AnEndFollowsTheLastPatch) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  queue.join(*a);
  queue.push(frame_patch(a, 0));
  queue.end("a");
  EXPECT_TRUE(queue.pop(8).empty()) << "no credit: neither the patch nor the end";
  queue.grant("a", 1);
  const auto batch = queue.pop(8);
  EXPECT_EQ(batch.patches.size(), 1U);
  EXPECT_THAT(batch.ended, ElementsAre("a"));
  EXPECT_FALSE(queue.push(frame_patch(a, 1))) << "after its end a camera has to join again";
  EXPECT_TRUE(queue.join(*a).is_new);
}

TEST(PatchQueue, TheNextIncarnationOfACameraIsNoNews) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  EXPECT_TRUE(queue.join(*a).is_new);
  queue.push(frame_patch(a, 0, 1, /*generation=*/0));
  EXPECT_FALSE(queue.join(*a).is_new);
  queue.push(frame_patch(a, 5, 1, /*generation=*/1));
  queue.grant("a", 8);
  EXPECT_THAT(names(queue.pop(8).patches), ElementsAre("a@0", "a@5"));
}

TEST(Encode, OnePassForAll) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  ManualClock clock;
  encoder.on_encode = [&] { clock.advance(30ms); };
  const auto begin = clock.now();
  const Encoded encoded = encode(encoder, clock, {frame_patch(a, 0, 10), frame_patch(watch("b"), 3, 20)});
  ASSERT_EQ(encoded.patches.size(), 2U);
  for (const VisualPatchPtr& patch : encoded.patches) {
    EXPECT_EQ(patch->encoded.begin, begin);
    EXPECT_EQ(patch->encoded.end - begin, 30ms);
  }
  ASSERT_EQ(encoded.patches.size(), 2U);
  EXPECT_THAT(encoder.batches, ElementsAre(2U));
  EXPECT_EQ(encoded.patches[1]->watch.camera, "b");
  EXPECT_EQ(encoded.patches[1]->tokens->embeddings.as<float>()[0], 20);
  EXPECT_EQ(encoded.patches[1]->tokens->seconds, 3);
  EXPECT_EQ(encoded.patches[1]->frames, 2);
}

TEST(Encode, APatchThatFailsTakesNoOtherWithIt) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  const Encoded encoded =
      encode(encoder, ManualClock(), {frame_patch(a, 0, 10), frame_patch(a, 1, 255), frame_patch(a, 2, 30)});
  ASSERT_EQ(encoded.patches.size(), 2U);
  EXPECT_EQ(encoded.patches[1]->tokens->embeddings.as<float>()[0], 30);
  ASSERT_EQ(encoded.failures.size(), 1U);
  EXPECT_EQ(encoded.failures[0].patch->seconds, 1);
  EXPECT_EQ(encoded.failures[0].reason, "a frame of 4 by 2 pixels");
  EXPECT_EQ(encoded.too_many, "");
}

TEST(Encode, EveryPatchIsAcknowledgedWithWhatBecameOfIt) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  auto bad = std::make_shared<FramePatch>(*frame_patch(a, 1, 255, /*generation=*/3));
  bad->sequence = 7;
  const std::vector<FramePatchPtr> patches = {frame_patch(a, 0, 10), bad, frame_patch(watch("b"), 2, 30)};
  EXPECT_THAT(acks_of(patches, encode(encoder, ManualClock(), patches)),
              ElementsAre(PatchAck{"a", 0, 0, PatchOutcome::encoded},
                          PatchAck{"a", 3, 7, PatchOutcome::dropped, "encode_failed"},
                          PatchAck{"b", 0, 0, PatchOutcome::encoded}));
  encoder.on_encode = [] { throw std::bad_alloc(); };
  EXPECT_THAT(acks_of({bad}, encode(encoder, ManualClock(), {bad})),
              ElementsAre(PatchAck{"a", 3, 7, PatchOutcome::dropped, "out_of_memory"}));
}

TEST(Encode, MemoryThatIsGoneOnceThePatchesAreTriedAloneIsTold) {
  FakeEncoder encoder;
  encoder.on_encode = [&] {
    if (encoder.batches.size() == 3) throw std::bad_alloc();
  };
  const WatchPtr a = watch("a");
  const Encoded encoded = encode(encoder, ManualClock(), {frame_patch(a, 0, 255), frame_patch(a, 1, 20)});
  EXPECT_THAT(encoder.batches, ElementsAre(2U, 1U, 1U));
  ASSERT_EQ(encoded.failures.size(), 2U);
  EXPECT_FALSE(encoded.failures[0].out_of_memory);
  EXPECT_TRUE(encoded.failures[1].out_of_memory);
  EXPECT_EQ(encoded.too_many, std::bad_alloc().what());
}

/// Every due window as "start-end:number of patches".
std::vector<std::string> shown(const std::vector<DueWindow>& windows) {
  std::vector<std::string> result;
  for (const DueWindow& window : windows) {
    std::ostringstream text;
    text << window.start << '-' << window.end << ':' << window.patches.size();
    result.push_back(text.str());
  }
  return result;
}

std::vector<std::string> all_windows(WindowAssembler& assembler, const WatchPtr& owner,
                                     const std::vector<double>& times, double duration = 1) {
  std::vector<std::string> result;
  for (const double time : times) {
    for (auto& text : shown(assembler.push(visual_patch(owner, time, 1, duration), owner).due))
      result.push_back(std::move(text));
  }
  return result;
}

TEST(WindowAssembler, AWindowEndsAtEveryStride) {
  const WatchPtr a = watch("a");  // 4 s every 2 s
  WindowAssembler assembler(a);
  EXPECT_THAT(all_windows(assembler, a, {0, 1, 2, 3, 4, 5, 6, 7, 8}),
              ElementsAre("0-2:2", "0-4:4", "2-6:4", "4-8:4"));
  ASSERT_TRUE(assembler.flush().has_value());
  EXPECT_EQ(assembler.flush(), std::nullopt) << "nothing new came since";
}

TEST(WindowAssembler, KeepsNoMoreThanTheNextWindowShows) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  for (int i = 0; i < 1000; ++i) {
    assembler.push(visual_patch(a, i), a);
    EXPECT_LE(assembler.size(), 4U);
  }
}

TEST(WindowAssembler, DuplicatesAndLatePatchesAreIgnored) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  assembler.push(visual_patch(a, 0), a);
  assembler.push(visual_patch(a, 1), a);
  for (const double time : {1.0, 0.0, 0.5}) {
    const auto result = assembler.push(visual_patch(a, time), a);
    EXPECT_EQ(result.verdict, WindowAssembler::Verdict::late);
    EXPECT_THAT(result.due, IsEmpty());
  }
  EXPECT_THAT(all_windows(assembler, a, {2, 3}), ElementsAre("0-4:4"));
}

TEST(WindowAssembler, AGapClosesWhatWasBegunAndSkipsEmptyStrides) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  EXPECT_THAT(all_windows(assembler, a, {0, 1, 2}), ElementsAre("0-2:2"));
  EXPECT_THAT(all_windows(assembler, a, {21}), ElementsAre("0-4:3", "18-22:1"));
  EXPECT_THAT(all_windows(assembler, a, {22, 23}), ElementsAre("20-24:3"));
}

TEST(WindowAssembler, AWindowShowsPicturesOfOneSize) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  all_windows(assembler, a, {0, 1, 2});
  auto wider = std::make_shared<VisualPatch>(*visual_patch(a, 3));
  auto tokens = std::make_shared<model::VisualTokens>();
  tokens->grid_height = 1;
  tokens->grid_width = 2;
  tokens->seconds = wider->tokens->seconds;
  tokens->duration = wider->tokens->duration;
  wider->tokens = tokens;
  EXPECT_THAT(shown(assembler.push(wider, a).due), ElementsAre("0-4:1"));
}

TEST(WindowAssembler, PatchesThatStraddleTheStride) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  EXPECT_THAT(all_windows(assembler, a, {0.5, 1.5, 2.5, 3.5}), ElementsAre("0-2:2", "0-4:4"));
}

TEST(WindowAssembler, FramesThatWereShownAMomentBeforeTheirTimeEndTheirStride) {
  const WatchPtr a = watch("a");
  WindowAssembler assembler(a);
  EXPECT_THAT(all_windows(assembler, a, {0, 0.96}), ElementsAre("0-2:2"))
      << "it does not wait for the next patch";
  EXPECT_THAT(all_windows(assembler, a, {1.92, 2.96}), ElementsAre("0-4:4"));
  EXPECT_THAT(all_windows(assembler, a, {3.92, 4.96}), ElementsAre("2-6:4"))
      << "the patch at 1.92 s is the one of 2 s";
}

TEST(WindowAssembler, APatchLongerThanAStrideEndsOneWindow) {
  auto settings = camera("a");
  settings->stream.window = {8s, 1s};
  const WatchPtr a = watched(*settings);
  WindowAssembler assembler(a);
  EXPECT_THAT(all_windows(assembler, a, {0, 3}, /*duration=*/3), ElementsAre("0-3:1", "0-6:2"));
}

TEST(WindowAssembler, RatesThatAreNoBinaryFractionLoseNothing) {
  auto settings = camera("a");
  settings->stream.fps = 2.5;  // patches of 0.8 s, strides of 2 s
  const WatchPtr a = watched(*settings);
  WindowAssembler assembler(a);
  std::size_t windows = 0;
  double time = 0;
  for (int i = 0; i < 2500; ++i, time += 0.8)
    windows += assembler.push(visual_patch(a, time, 1, 0.8), a).due.size();
  EXPECT_EQ(windows, 1000U);
}

TEST(WindowDesk, ANewerWindowOvertakesTheOneThatWaits) {
  WindowDesk desk(2);
  const WatchPtr live = watched(*camera("live", config::Pace::realtime));
  EXPECT_EQ(desk.join(live), 6U) << "a window of 4 patches and a stride of 2";
  std::size_t overtaken = 0;
  for (int i = 0; i < 8; ++i) {
    const auto taken = desk.push(visual_patch(live, i));
    EXPECT_EQ(taken.credits, 1U);
    overtaken += taken.overtaken;
  }
  EXPECT_EQ(overtaken, 3U);
  EXPECT_EQ(desk.size(), 1U);
  EXPECT_THAT(shown(desk.pop(8).windows), ElementsAre("4-8:4"));
}

TEST(WindowDesk, EachCameraHasWindowsOfItsOwn) {
  WindowDesk desk(2);
  auto quick_settings = camera("quick");
  quick_settings->stream.window = {3s, 1s};
  auto slow_settings = camera("slow");
  slow_settings->stream.window = {8s, 4s};
  slow_settings->stream.fps = 1;  // patches of 2 s
  const WatchPtr quick = watched(*quick_settings);
  const WatchPtr slow = watched(*slow_settings);
  desk.join(quick);
  desk.join(slow);
  for (int i = 0; i < 8; ++i) {
    desk.push(visual_patch(quick, i));
    if (i % 2 == 0) desk.push(visual_patch(slow, i, 1, /*duration=*/2));
  }
  std::map<std::string, std::vector<std::string>> windows;
  for (auto batch = desk.pop(8); !batch.windows.empty(); batch = desk.pop(8)) {
    for (const DueWindow& window : batch.windows) {
      windows[window.watch->name].push_back(shown({window}).front());
    }
  }
  EXPECT_THAT(windows["quick"],
              ElementsAre("0-1:1", "0-2:2", "0-3:3", "1-4:3", "2-5:3", "3-6:3", "4-7:3", "5-8:3"));
  EXPECT_THAT(windows["slow"], ElementsAre("0-4:2", "0-8:4"));
}

TEST(WindowAssembler, AWindowHasTheSettingsOfItsNewestPatch) {
  const WatchPtr before = watch("a");
  const WatchPtr after = watch("a", 2);
  WindowAssembler assembler(before);
  EXPECT_EQ(assembler.push(visual_patch(before, 0), before).due.size(), 0U);
  const auto result = assembler.push(visual_patch(after, 1), after);
  ASSERT_EQ(result.due.size(), 1U);
  EXPECT_EQ(result.due[0].watch, after);
  EXPECT_EQ(result.due[0].patches.front()->watch, before->ref());
}

TEST(WindowDesk, APatchWhoseSettingsNobodyToldIsRefused) {
  WindowDesk desk(2);
  const WatchPtr before = watch("a", 1);
  const WatchPtr after = watch("a", 2);
  desk.join(before);
  EXPECT_FALSE(desk.push(visual_patch(before, 0)).refused);
  const WindowDesk::Taken unknown = desk.push(visual_patch(after, 1));
  EXPECT_TRUE(unknown.refused);
  EXPECT_EQ(unknown.credits, 1U) << "it takes no place";
  EXPECT_TRUE(desk.know(after));
  EXPECT_EQ(desk.watch(*visual_patch(after, 1)), after);
  EXPECT_FALSE(desk.push(visual_patch(before, 1)).refused) << "what comes after the settings of the next";
  EXPECT_FALSE(desk.push(visual_patch(after, 2)).refused);
  EXPECT_TRUE(desk.push(visual_patch(before, 3)).refused) << "they come in order";
  desk.end("a");
  while (desk.pop(8).ended.empty()) {
  }
  EXPECT_EQ(desk.watch(*visual_patch(after, 1)), nullptr) << "the camera has ended";
}

TEST(WindowDesk, ACameraThatLosesNothingIsHeldBack) {
  WindowDesk desk(2);
  const WatchPtr file = watched(*camera("file", config::Pace::fast));
  desk.join(file);
  EXPECT_EQ(desk.push(visual_patch(file, 0)).credits, 1U);
  EXPECT_EQ(desk.push(visual_patch(file, 1)).credits, 0U) << "it ends a window";
  EXPECT_EQ(desk.push(visual_patch(file, 2)).credits, 1U);
  EXPECT_EQ(desk.push(visual_patch(file, 3)).credits, 0U);
  EXPECT_EQ(desk.size(), 2U);
  const auto first = desk.pop(8);
  EXPECT_THAT(shown(first.windows), ElementsAre("0-2:2")) << "one of each camera at a time, the oldest first";
  EXPECT_EQ(first.windows[0].held_credits, 1U);
  EXPECT_THAT(shown(desk.pop(8).windows), ElementsAre("0-4:4"));
}

TEST(WindowDesk, TheCameraThatWaitedLongestIsServedFirst) {
  WindowDesk desk(2);
  std::vector<WatchPtr> cameras;
  std::map<std::string, int> served;
  for (int i = 0; i < 5; ++i)
    desk.join(cameras.emplace_back(watched(*camera("c" + std::to_string(i), config::Pace::realtime))));
  // Five cameras, of which two can be answered in a stride; the first sends before the others each time.
  for (int second = 0; second < 100; ++second) {
    for (const WatchPtr& each : cameras) desk.push(visual_patch(each, second));
    if (second % 2 == 1) {
      for (const DueWindow& window : desk.pop(2).windows) ++served[window.watch->name];
    }
  }
  for (const auto& [name, count] : served) EXPECT_EQ(count, 20) << name;
  EXPECT_EQ(served.size(), 5U);
}

TEST(WindowDesk, EndsAfterTheLastWindow) {
  WindowDesk desk(2);
  const WatchPtr a = watched(*camera("a", config::Pace::realtime));
  desk.join(a);
  for (int i = 0; i < 3; ++i) desk.push(visual_patch(a, i));
  desk.end("a");
  auto batch = desk.pop(8);
  EXPECT_THAT(shown(batch.windows), ElementsAre("0-2:2"));
  EXPECT_THAT(batch.ended, IsEmpty());
  batch = desk.pop(8);
  EXPECT_THAT(shown(batch.windows), ElementsAre("0-3:3")) << "what is left becomes a last window";
  EXPECT_THAT(batch.ended, ElementsAre("a"));
  EXPECT_TRUE(desk.push(visual_patch(a, 9)).refused);
}

TEST(WindowDesk, AWindowThatHasNoRoomInABatchIsTheFirstOfTheNext) {
  WindowDesk desk(2);
  std::vector<WatchPtr> cameras;
  for (const char* name : {"a", "b", "c"}) {
    cameras.push_back(watch(name));
    desk.join(cameras.back());
  }
  for (const WatchPtr& each : cameras)
    for (const double time : {0.0, 1.0}) desk.push(visual_patch(each, time));
  std::vector<std::string> offered;
  int room = 2;
  auto batch = desk.pop(8, [&](const DueWindow& window) {
    offered.push_back(window.watch->name);
    return room-- > 0;
  });
  EXPECT_THAT(offered, ElementsAre("a", "b", "c"));
  ASSERT_EQ(batch.windows.size(), 2U);
  for (const double time : {2.0, 3.0}) desk.push(visual_patch(cameras[0], time));
  batch = desk.pop(8);
  ASSERT_EQ(batch.windows.size(), 2U);
  EXPECT_EQ(batch.windows[0].watch->name, "c");
  EXPECT_EQ(batch.windows[1].watch->name, "a");
}

/// A camera with a second rule, which explains.
WatchPtr explaining_camera(const std::string& name) {
  auto settings = camera(name);
  settings->rules.push_back(settings->rules[0]);
  settings->rules[1].name = "explained";
  settings->rules[1].explain = true;
  settings->rules[1].max_tokens = 5;
  return watched(*settings);
}

TEST(Ask, AsksEveryRuleAboutEveryWindowInOneBatch) {
  FakePrefiller prefiller;
  const WatchPtr settings = explaining_camera("a");
  std::vector<std::int64_t> released;
  const auto release = [&](std::int64_t tokens) { released.push_back(tokens); };
  {
    const AskedWindows asked =
        ask(prefiller,
            {{settings, {visual_patch(settings, 8, 30), visual_patch(settings, 9, 70)}, 6, 10, 0},
             {watch("b"), {visual_patch(settings, 0, 20)}, 0, 2, 0}},
            release);
    EXPECT_THAT(prefiller.batches, ElementsAre(2U));
    ASSERT_EQ(asked.windows.size(), 2U);
    const WindowAnswers& first = *asked.windows[0];
    ASSERT_EQ(first.answers.size(), 2U);
    EXPECT_FLOAT_EQ(first.answers[0].probability_yes, 0.7F);
    EXPECT_EQ(first.frames, 4);
    EXPECT_EQ(first.end_wall - first.start_wall, 4s);
    EXPECT_EQ(asked.windows[1]->watch->name, "b");
    EXPECT_NE(first.lease, nullptr);
    EXPECT_EQ(asked.windows[1]->lease, nullptr) << "nothing of it will be explained";
    EXPECT_THAT(released, ElementsAre(100));
  }
  EXPECT_THAT(released, ElementsAre(100, 100)) << "nobody holds the first window any more";
}

TEST(Ask, AWindowThatFailsTakesNoOtherWithIt) {
  FakePrefiller prefiller;
  const WatchPtr a = watch("a");
  std::int64_t released = 0;
  const AskedWindows asked = ask(prefiller,
                                 {{a, {visual_patch(a, 0, 10)}, 0, 2, 0},
                                  {watch("bad"), {visual_patch(a, 0, 254)}, 0, 2, 0},
                                  {a, {visual_patch(a, 0, 30)}, 2, 4, 0}},
                                 [&](std::int64_t tokens) { released += tokens; });
  ASSERT_EQ(asked.windows.size(), 2U);
  ASSERT_EQ(asked.failures.size(), 1U);
  EXPECT_EQ(asked.failures[0].watch->name, "bad");
  EXPECT_EQ(asked.failures[0].reason, "a window without room");
  EXPECT_EQ(asked.too_many, "");
  EXPECT_EQ(released, 300);
}

TEST(Ask, MemoryThatIsGoneOnceTheWindowsAreAskedAloneIsTold) {
  FakePrefiller prefiller;
  prefiller.on_ask = [&](std::size_t) {
    if (prefiller.batches.size() == 3) throw std::bad_alloc();
  };
  const WatchPtr a = watch("a");
  std::int64_t released = 0;
  const AskedWindows asked =
      ask(prefiller, {{a, {visual_patch(a, 0, 254)}, 0, 2, 0}, {a, {visual_patch(a, 0, 30)}, 2, 4, 0}},
          [&](std::int64_t tokens) { released += tokens; });
  EXPECT_THAT(prefiller.batches, ElementsAre(2U, 1U, 1U));
  ASSERT_EQ(asked.failures.size(), 2U);
  EXPECT_FALSE(asked.failures[0].out_of_memory);
  EXPECT_TRUE(asked.failures[1].out_of_memory);
  EXPECT_EQ(asked.too_many, std::bad_alloc().what());
  EXPECT_EQ(released, 200);
}

/// A window of each value.
std::vector<DueWindow> due_windows(const WatchPtr& camera, const std::vector<int>& values) {
  std::vector<DueWindow> due;
  for (const int value : values)
    due.push_back({camera, {visual_patch(camera, 0, static_cast<float>(value))}, 0, 2, 0});
  return due;
}

TEST(WindowFit, TellsOnceWhatALongWindowNeeds) {
  FakePrefiller prefiller;
  prefiller.per_patch = 50;
  prefiller.capacity = 299;
  WindowFit fit(prefiller, 2);
  const WatchPtr gate = watch("gate");  // 4 s at 2 frames a second: 4 patches
  EXPECT_EQ(fit.check(visual_patch(gate, 0), gate),
            "a window of 4s needs 300 tokens of KV cache, there is room for 299: it will not be answered; "
            "raise engine.kv_tokens, or shorten the window");
  EXPECT_EQ(fit.check(visual_patch(gate, 1), gate), std::nullopt) << "told once";
  EXPECT_NE(fit.check(visual_patch(watch("yard"), 0), watch("yard")), std::nullopt) << "each camera";
  fit.forget("gate");
  EXPECT_NE(fit.check(visual_patch(gate, 0), gate), std::nullopt);

  prefiller.capacity = 300;
  WindowFit enough(prefiller, 2);
  EXPECT_EQ(enough.check(visual_patch(gate, 0), gate), "");
  EXPECT_EQ(enough.check(visual_patch(gate, 1), gate), std::nullopt);
}

TEST(WindowFit, LooksAgainWhenTheSettingsOrThePictureAreOthers) {
  FakePrefiller prefiller;
  prefiller.per_patch = 50;
  prefiller.capacity = 300;
  WindowFit fit(prefiller, 2);
  EXPECT_EQ(fit.check(visual_patch(watch(), 0), watch()), "");
  auto settings = camera();
  settings->stream.window.length = 6s;
  const WatchPtr longer = watched(*settings, 2);
  EXPECT_THAT(fit.check(visual_patch(longer, 1), longer),
              Optional(HasSubstr("a window of 6s needs 400 tokens")));
  auto wider = std::make_shared<VisualPatch>(*visual_patch(longer, 2));
  auto tokens = std::make_shared<model::VisualTokens>();
  tokens->grid_height = 1;
  tokens->grid_width = 2;
  wider->tokens = tokens;
  EXPECT_NE(fit.check(wider, longer), std::nullopt);
  EXPECT_EQ(fit.check(wider, longer), std::nullopt);
}

TEST(WindowFit, IsSilentAboutAWindowThatCannotBeAsked) {
  /// Refuses every window.
  struct Refusing final : stream::WindowPrefiller {
    std::int64_t max_visual_tokens() const override { return 0; }
    std::int64_t room() const override { return 0; }
    std::int64_t room_for(const stream::WindowRequest&) const override {
      throw std::invalid_argument("a question that makes no sense");
    }
    std::vector<stream::AskedWindowPtr> ask(std::span<const stream::WindowRequest>) override { return {}; }
  } refusing;
  EXPECT_EQ(WindowFit(refusing, 2).check(visual_patch(watch(), 0), watch()), "") << "its failure tells why";
}

TEST(Explain, CompletesTogetherAndOneFailureTakesNoOtherWithIt) {
  FakePrefiller prefiller;
  FakeGenerator generator;
  const WatchPtr a = explaining_camera("a");
  const AskedWindows asked = ask(prefiller, due_windows(a, {90, 99, 20, 10}), [](std::int64_t) {});
  auto gone = std::make_shared<WindowAnswers>(*asked.windows[0]);
  gone->lease.reset();

  const Explained two = explain(generator, {{asked.windows[0], 1, 0}, {asked.windows[2], 1, 1}});
  EXPECT_THAT(two.texts, ElementsAre("Yes, a 90.", "No, a 20."));
  EXPECT_THAT(two.failures, ElementsAre("", ""));
  EXPECT_EQ(two.tokens, 8);
  EXPECT_THAT(generator.batches, ElementsAre(2U));

  const Explained some =
      explain(generator,
              {{asked.windows[1], 1, 0}, {gone, 1, 1}, {asked.windows[3], 1, 2}, {asked.windows[0], 1, 3}});
  EXPECT_THAT(some.texts, ElementsAre("", "", "No, a 10.", ""));
  EXPECT_THAT(some.failures, ElementsAre("no words", "the window has left the cache", "",
                                         "the answer was continued before"));
  EXPECT_EQ(some.tokens, 4);
  EXPECT_THAT(generator.batches, ElementsAre(2U, 3U)) << "nothing is begun twice";
}

TEST(Explain, WhatFailsAPassIsTheFailureOfAll) {
  FakePrefiller prefiller;
  FakeGenerator generator;
  generator.on_generate = [] { throw std::runtime_error("a launch failed"); };
  const AskedWindows asked =
      ask(prefiller, due_windows(explaining_camera("a"), {90, 20}), [](std::int64_t) {});
  const Explained none = explain(generator, {{asked.windows[0], 1, 0}, {asked.windows[1], 1, 1}});
  EXPECT_THAT(none.texts, ElementsAre("", ""));
  EXPECT_THAT(none.failures, ElementsAre("a launch failed", "a launch failed"));
  EXPECT_EQ(none.too_many, "");
  EXPECT_THAT(generator.batches, ElementsAre(2U)) << "what was begun cannot be begun again";
}

TEST(RoomBook, ServesInTheOrderOfRequestsAndNeverMoreThanThereIs) {
  RoomBook book(100);
  book.reserve(1, 60);
  book.reserve(2, 50);
  book.reserve(3, 10);
  EXPECT_THAT(book.grant(), ElementsAre(1U)) << "the small request does not overtake the large one";
  EXPECT_EQ(book.used(), 60);
  EXPECT_EQ(book.waiting(), 2U);
  EXPECT_THAT(book.grant(), IsEmpty());
  book.release(9);
  EXPECT_THAT(book.grant(), IsEmpty());
  book.release(1);
  EXPECT_THAT(book.grant(), ElementsAre(2U));
  book.release(50);
  EXPECT_THAT(book.grant(), ElementsAre(3U));
  EXPECT_EQ(book.used(), 60);
}

TEST(RoomBook, ARequestForMoreThanThereIsGetsAllThereIs) {
  RoomBook book(100);
  book.reserve(1, 1000);
  book.reserve(2, 1);
  EXPECT_THAT(book.grant(), ElementsAre(1U));
  EXPECT_EQ(book.used(), 100);
  book.release(1000);
  EXPECT_THAT(book.grant(), ElementsAre(2U));
  EXPECT_EQ(book.used(), 1);
}

}  // namespace
}  // namespace vigil::actors
