#include "engine/window/device.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/device/error.h"

namespace vigil::window {
namespace {

using kernels::DeviceKind;

TEST(DeviceTest, IsReadFromWords) {
  EXPECT_EQ(parse_device("cpu"), (Device{DeviceKind::cpu, {0}}));
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceKind::cuda, {0}}));
  EXPECT_EQ(parse_device("cuda:0"), (Device{DeviceKind::cuda, {0}}));
  EXPECT_EQ(parse_device("cuda:13"), (Device{DeviceKind::cuda, {13}}));
  for (const char* text : {"cpu", "cuda:0", "cuda:7", "cuda:1+0", "cuda:2+3+10"})
    EXPECT_EQ(name_of(parse_device(text)), text);
}

TEST(DeviceTest, OtherWordsAreRefused) {
  for (const char* text : {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x", "cuda: 1",
                           "cuda:99999999999", "cuda1", "cpu:0", "cuda:0+", "cuda:0++1", "cuda:0+0",
                           "cuda:0+1+0", "cuda:0 1", "cuda:0,1", "cuda:0,cuda:1", "cpu+cpu"})
    EXPECT_THROW(parse_device(text), std::invalid_argument) << text;
}

TEST(DeviceTest, SeveralAreSeparatedByCommas) {
  EXPECT_EQ(parse_devices("cpu"), (std::vector<Device>{{}}));
  EXPECT_EQ(parse_devices(" cuda, cuda:1+3 ,cpu"),
            (std::vector<Device>{{DeviceKind::cuda, {0}}, {DeviceKind::cuda, {1, 3}}, {}}));
  for (const char* text : {"", ",", "cuda:0,", ",cpu", "cuda:0,,cuda:1", "cuda,cuda:0", "cpu,cpu",
                           "cuda:0;cuda:1", "cuda:0+1,cuda:1+2"})
    EXPECT_THROW(parse_devices(text), std::invalid_argument) << text;
}

TEST(DeviceTest, AGpuThatIsNotThereIsAnErrorThatSaysSo) {
  try {
    make_streams({DeviceKind::cuda, {4096}}, 0);
    FAIL() << "there are no 4,097 GPUs";
  } catch (const kernels::DeviceError& error) {
    EXPECT_FALSE(error.lost());
    EXPECT_NE(std::string(error.what()), "");
  }
  EXPECT_EQ(make_streams({}, 3).front().threads(), 3);
  EXPECT_EQ(make_streams({DeviceKind::cpu, {0, 0}}, 1).size(), 2U);
}

}  // namespace
}  // namespace vigil::window
