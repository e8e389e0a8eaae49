#include "engine/run/device.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "engine/run/device_check.h"
#include "kernels/device/error.h"

namespace vigil::run {
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

TEST(DeviceTest, OneThatIsNotThereIsToldOf) {
  EXPECT_EQ(fault_of(parse_device("cpu")), "");
  const int there = kernels::cuda_devices();
  for (const char* text : {"cuda:999", "cuda:0+999"}) {
    const std::string fault = fault_of(parse_device(text));
    EXPECT_NE(fault, "") << "nowhere are so many";
    if (there > 0) {
      EXPECT_EQ(fault, "there is no GPU 999: this machine has " + std::to_string(there) + ", from 0 on");
    }
  }
  if (there > 0) {
    EXPECT_EQ(fault_of(parse_device("cuda")), "");
  }
}

TEST(DeviceTest, SeveralAreSeparatedByCommas) {
  EXPECT_EQ(parse_devices("cpu"), (std::vector<Device>{{}}));
  EXPECT_EQ(parse_devices(" cuda, cuda:1+3 ,cpu"),
            (std::vector<Device>{{DeviceKind::cuda, {0}}, {DeviceKind::cuda, {1, 3}}, {}}));
  for (const char* text : {"", ",", "cuda:0,", ",cpu", "cuda:0,,cuda:1", "cuda,cuda:0", "cpu,cpu",
                           "cuda:0;cuda:1", "cuda:0+1,cuda:1+2"})
    EXPECT_THROW(parse_devices(text), std::invalid_argument) << text;
}

TEST(DeviceTest, GenerationTakesAsManyOtherDevicesOrTheSame) {
  const auto refusal = [](const std::string& device, const std::string& decode) -> std::string {
    try {
      check_decode_device(parse_device(device), parse_device(decode));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  for (const char* same : {"cpu", "cuda:0", "cuda:1+0"}) EXPECT_EQ(refusal(same, same), "");
  EXPECT_EQ(refusal("cuda:0", "cuda:1"), "");
  EXPECT_EQ(refusal("cuda:0+1", "cuda:3+2"), "");
  EXPECT_EQ(refusal("cuda:0+1", "cuda:2"),
            "prefill on cuda:0+1 and generation on cuda:2 are not as many devices of one kind");
  EXPECT_EQ(refusal("cpu", "cuda:2"),
            "prefill on cpu and generation on cuda:2 are not as many devices of one kind");
  EXPECT_EQ(refusal("cuda:0+1", "cuda:1+0"),
            "generation on cuda:1+0 has GPU 1, which is one of cuda:0+1; it takes other GPUs, or the same "
            "device");
  EXPECT_EQ(refusal("cuda:0+1", "cuda:2+0"),
            "generation on cuda:2+0 has GPU 0, which is one of cuda:0+1; it takes other GPUs, or the same "
            "device");
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
}  // namespace vigil::run
