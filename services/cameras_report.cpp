#include "services/cameras_report.h"

#include <iomanip>
#include <iostream>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "bench/statistics.h"
#include "cluster/process.h"
#include "services/build_info.h"

namespace vigil::services {
namespace {

using nlohmann::json;

json quantiles(const std::vector<double>& values) {
  return {{"p50", bench::percentile(values, 0.5)},
          {"p95", bench::percentile(values, 0.95)},
          {"count", values.size()}};
}

json common(const char* figure) {
  return {{"bench", "cameras"},
          {"figure", figure},
          {"machine", cluster::processor_name() + ", " + std::to_string(std::thread::hardware_concurrency()) +
                          " processors"},
          {"commit", kCommit}};
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

/// What share of the processors' time products took, and how many cameras products alone would allow.
void add_products(json& line, double limit, const bench::PipelineFigures& figures, bool held,
                  std::optional<int> most) {
  line["product_share_of_cpu"] = figures.cpu_products / figures.cpu_total;
  const double computing =
      figures.cpu.contains("device") ? figures.cpu.at("device") : 0;
  if (computing > 0) line["product_share_of_device"] = figures.cpu_products / computing;
  // In processor time, so that it can be compared on a busy machine.
  line["product_rate_per_processor"] = figures.flops / figures.cpu_products;
  line["product_limit"] = limit;
  // Where windows were lost, less was done than the cameras asked for.
  if (!held) return;
  const double per_camera = figures.flops / figures.seconds / figures.cameras;
  line["flops_per_camera_second"] = per_camera;
  line["limit_cameras"] = limit / per_camera;
  if (most) line["held_over_limit"] = *most / (limit / per_camera);
  // What is held if all processors did nothing else: on a busy machine the better figure.
  const double cpu_per_camera = figures.cpu_total / figures.seconds / figures.cameras;
  line["processors_per_camera"] = cpu_per_camera;
  line["cameras_by_processor_time"] = std::thread::hardware_concurrency() / cpu_per_camera;
}

void print_text(const json& line) {
  const auto number = [](const json& value) { return rounded(value.get<double>()); };
  std::cout << "\n"
            << line.at("figure").get<std::string>() << ": " << line.at("cameras") << " cameras, "
            << (line.at("held").get<bool>() ? "held" : "not held") << ", for " << number(line.at("seconds"))
            << " s\n";
  std::cout << "  windows            " << line.at("windows").at("answered") << " answered of "
            << number(line.at("windows").at("due")) << " due, " << number(line.at("windows").at("lost"))
            << " lost (" << number(line.at("windows").at("overtaken")) << " overtaken, "
            << number(line.at("windows").at("failed")) << " failed, "
            << number(line.at("windows").at("out_of_memory")) << " out of memory); frames dropped "
            << line.at("dropped_frames").dump() << "; " << number(line.at("tokens"))
            << " tokens generated for " << line.at("stage_seconds").at("alerts").at("count") << " alerts\n";
  if (line.contains("fairness_least_over_median_per_minute"))
    std::cout << "  fairness           the least answered camera has "
              << number(line.at("fairness_least_over_median_per_minute"))
              << " of the median within any minute (aim 0.5)\n";
  std::cout << "  stage              p50 s     p95 s     count\n";
  const auto row = [&](const std::string& name, const json& values) {
    std::cout << "    " << std::left << std::setw(17) << name << std::setw(10) << number(values.at("p50"))
              << std::setw(10) << number(values.at("p95")) << values.at("count") << "\n";
  };
  row("window latency", line.at("window_latency_seconds"));
  for (const auto& [stage, values] : line.at("stage_seconds").items()) row(stage, values);
  std::cout << "  processor time     ";
  for (const auto& [stage, seconds] : line.at("cpu_seconds").items())
    std::cout << stage << ' ' << number(seconds) << " s, ";
  std::cout << "together " << number(line.at("cpu_share_of_machine")) << " of the machine\n";
  if (line.contains("product_share_of_cpu"))
    std::cout << "  matrix products    " << number(line.at("product_share_of_cpu"))
              << " of all processor time (aim 0.7), "
              << number(line.at("product_share_of_device")) << " of that of the device\n";
  if (line.contains("limit_cameras"))
    std::cout << "  limits             " << number(line.at("cameras_by_processor_time"))
              << " cameras would fill the processors, " << number(line.at("limit_cameras"))
              << " if they did nothing but products, at the rate of large ones\n";
  std::cout << "  decoding           " << number(line.at("decode_over_null_decode"))
            << " times FFmpeg's null decode, in processor time (limit 1.15)\n";
  std::cout << "  memory             " << number(line.at("resident_mib")) << " MiB resident, "
            << number(line.at("most_resident_mib")) << " at most\n";
  std::cout << "  load               " << number(line.at("load")) << ", "
            << line.at("machine").get<std::string>() << ", commit " << line.at("commit").get<std::string>()
            << std::endl;
}

}  // namespace

void CamerasReport::read(const std::string& file, const ReadCost& cost, bool first) {
  costs_.push_back(cost);
  if (!first) return;
  json line = common("read");
  line["file"] = file;
  line["cpu_of_real_time"] = cost.read;
  line["null_decode_cpu_of_real_time"] = cost.null_decode;
  line["over_null_decode"] = cost.read / cost.null_decode;
  line["limit"] = 1.15;
  line["load"] = cluster::load_average();
  if (json_) {
    std::cout << line.dump() << std::endl;
  } else {
    std::cout << "reading " << file << ": " << rounded(100 * cost.read) << " % of a processor in real time, "
              << rounded(cost.read / cost.null_decode) << " times FFmpeg's null decode (limit 1.15)\n";
  }
}

void CamerasReport::step(const BenchPipeline& pipeline, const char* figure,
                         const bench::PipelineFigures& figures, std::optional<int> held) const {
  json line = common(figure);
  const double stride = pipeline.stride();
  line["cameras"] = figures.cameras;
  line["held"] = figures.held(stride);
  line["seconds"] = figures.seconds;
  line["window"] = {{"length", pipeline.length()},
                    {"stride", stride},
                    {"fps", options_.cameras.front().stream.fps},
                    {"size", size_},
                    {"rules", options_.cameras.front().rules.size()}};
  line["model"] = pipeline.engine().model_id;
  line["device"] = run::name_of(pipeline.engine().device);
  line["decode_device"] = run::name_of(pipeline.engine().decode_device);
  line["kv_tokens"] = options_.engine.kv_tokens;
  line["dtype"] = kernels::name_of(pipeline.engine().compute);
  line["quantization"] = model::name_of(pipeline.engine().quantization);
  json windows{{"due", figures.due},
               {"answered", figures.windows.size()},
               {"lost", figures.lost.windows_lost()},
               {"overtaken", 0.0},
               {"failed", 0.0},
               {"out_of_memory", 0.0}};
  windows.update(json(figures.lost.windows));
  line["windows"] = windows;
  line["dropped_frames"] = figures.lost.frames;
  if (figures.least_share) line["fairness_least_over_median_per_minute"] = *figures.least_share;

  std::vector<double> latencies;
  std::vector<double> waiting;
  for (const auto& window : figures.windows) {
    latencies.push_back(window.latency);
    waiting.push_back(window.waiting);
  }
  line["window_latency_seconds"] = quantiles(latencies);
  json stages{{"waiting", quantiles(waiting)}};
  for (const auto& [stage, seconds] : figures.stages) stages[stage] = quantiles(seconds);
  line["stage_seconds"] = stages;

  const double processors = std::thread::hardware_concurrency();
  line["cpu_seconds"] = figures.cpu;
  line["cpu_share_of_machine"] = figures.cpu_total / (processors * figures.seconds);
  if (pipeline.engine().device.kind == kernels::DeviceKind::cpu)
    add_products(line, pipeline.product_limit(), figures, figures.held(stride), held);
  if (held) line["cameras_held"] = *held;

  double null_decode = 0;
  for (int i = 0; i < figures.cameras; ++i)
    null_decode += costs_[static_cast<std::size_t>(i) % costs_.size()].null_decode;
  const double decode = figures.cpu.contains("decode") ? figures.cpu.at("decode") : 0;
  line["decode_over_null_decode"] = decode / (null_decode * figures.seconds);
  line["tokens"] = figures.tokens;
  line["alerts"] = figures.alerts;
  line["resident_mib"] = static_cast<double>(figures.resident_bytes) / (1 << 20);
  line["most_resident_mib"] = static_cast<double>(figures.most_resident_bytes) / (1 << 20);
  line["load"] = figures.load;
  if (json_) {
    std::cout << line.dump() << std::endl;
  } else if (held) {
    print_text(line);
  }
}

}  // namespace vigil::services
