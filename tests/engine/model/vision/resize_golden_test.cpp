// The resize primitive beside Pillow and PyTorch; here because the golden file needs a reader of safetensors.
#include <gtest/gtest.h>

#include "engine/model/files/safetensors.h"
#include "kernels/resize/resize.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

TEST(ResizeGolden, EqualsPillowAndTorchBitByBit) {
  const auto file = SafetensorsFile::open(testing::golden("resize.safetensors"));
  kernels::Stream stream = kernels::Stream::cpu(2);
  int pillow = 0;
  int torch = 0;
  for (const auto& [name, expected] : file->tensors()) {
    const std::size_t slash = name.find('/');
    const std::string which = name.substr(slash + 1);
    if (which == "in") continue;
    const TensorView& in = *file->find(name.substr(0, slash) + "/in");
    const auto like = which == "torch" ? kernels::ResizeLike::torch : kernels::ResizeLike::pillow;
    std::vector<std::uint8_t> out(expected.bytes());
    kernels::resize_bicubic(stream, reinterpret_cast<const std::uint8_t*>(in.data),
                            static_cast<int>(in.shape[0]), static_cast<int>(in.shape[1]), out.data(),
                            static_cast<int>(expected.shape[0]), static_cast<int>(expected.shape[1]), 3,
                            like);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      wrong += out[i] != static_cast<std::uint8_t>(expected.data[i]);
    EXPECT_EQ(wrong, 0U) << name << " of " << out.size();
    (which == "torch" ? torch : pillow) += 1;
  }
  EXPECT_EQ(pillow, 32);
  EXPECT_EQ(torch, 24);
}

}  // namespace
}  // namespace vigil::model
