#include "bench/cameras_report.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vigil::bench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CamerasReportTest : public ::testing::Test {
 protected:
  CamerasReportTest() {
    run_.length = 40;
    run_.stride = 8;
    run_.fps = 2;
    run_.size = "224x224";
    run_.rules = 2;
    run_.model = "demo";
    run_.device = run_.decode_device = "cpu";
    run_.kv_tokens = 16384;
    run_.dtype = "f32";
    run_.quantization = "none";
    run_.product_limit = 1e9;

    figures_.cameras = 4;
    figures_.seconds = 10;
    figures_.due = 5;
    figures_.windows.resize(4);
    for (std::size_t i = 0; i < 4; ++i) {
      figures_.windows[i].latency = static_cast<double>(i + 1);
      figures_.windows[i].waiting = 0.5;
    }
    figures_.stages["vision"] = {0.25, 0.75};
    figures_.stages["alerts"] = {};
    figures_.cpu = {{"decode", 3}, {"device", 10}, {"other", 7}};
    figures_.cpu_total = 20;
    figures_.cpu_products = 5;
    figures_.flops = 1e9;
    figures_.tokens = 64;
    figures_.alerts = 3;
    figures_.resident_bytes = 512 << 20;
    figures_.most_resident_bytes = 1024 << 20;
    figures_.load = 2;
  }

  CamerasReport report(bool as_json) {
    CamerasReport report({"CPU", 8, "abc"}, as_json, out_);
    report.read("a.mp4", {.stream_seconds = 10, .read = 0.06, .null_decode = 0.05}, true, 1.5);
    report.read("b.mp4", {.stream_seconds = 10, .read = 0.12, .null_decode = 0.1}, true, 1.5);
    return report;
  }

  /// The one line that this wrote.
  json step(std::optional<int> held) {
    const CamerasReport of = report(true);
    out_.str("");
    of.step(run_, "step", figures_, held);
    const std::string text = out_.str();
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    return json::parse(text);
  }

  std::ostringstream out_;
  CamerasRun run_;
  PipelineFigures figures_;
};

TEST_F(CamerasReportTest, AFileIsReadOnceInWhatIsTold) {
  CamerasReport of = report(true);
  of.read("a.mp4", {.stream_seconds = 10, .read = 0.06, .null_decode = 0.05}, false, 1.5);
  std::istringstream lines(out_.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const json read = json::parse(line);
  EXPECT_EQ(read.at("figure"), "read");
  EXPECT_EQ(read.at("file"), "a.mp4");
  EXPECT_EQ(read.at("machine"), "CPU, 8 processors");
  EXPECT_EQ(read.at("commit"), "abc");
  EXPECT_NEAR(read.at("over_null_decode").get<double>(), 1.2, 1e-12);
  EXPECT_EQ(read.at("load"), 1.5);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(json::parse(line).at("file"), "b.mp4");
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(CamerasReportTest, AStepTellsWhatWasRunAndWhatCameOfIt) {
  const json line = step(std::nullopt);
  EXPECT_EQ(line.at("cameras"), 4);
  EXPECT_EQ(line.at("held"), true);
  EXPECT_EQ(line.at("window"),
            json({{"length", 40.0}, {"stride", 8.0}, {"fps", 2.0}, {"size", "224x224"}, {"rules", 2}}));
  EXPECT_EQ(line.at("model"), "demo");
  EXPECT_EQ(line.at("kv_tokens"), 16384);
  EXPECT_EQ(line.at("windows"), json({{"due", 5.0},
                                      {"answered", 4},
                                      {"lost", 0.0},
                                      {"overtaken", 0.0},
                                      {"failed", 0.0},
                                      {"out_of_memory", 0.0}}));
  EXPECT_EQ(line.at("window_latency_seconds"), json({{"p50", 2.0}, {"p95", 4.0}, {"count", 4}}));
  EXPECT_EQ(line.at("stage_seconds").at("waiting"), json({{"p50", 0.5}, {"p95", 0.5}, {"count", 4}}));
  EXPECT_EQ(line.at("stage_seconds").at("vision"), json({{"p50", 0.25}, {"p95", 0.75}, {"count", 2}}));
  EXPECT_EQ(line.at("stage_seconds").at("alerts").at("count"), 0);
  EXPECT_EQ(line.at("cpu_share_of_machine"), 20.0 / (8 * 10));
  EXPECT_EQ(line.at("resident_mib"), 512.0);
  EXPECT_EQ(line.at("most_resident_mib"), 1024.0);
  EXPECT_FALSE(line.contains("cameras_held")) << "nobody knows it yet";
  EXPECT_FALSE(line.contains("fairness_least_over_median_per_minute"));
  // Four cameras of two files in turns, a tenth and a twentieth of a processor each, for 10 s.
  EXPECT_NEAR(line.at("decode_over_null_decode").get<double>(), 3 / (0.3 * 10), 1e-12);
}

TEST_F(CamerasReportTest, AGpusFloorStandsBesideTheCameras) {
  EXPECT_FALSE(step(4).contains("floor"));
  run_.product_limit = std::nullopt;
  run_.floor = Floor{.window = 0.25, .answer = 0.06};
  const json floor = step(4).at("floor");
  EXPECT_EQ(floor.at("window_seconds"), 0.25);
  EXPECT_EQ(floor.at("answer_seconds"), 0.06);
  EXPECT_EQ(floor.at("cameras"), 32.0) << "of a window each 8 s";
  EXPECT_NEAR(floor.at("device_share_together").get<double>(), 4 * 0.25 / 8, 1e-12);
  EXPECT_NEAR(floor.at("device_share_one_by_one").get<double>(), 4 * 0.31 / 8, 1e-12);
  const CamerasReport of = report(false);
  out_.str("");
  of.step(run_, "step", figures_, 4);
  EXPECT_THAT(out_.str(), HasSubstr("floor              a window takes 0.25 s of the device"));
}

TEST_F(CamerasReportTest, ALatencyIsThatOfAShareOfTheWindows) {
  EXPECT_EQ(latency(figures_, 0.95), 4);
  EXPECT_EQ(latency(figures_, 0.5), 2);
  EXPECT_EQ(latency(PipelineFigures(), 0.95), 0);
}

TEST_F(CamerasReportTest, ProductsAreComparedWithWhatTheProcessorsCouldDo) {
  const json line = step(6);
  EXPECT_EQ(line.at("cameras_held"), 6);
  EXPECT_EQ(line.at("product_share_of_cpu"), 0.25);
  EXPECT_EQ(line.at("product_share_of_device"), 0.5);
  EXPECT_EQ(line.at("product_rate_per_processor"), 2e8);
  EXPECT_EQ(line.at("product_limit"), 1e9);
  EXPECT_EQ(line.at("flops_per_camera_second"), 2.5e7);
  EXPECT_EQ(line.at("limit_cameras"), 40.0);
  EXPECT_NEAR(line.at("held_over_limit").get<double>(), 6 / 40.0, 1e-12);
  EXPECT_EQ(line.at("processors_per_camera"), 0.5);
  EXPECT_EQ(line.at("cameras_by_processor_time"), 16.0);
}

TEST_F(CamerasReportTest, NothingIsSaidOfALimitWhereWindowsWereLost) {
  figures_.lost.windows["overtaken"] = 2;
  figures_.lost.frames["queue_full"] = 8;
  figures_.least_share = 0.75;
  const json line = step(6);
  EXPECT_EQ(line.at("held"), false);
  EXPECT_EQ(line.at("windows").at("lost"), 2.0);
  EXPECT_EQ(line.at("windows").at("overtaken"), 2.0);
  EXPECT_EQ(line.at("windows").at("failed"), 0.0);
  EXPECT_EQ(line.at("dropped_frames"), json({{"queue_full", 8.0}}));
  EXPECT_EQ(line.at("fairness_least_over_median_per_minute"), 0.75);
  EXPECT_TRUE(line.contains("product_share_of_cpu"));
  EXPECT_FALSE(line.contains("limit_cameras")) << "less was done than was asked for";
  EXPECT_FALSE(line.contains("cameras_by_processor_time"));
}

TEST_F(CamerasReportTest, WhatAGpuComputesIsNoneOfTheProcessorsProducts) {
  run_.product_limit.reset();
  const json line = step(6);
  EXPECT_FALSE(line.contains("product_share_of_cpu"));
  EXPECT_FALSE(line.contains("limit_cameras"));
}

TEST_F(CamerasReportTest, PeopleSeeATableOfWhatIsKnownInTheEnd) {
  const CamerasReport of = report(false);
  EXPECT_THAT(out_.str(), HasSubstr("reading a.mp4: 6 % of a processor in real time, 1.2 times FFmpeg's"));
  out_.str("");
  of.step(run_, "step", figures_);
  EXPECT_THAT(out_.str(), IsEmpty()) << "a step on the way";
  of.step(run_, "cameras_held", figures_, 4);
  EXPECT_THAT(out_.str(), HasSubstr("cameras_held: 4 cameras, held, for 10 s\n"));
  EXPECT_THAT(out_.str(), HasSubstr("4 answered of 5 due, 0 lost"));
  EXPECT_THAT(out_.str(), HasSubstr("    window latency   2         4         4\n"));
  EXPECT_THAT(out_.str(), HasSubstr("16 cameras would fill the processors, 40 if"));
  EXPECT_THAT(out_.str(), HasSubstr("CPU, 8 processors, commit abc\n"));
}

}  // namespace
}  // namespace vigil::bench
