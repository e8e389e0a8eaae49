#include "engine/run/token_transfer.h"

#include <cstring>

#include <gtest/gtest.h>

namespace vigil::run {
namespace {

// Whoever copies tokens has all that is known of them.
TEST(TokenTransferTest, OtherEmbeddingsLeaveTheRestAsItWas) {
  const kernels::Stream stream = kernels::Stream::cpu(1);
  model::VisualTokens tokens;
  tokens.dtype = kernels::DType::bf16;
  tokens.width = 8;
  tokens.kept = base::GridMask::all(2, 3);
  tokens.standing_out = base::GridMask::none(2, 3);
  tokens.standing_out->add(4);
  tokens.seconds = 12.5;
  tokens.duration = 0.5;
  tokens.intra = true;
  tokens.encoded = 3;
  kernels::Buffer embeddings(stream, tokens.bytes());
  std::memset(embeddings.data(), 7, tokens.bytes());
  const auto made = tokens_with(tokens, std::move(embeddings));
  EXPECT_EQ(made->dtype, tokens.dtype);
  EXPECT_EQ(made->width, tokens.width);
  EXPECT_EQ(made->kept, tokens.kept);
  EXPECT_EQ(made->standing_out, tokens.standing_out);
  EXPECT_EQ(made->seconds, tokens.seconds);
  EXPECT_EQ(made->duration, tokens.duration);
  EXPECT_EQ(made->intra, tokens.intra);
  EXPECT_EQ(made->encoded, tokens.encoded);
  EXPECT_EQ(made->embeddings.bytes(), 96U);
  EXPECT_EQ(made->embeddings.data()[95], std::byte{7});
}

}  // namespace
}  // namespace vigil::run
