// Parity with Hugging Face transformers: the demo model and the checkpoints of tools/synthetic_model.py
// against tests/golden/models.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/files/error.h"
#include "engine/model/model_folder.h"
#include "engine/model/verify/golden.h"
#include "engine/model/verify/verify.h"

namespace vigil::model {
namespace {

const std::string kFolders = std::string(VIGIL_BINARY_DIR) + "/golden/models/";
const std::string kDemo = std::string(VIGIL_SOURCE_DIR) + "/models/demo";
const std::string kGolden = std::string(VIGIL_SOURCE_DIR) + "/tests/golden/models/";

class ParityTest : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<VerifiedPart> verify_model(const std::string& name, const VerifyOptions& options) {
    kernels::Stream stream = kernels::Stream::cpu();
    const auto folder = ModelFolder::open(name == "demo" ? kDemo : kFolders + name);
    return verify(*folder, read_golden(kGolden + name + ".safetensors"), stream, options);
  }

  static void expect_parity(const std::vector<VerifiedPart>& parts) {
    for (const VerifiedPart& part : parts)
      EXPECT_TRUE(part.passed()) << part.case_name << ", " << part.part << ": " << part.error << " > "
                                 << part.limit;
  }

  static int count(const std::vector<VerifiedPart>& parts, const std::string& name) {
    return static_cast<int>(
        std::count_if(parts.begin(), parts.end(), [&](const auto& part) { return part.part == name; }));
  }
};

TEST_P(ParityTest, FloatAgreesToAThousandthAndInEveryGreedyToken) {
  const auto parts = verify_model(GetParam(), {.compute = kernels::DType::f32});
  expect_parity(parts);
  EXPECT_GE(count(parts, "logits"), 3);
  EXPECT_GE(count(parts, "vision"), 2);
  for (const VerifiedPart& part : parts) {
    if (part.part == "greedy") {
      EXPECT_EQ(part.equal_tokens, 64) << part.case_name;
    }
  }
}

TEST_P(ParityTest, Bfloat16AgreesToTwoHundredths) {
  if (!kernels::cpu_has_bf16()) GTEST_SKIP() << "this processor has no products of bf16";
  const auto parts = verify_model(GetParam(), {.compute = kernels::DType::bf16});
  expect_parity(parts);
  for (const VerifiedPart& part : parts) {
    if (part.part == "logits") {
      EXPECT_LE(part.error, part.transformers_bf16) << "transformers' own bf16 is closer, " << part.case_name;
    }
  }
}

// A prompt in pieces is the same prompt: 13 rows a pass, pages of 7 tokens, so that neither fits the other.
TEST_P(ParityTest, ChunkedPrefillOverOddPagesAgreesToo) {
  if (GetParam() == "wide") GTEST_SKIP() << "the small configurations cover it";
  expect_parity(verify_model(GetParam(), {.compute = kernels::DType::f32, .chunk = 13, .page_tokens = 7}));
  expect_parity(verify_model(GetParam(), {.compute = kernels::DType::f32, .chunk = 1, .page_tokens = 1}));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ParityTest, testing::Values("demo", "tiny", "odd", "half", "wide"),
                         [](const auto& param_info) { return param_info.param; });

/// Beside transformers with linear layers that round to torch's E4M3 (tools/golden.py --quantization): either
/// every number is rounded as there, and only sums differ, or one that lies in the middle between two codes
/// goes the other way, which moves a small random network by hundredths.
TEST(QuantizedParityTest, RoundsWhereTransformersDoes) {
  kernels::Stream stream = kernels::Stream::cpu();
  const auto folder = ModelFolder::open(kFolders + "tiny");
  const GoldenFile golden = read_golden(kGolden + "tiny-fp8.safetensors");
  VerifyOptions options{.quantization = Quantization::fp8_all};
  for (const auto& [chunk, page_tokens] : {std::pair{512, 64}, {13, 7}, {1, 1}}) {
    options.chunk = chunk;
    options.page_tokens = page_tokens;
    int exact = 0, compared = 0;
    for (const VerifiedPart& part : verify(*folder, golden, stream, options)) {
      EXPECT_TRUE(part.passed()) << part.case_name << ", " << part.part << ": " << part.error;
      if (part.part != "vision" && part.part != "logits") continue;
      EXPECT_LE(part.error, 6e-2) << part.case_name << ", " << part.part;
      ++compared;
      if (part.error < 1e-5) ++exact;
    }
    EXPECT_EQ(compared, 3);
    EXPECT_GE(exact, 1) << "in chunks of " << chunk;
  }
}

// Of what a golden file without quantisation says it is off by hundredths: it is on.
TEST(QuantizedParityTest, CostsHundredths) {
  kernels::Stream stream = kernels::Stream::cpu();
  const auto folder = ModelFolder::open(kFolders + "tiny");
  const GoldenFile golden = read_golden(kGolden + "tiny.safetensors");
  for (const Quantization quantization : {Quantization::fp8, Quantization::fp8_all})
    for (const VerifiedPart& part : verify(*folder, golden, stream, {.quantization = quantization})) {
      EXPECT_TRUE(part.passed()) << part.case_name << ", " << part.part << ": " << part.error;
      if (part.part == "logits") {
        EXPECT_GT(part.error, 2e-2) << part.case_name;
      }
      if (part.part == "vision") {
        EXPECT_EQ(part.error > 1e-2, quantization == Quantization::fp8_all) << part.case_name;
      }
    }
}

TEST(VerifyTest, AGoldenFileOfAnotherModelIsRefused) {
  kernels::Stream stream = kernels::Stream::cpu();
  const auto folder = ModelFolder::open(kFolders + "tiny");
  const GoldenFile golden = read_golden(kGolden + "odd.safetensors");
  EXPECT_THROW(verify(*folder, golden, stream, {}), ModelError);
}

TEST(VerifyTest, AWrongValueIsFound) {
  kernels::Stream stream = kernels::Stream::cpu();
  const auto folder = ModelFolder::open(kFolders + "tiny");
  GoldenFile golden = read_golden(kGolden + "tiny.safetensors");
  golden.cases[0].logits.values[5] += 10;
  golden.cases[0].position_ids[1][3] += 1;
  golden.cases[1].vision_embeddings.values[0] += 10;
  golden.cases[1].greedy_tokens[0] = (golden.cases[1].greedy_tokens[0] + 1) % 512;
  const auto parts = verify(*folder, golden, stream, {});
  int failed = 0;
  for (const VerifiedPart& part : parts) failed += part.passed() ? 0 : 1;
  EXPECT_EQ(failed, 4);
}

}  // namespace
}  // namespace vigil::model
