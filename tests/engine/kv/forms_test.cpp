#include "engine/kv/forms.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace vigil::kv {
namespace {

TEST(FormsTest, EachHasItsOwnName) {
  EXPECT_EQ(name_of(Form::bf16), "bf16");
  EXPECT_EQ(name_of(Form::fp8), "fp8");
  EXPECT_EQ(name_of(Form::int4), "int4");
  EXPECT_EQ(name_of(Form::embeddings), "embeddings");
  EXPECT_EQ(name_of(Form::sketch), "sketch");
}

// A patch of 256 tokens of the 7B model: what a history of it takes, by form.
TEST(FormsTest, BytesAreTheShareOfBf16ThatTheFormIsNamedFor) {
  const PageLayout layout{28, 4, 128, 64, kernels::DType::bf16};
  const std::int64_t whole = form_bytes(Form::bf16, layout, 3584, 256);
  EXPECT_EQ(whole, layout.page_bytes() * 4);
  EXPECT_EQ(form_bytes(Form::fp8, layout, 3584, 256) * 256, whole * 130);
  EXPECT_EQ(form_bytes(Form::int4, layout, 3584, 256) * 256, whole * 72);
  EXPECT_EQ(form_bytes(Form::embeddings, layout, 3584, 256), 256 * 3584 * 2);
  // The demo target's, with the type of the cache left out.
  const PageLayout demo{6, 1, 64, 64, kernels::DType::f32};
  EXPECT_EQ(form_bytes(Form::bf16, demo, 320, 60), 6 * 2 * 60 * 64 * 2);
  EXPECT_EQ(form_bytes(Form::int4, demo, 320, 64) * 128, form_bytes(Form::bf16, demo, 320, 64) * 36);
}

TEST(FormsTest, ASketchIsPackedAsInt4) {
  const PageLayout layout{28, 4, 128, 64, kernels::DType::bf16};
  EXPECT_EQ(packed_shape(Form::sketch, layout, 70).form, kernels::PackedForm::int4);
  EXPECT_EQ(form_bytes(Form::sketch, layout, 3584, 70), form_bytes(Form::int4, layout, 3584, 70));
}

TEST(FormsTest, EmbeddingsAreNoKeysAndValues) {
  const PageLayout layout{6, 1, 64, 64, kernels::DType::f32};
  EXPECT_THROW(packed_shape(Form::embeddings, layout, 1), std::invalid_argument);
  EXPECT_EQ(packed_shape(Form::int4, layout, 70).tokens, 70);
}

}  // namespace
}  // namespace vigil::kv
