// What decoding and sampling cost beside FFmpeg's null decode of the same file on the same threads, in one
// process. Variants take turns, so that a busy machine hits all of them alike; ratios are taken round by
// round. JSON lines.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "media/ffmpeg.h"
#include "media/media.h"
#include "media/null_decode.h"
#include "services/build_info.h"

namespace {

using namespace vigil::media;

struct Cost {
  double wall = 0;
  double cpu = 0;
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t vectors = 0;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost decode_only(const std::string& file, int threads, bool vectors) {
  Cost cost;
  cost.frames = null_decode(file, threads, vectors);
  return cost;
}

Cost sample(const std::string& file, int threads, double fps, Size size, bool motion) {
  Cost cost;
  ReadOptions options;
  options.fps = fps;
  options.threads = threads;
  options.motion = motion;
  options.size = [size](Size) { return size; };
  const auto reader = VideoReader::open(file, options);
  while (const auto frame = reader->next()) {
    for (const FrameMotion& one : frame->motion->frames) cost.vectors += one.vectors.size();
  }
  cost.frames = reader->stats().decoded_frames;
  cost.samples = reader->stats().sampled_frames;
  return cost;
}

struct Variant {
  std::string name;
  std::function<Cost()> run;
  std::vector<double> wall;
  std::vector<double> cpu;
  Cost last;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> ratios(const std::vector<double>& values, const std::vector<double>& base) {
  std::vector<double> result;
  for (std::size_t i = 0; i < values.size(); ++i) result.push_back(values[i] / base[i]);
  return result;
}

std::string machine() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads, " + system.machine +
         ", FFmpeg " + av_version_info();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Decode and sample beside FFmpeg's null decode. Prints a JSON line for each variant."};
  std::vector<std::string> files;
  int threads = 1;
  int repeat = 11;
  double fps = 2;
  int edge = 448;
  app.add_option("FILE", files, "Videos to decode")->required();
  app.add_option("--threads", threads, "Decoder threads")->capture_default_str();
  app.add_option("--repeat", repeat, "Rounds; each runs every variant once")->capture_default_str();
  app.add_option("--fps", fps, "Samples a second")->capture_default_str();
  app.add_option("--size", edge, "Width and height of the samples")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  av_log_set_level(AV_LOG_QUIET);

  for (const std::string& file : files) {
    const Size size{edge, edge};
    std::vector<Variant> variants = {
        {"null", [&] { return decode_only(file, threads, false); }, {}, {}, {}},
        {"null+vectors", [&] { return decode_only(file, threads, true); }, {}, {}, {}},
        {"vigil", [&] { return sample(file, threads, fps, size, true); }, {}, {}, {}},
        {"vigil-no-motion", [&] { return sample(file, threads, fps, size, false); }, {}, {}, {}},
    };
    for (int round = -1; round < repeat; ++round) {
      for (Variant& variant : variants) {
        const double cpu = cpu_seconds();
        const auto begin = std::chrono::steady_clock::now();
        variant.last = variant.run();
        const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
        if (round < 0) continue;  // warms caches
        variant.wall.push_back(wall.count());
        variant.cpu.push_back(cpu_seconds() - cpu);
      }
    }
    for (const Variant& variant : variants) {
      const nlohmann::json line = {
          {"machine", machine()},
          {"commit", vigil::services::kCommit},
          {"file", file.substr(file.find_last_of('/') + 1)},
          {"threads", threads},
          {"variant", variant.name},
          {"rounds", repeat},
          {"frames", variant.last.frames},
          {"samples", variant.last.samples},
          {"vectors", variant.last.vectors},
          {"median_seconds", median(variant.wall)},
          {"mean_seconds", mean(variant.wall)},
          {"deviation_seconds", deviation(variant.wall)},
          {"minimum_seconds", *std::min_element(variant.wall.begin(), variant.wall.end())},
          {"cpu_seconds", median(variant.cpu)},
          {"ratio", median(ratios(variant.wall, variants[0].wall))},
          {"cpu_ratio", median(ratios(variant.cpu, variants[0].cpu))},
      };
      std::cout << line.dump() << '\n' << std::flush;
    }
  }
}
