#include "bench/cameras_report.h"

#include <cstddef>
#include <iomanip>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "bench/statistics.h"

namespace vigil::bench {
namespace {

using nlohmann::json;

json quantiles(const std::vector<double>& values) {
  return {{"p50", percentile(values, 0.5)}, {"p95", percentile(values, 0.95)}, {"count", values.size()}};
}

json common(const char* figure, const CamerasMachine& machine) {
  return {{"bench", "cameras"},
          {"figure", figure},
          {"machine", machine.name + ", " + std::to_string(machine.processors) + " processors"},
          {"commit", machine.commit}};
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

/// What share of the processors' time products took, and how many cameras products alone would allow.
void add_products(json& line, double limit, unsigned processors, const PipelineFigures& figures, bool held,
                  std::optional<int> most) {
  line["product_share_of_cpu"] = figures.cpu_products / figures.cpu_total;
  const double computing = figures.cpu.contains("device") ? figures.cpu.at("device") : 0;
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
  line["cameras_by_processor_time"] = processors / cpu_per_camera;
}

void print_text(const json& line, std::ostream& out) {
  const auto number = [](const json& value) { return rounded(value.get<double>()); };
  out << "\n"
      << line.at("figure").get<std::string>() << ": " << line.at("cameras") << " cameras, "
      << (line.at("held").get<bool>() ? "held" : "not held") << ", for " << number(line.at("seconds"))
      << " s\n";
  out << "  windows            " << line.at("windows").at("answered") << " answered of "
      << number(line.at("windows").at("due")) << " due, " << number(line.at("windows").at("lost"))
      << " lost (" << number(line.at("windows").at("overtaken")) << " overtaken, "
      << number(line.at("windows").at("failed")) << " failed, "
      << number(line.at("windows").at("out_of_memory")) << " out of memory); frames dropped "
      << line.at("dropped_frames").dump() << "; " << number(line.at("tokens")) << " tokens generated for "
      << line.at("stage_seconds").at("alerts").at("count") << " alerts\n";
  if (line.contains("fairness_least_over_median_per_minute"))
    out << "  fairness           the least answered camera has "
        << number(line.at("fairness_least_over_median_per_minute"))
        << " of the median within any minute (aim 0.5)\n";
  out << "  stage              p50 s     p95 s     count\n";
  const auto row = [&](const std::string& name, const json& values) {
    out << "    " << std::left << std::setw(17) << name << std::setw(10) << number(values.at("p50"))
        << std::setw(10) << number(values.at("p95")) << values.at("count") << "\n";
  };
  row("window latency", line.at("window_latency_seconds"));
  for (const auto& [stage, values] : line.at("stage_seconds").items()) row(stage, values);
  out << "  processor time     ";
  for (const auto& [stage, seconds] : line.at("cpu_seconds").items())
    out << stage << ' ' << number(seconds) << " s, ";
  out << "together " << number(line.at("cpu_share_of_machine")) << " of the machine\n";
  if (line.contains("product_share_of_cpu"))
    out << "  matrix products    " << number(line.at("product_share_of_cpu"))
        << " of all processor time (aim 0.7), " << number(line.at("product_share_of_device"))
        << " of that of the device\n";
  if (line.contains("limit_cameras"))
    out << "  limits             " << number(line.at("cameras_by_processor_time"))
        << " cameras would fill the processors, " << number(line.at("limit_cameras"))
        << " if they did nothing but products, at the rate of large ones\n";
  if (line.contains("floor"))
    out << "  floor              a window takes " << number(line.at("floor").at("window_seconds"))
        << " s of the device, the rest of its answers " << number(line.at("floor").at("answer_seconds"))
        << " s: so many cameras like the first take " << number(line.at("floor").at("device_share_together"))
        << " of it, or " << number(line.at("floor").at("device_share_one_by_one"))
        << " if every answer went alone\n";
  out << "  decoding           " << number(line.at("decode_over_null_decode"))
      << " times FFmpeg's null decode, in processor time (limit 1.15)\n";
  out << "  memory             " << number(line.at("resident_mib")) << " MiB resident, "
      << number(line.at("most_resident_mib")) << " at most\n";
  out << "  load               " << number(line.at("load")) << ", " << line.at("machine").get<std::string>()
      << ", commit " << line.at("commit").get<std::string>() << std::endl;
}

}  // namespace

double latency(const PipelineFigures& figures, double share) {
  std::vector<double> latencies;
  latencies.reserve(figures.windows.size());
  for (const auto& window : figures.windows) latencies.push_back(window.latency);
  return percentile(std::move(latencies), share);
}

void CamerasReport::read(const std::string& file, const ReadCost& cost, bool first, double load) {
  costs_.push_back(cost);
  if (!first) return;
  json line = common("read", machine_);
  line["file"] = file;
  line["cpu_of_real_time"] = cost.read;
  line["null_decode_cpu_of_real_time"] = cost.null_decode;
  line["over_null_decode"] = cost.read / cost.null_decode;
  line["limit"] = 1.15;
  line["load"] = load;
  if (json_) {
    out_ << line.dump() << std::endl;
  } else {
    out_ << "reading " << file << ": " << rounded(100 * cost.read) << " % of a processor in real time, "
         << rounded(cost.read / cost.null_decode) << " times FFmpeg's null decode (limit 1.15)\n";
  }
}

void CamerasReport::step(const CamerasRun& run, const char* figure, const PipelineFigures& figures,
                         std::optional<int> held) const {
  json line = common(figure, machine_);
  line["cameras"] = figures.cameras;
  line["held"] = figures.held(run.stride);
  line["seconds"] = figures.seconds;
  line["window"] = {{"length", run.length},
                    {"stride", run.stride},
                    {"fps", run.fps},
                    {"size", run.size},
                    {"rules", run.rules}};
  line["model"] = run.model;
  line["device"] = run.device;
  line["decode_device"] = run.decode_device;
  line["kv_tokens"] = run.kv_tokens;
  line["dtype"] = run.dtype;
  line["quantization"] = run.quantization;
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

  line["cpu_seconds"] = figures.cpu;
  line["cpu_share_of_machine"] = figures.cpu_total / (machine_.processors * figures.seconds);
  if (run.product_limit)
    add_products(line, *run.product_limit, machine_.processors, figures, figures.held(run.stride), held);
  if (run.floor)
    line["floor"] = {{"window_seconds", run.floor->window},
                     {"answer_seconds", run.floor->answer},
                     {"cameras", run.stride / run.floor->window},
                     {"device_share_together", run.floor->together(figures.cameras, run.stride)},
                     {"device_share_one_by_one", run.floor->one_by_one(figures.cameras, run.stride)}};
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
    out_ << line.dump() << std::endl;
  } else if (held) {
    print_text(line, out_);
  }
}

}  // namespace vigil::bench
