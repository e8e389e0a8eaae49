// What passes see of a past: through the seam of run::Passes, and a layer ahead.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/past/past_attend.h"
#include "tests/engine/past/asked_past.h"
#include "tests/kernels/on_device.h"

namespace vigil::past {
namespace {

using kernels::tests_on_gpu;
using testing::Asked;
using testing::counted;
using testing::everything;
using testing::kOff;
using testing::kPast;
using testing::kWindow;
using testing::off;
using testing::parts_of;

// As whoever has streams sees it (run::Passes).
TEST(PastTest, PassesSeeWhatIsBeforeASegment) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  for (const int ranks : {1, 2}) {
    if (tests_on_gpu() && kernels::cuda_devices() < ranks) continue;
    Asked asked(ranks);
    const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
    const std::vector<float> other = asked.ask({asked.seen()}, model::full_attention())[0];
    const auto past = asked.passes.make_past(everything("all"));
    EXPECT_EQ(past->tokens(), 0);
    for (std::int32_t first = 0; first < kPast; first += 10)
      past->append(asked.slots().subspan(static_cast<std::size_t>(first), 10), counted(first, 10));
    past->lay();
    EXPECT_EQ(past->tokens(), kPast);
    EXPECT_EQ(past->patches(), std::vector<int>{9});
    EXPECT_GT(past->host_bytes(), 0);
    EXPECT_GT(past->device_bytes(), 0);
    const auto seen = asked.ask({asked.seen()}, model::full_attention(), past.get())[0];
    EXPECT_LT(off(whole, seen), kOff) << ranks;
    // And none of it in the next pass.
    EXPECT_EQ(off(other, asked.ask({asked.seen()}, model::full_attention())[0]), 0);
  }
}

// Brought a layer ahead, by what the next layer's queries are guessed to be: where all is chosen, that is no
// guess.
TEST(PastTest, ALayerAheadAllOfItIsFullAttention) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
  for (const std::string method : {"all", "resv-pooled", "resv-still"}) {
    PastOptions options = everything(method);
    options.ahead = true;
    const auto pasts = asked.pasts(options);
    PastAttend attend;
    EXPECT_FALSE(attend.looks_ahead()) << "nobody has a past";
    attend.add(asked.seen(), parts_of(pasts), kPast + kWindow);
    EXPECT_TRUE(attend.looks_ahead());
    attend.count();
    // And again: nothing of the pass before is taken for this one's.
    for (int pass = 0; pass < 2; ++pass)
      EXPECT_LT(off(whole, asked.ask({asked.seen()}, attend)[0]), kOff) << method;
    EXPECT_EQ(attend.counted(0).share(), 1);
  }
}

/// Notes what a layer was asked with, and what its guess was.
struct Listening final : model::Attend {
  explicit Listening(const model::Attend& to) : inner(to) {}
  void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override {
    calls.push_back("attend " + std::to_string(layer));
    inner.attend(stream, rank, layer, q, kv, plan, scale, out);
  }
  bool looks_ahead() const override { return inner.looks_ahead(); }
  void ahead(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
             const kernels::PagedPlan& plan, float scale) const override {
    calls.push_back("ahead " + std::to_string(layer));
    inner.ahead(stream, rank, layer, q, plan, scale);
  }
  const model::Attend& inner;
  mutable std::vector<std::string> calls;
};

TEST(PastTest, ALayerAheadSomeOfItIsChosenByGuesses) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  PastOptions options{.method = "resv-pooled"};
  const auto pasts = asked.pasts(options);
  options.ahead = true;
  const auto guessing = asked.pasts(options);
  PastAttend own, guessed;
  own.add(asked.seen(), parts_of(pasts), kPast + kWindow);
  guessed.add(asked.seen(), parts_of(guessing), kPast + kWindow);
  EXPECT_FALSE(own.looks_ahead());
  own.count();
  guessed.count();
  const Listening listening(guessed);
  const std::vector<float> by_own = asked.ask({asked.seen()}, own)[0];
  const std::vector<float> by_guesses = asked.ask({asked.seen()}, listening)[0];
  EXPECT_EQ(listening.calls,
            (std::vector<std::string>{"ahead 0", "ahead 1", "attend 0", "attend 1", "attend 2"}))
      << "the last layer asks for fewer rows";
  // Once for each layer: what was brought ahead is not brought again.
  EXPECT_EQ(guessed.counted(0).of, own.counted(0).of);
  EXPECT_GT(guessed.counted(0).fetched, 0);
  EXPECT_LT(guessed.counted(0).share(), 1);
  // A guess of this model's queries is near, and it is a guess.
  const std::vector<float> nothing = asked.ask({asked.seen()}, model::full_attention())[0];
  EXPECT_LT(off(by_own, by_guesses), off(by_own, nothing));
  EXPECT_GT(off(by_own, by_guesses), 0);
}

// A pass of many texts of which one has a past takes lists for that one.
TEST(PastTest, ASegmentWithoutAPastHasNoLists) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  kv::View other(asked.model.book);
  other.append(testing::kQuestion);
  std::vector<std::int32_t> beside(asked.seen().begin(), asked.seen().end() - testing::kQuestion);
  beside.insert(beside.end(), other.slots().begin(), other.slots().end());
  const auto pasts = asked.pasts(everything());
  PastAttend alone, together;
  for (PastAttend* attend : {&alone, &together}) attend->add(beside, parts_of(pasts), 0);
  EXPECT_EQ(alone.list_bytes(0), 0);
  asked.ask({beside}, alone);
  // The one with a past is not the first.
  const auto both = asked.ask({asked.seen(), beside}, together);
  EXPECT_GT(alone.list_bytes(0), 0);
  EXPECT_EQ(together.list_bytes(0), alone.list_bytes(0));
  EXPECT_LT(off(asked.ask({asked.slots()}, model::full_attention())[0], both[1]), kOff);
  EXPECT_LT(off(asked.ask({asked.seen()}, model::full_attention())[0], both[0]), kOff);
}

}  // namespace
}  // namespace vigil::past
