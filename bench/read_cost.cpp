#include "bench/read_cost.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "bench/statistics.h"
#include "media/null_decode.h"

namespace vigil::bench {
namespace {

/// Processor time of this thread: the machine may be busy.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

ReadCost read_cost(const config::CameraSettings& camera, std::optional<media::Size> size) {
  constexpr int kRounds = 3;
  const config::MaskedText url = camera.url();
  media::ReadOptions read;
  read.fps = camera.stream.fps;
  read.motion = false;
  read.shown_name = url.shown;
  if (size) read.size = [wanted = *size](media::Size) { return wanted; };
  std::vector<double> reading;
  std::vector<double> decoding;
  ReadCost cost;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = thread_seconds();
    const auto reader = media::VideoReader::open(url.value, read);
    double last = 0;
    while (const auto frame = reader->next()) last = frame->seconds;
    const double middle = thread_seconds();
    media::null_decode(url.value, 1, false);
    cost.stream_seconds = std::max(reader->info().duration_seconds, last);
    reading.push_back(middle - begin);
    decoding.push_back(thread_seconds() - middle);
  }
  if (cost.stream_seconds <= 0) throw media::Error(read.shown_name + ": has no length");
  cost.read = percentile(reading, 0.5) / cost.stream_seconds;
  cost.null_decode = percentile(decoding, 0.5) / cost.stream_seconds;
  return cost;
}

}  // namespace vigil::bench
