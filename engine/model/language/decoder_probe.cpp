// What looks at keys that are in the cache, and what turns them.
#include <stdexcept>
#include <vector>

#include "engine/model/language/decoder.h"
#include "kernels/gather/gather.h"
#include "kernels/paged_keys/paged_keys.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace vigil::model {

using kernels::AttentionSegment;
using kernels::DType;
using kernels::Matrix;

Decoder::Prepared Decoder::prepare_probe(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                                         const kv::PageStore& pages) const {
  if (layers_.size() < 2) throw std::invalid_argument("decoder: a model of one layer has no keys to compare");
  if (!pass.tokens.empty()) throw std::invalid_argument("decoder: a probe is of embeddings");
  const Prepared prepared = prepare(stream, workspace, pass, pages);
  Workspace::Probe& probe = workspace.probe;
  probe.segments.clear();
  std::vector<std::int32_t> slots;
  slots.reserve(pass.outputs.size());
  auto next = pass.outputs.begin();
  for (const AttentionSegment& segment : pass.segments) {
    const std::int64_t end = segment.first_row + static_cast<std::int64_t>(segment.own.size());
    const std::int64_t first = next == pass.outputs.end() || *next > end ? end : *next;
    for (std::int64_t row = first; row < end; ++row, ++next) {
      if (next == pass.outputs.end() || *next != row)
        throw std::invalid_argument("decoder: rows that are compared come before others");
      const auto own =
          static_cast<std::size_t>(segment.own[static_cast<std::size_t>(row - segment.first_row)]);
      slots.push_back(segment.keys[own]);
    }
    if (first > segment.first_row)
      probe.segments.push_back({segment.keys,
                                segment.own.first(static_cast<std::size_t>(first - segment.first_row)),
                                segment.first_row});
  }
  if (next != pass.outputs.end())
    throw std::invalid_argument("decoder: rows that are compared are not there");
  probe.plan.assign(stream, probe.segments, pages.layer(0), part_.heads);
  probe.slots.clear();
  probe.slots.add(std::span<const std::int32_t>(slots));
  probe.slots.send(stream);
  return prepared;
}

const float* Decoder::probe(kernels::Stream& stream, Workspace& workspace, const Prepared& pass,
                            const kv::PageStore& pages) const {
  const std::int64_t pairs = config_.head_dim / 2;
  const std::int64_t q_width = part_.queries.count;
  const std::int64_t kv_width = part_.keys.count;
  const std::int64_t wanted = pass.wanted;
  const Layer& first = layers_[0];
  Matrix hidden = kernels::dense(pass.hidden, DType::f32, pass.rows, config_.hidden_size);
  Matrix cos = room(stream, workspace.cos, DType::f32, pass.rows, pairs);
  Matrix sin = room(stream, workspace.sin, DType::f32, pass.rows, pairs);
  kernels::rope_angles(stream, workspace.table.at<kernels::RopePosition>(1), pass.rows, frequencies_, pairs,
                       pass.angles, cos.row<float>(0), sin.row<float>(0));
  Matrix projected = room(stream, workspace.projected, compute(), pass.rows, q_width + 2 * kv_width);

  // Up to the last row that writes; what comes between, keys and values of rows that do not, is thrown away:
  // a hundredth of a layer, where picking these rows would be as much.
  if (const std::int64_t writers = workspace.probe.plan.rows(); writers > 0) {
    Matrix normed = normed_room(stream, workspace.normed, writers);
    kernels::rms_norm(stream, hidden.rows_from(0, writers), first.input_norm, config_.rms_norm_eps, normed);
    const Matrix of_writers = projected.rows_from(0, writers);
    first.attention.apply(stream, normed, of_writers, 1, 2);
    kernels::store_rotated(stream, of_writers.columns(0, 0), of_writers.columns(q_width, kv_width),
                           of_writers.columns(q_width + kv_width, kv_width), cos.row<float>(0),
                           sin.row<float>(0), workspace.probe.plan, pages.layer(0));
  }
  if (wanted == 0) return nullptr;

  if (wanted < pass.rows) {
    const auto keep = [&](Matrix& matrix, kernels::Buffer& buffer) {
      const Matrix to = room(stream, buffer, matrix.dtype, wanted, matrix.cols);
      kernels::gather_rows(stream, matrix, workspace.table.at<std::int32_t>(2), to);
      matrix = to;
    };
    keep(hidden, workspace.states);
    keep(cos, workspace.wanted_cos);
    keep(sin, workspace.wanted_sin);
    projected.rows = wanted;
  }
  const Matrix normed = normed_room(stream, workspace.wanted_normed, wanted);
  kernels::rms_norm(stream, hidden, first.input_norm, config_.rms_norm_eps, normed);
  const Matrix q = projected.columns(0, q_width);
  first.attention.apply(stream, normed, projected, 0, 1);
  kernels::rope(stream, q, config_.head_dim, cos.row<float>(0), sin.row<float>(0));
  attend_and_mix(stream, workspace, 0, *pass.attend, q, pages.layer(0),
                 wanted < pass.rows ? workspace.narrow.plan : workspace.plan,
                 room(stream, workspace.attended, compute(), wanted, q_width),
                 room(stream, workspace.inner, compute(), wanted, 2 * part_.inner.count), hidden, normed);

  const Matrix k = projected.columns(q_width, kv_width);
  layers_[1].attention.apply(stream, normed, projected, 1, 1);
  kernels::rope(stream, k, config_.head_dim, cos.row<float>(0), sin.row<float>(0));
  float* distances = room(stream, workspace.probe.distances, DType::f32, 1, wanted).row<float>(0);
  kernels::key_distances(stream, k, workspace.probe.slots.at<std::int32_t>(0), pages.layer(1), distances);
  return distances;
}

void Decoder::rotate_keys(kernels::Stream& stream, Workspace& workspace, std::span<const std::int32_t> slots,
                          std::span<const Position> by, const kv::PageStore& pages) const {
  if (slots.size() != by.size())
    throw std::invalid_argument("decoder: slots and differences of positions differ in number");
  if (slots.empty()) return;
  const auto count = static_cast<std::int64_t>(slots.size());
  const std::int64_t pairs = config_.head_dim / 2;
  std::vector<kernels::RopePosition> axes;
  axes.reserve(by.size());
  for (const Position& position : by) axes.push_back({position.t, position.h, position.w});
  kernels::DeviceTable& table = workspace.probe.slots;
  table.clear();
  table.add(slots);
  table.add(std::span<const kernels::RopePosition>(axes));
  table.send(stream);
  float* cos = room(stream, workspace.cos, DType::f32, count, pairs).row<float>(0);
  float* sin = room(stream, workspace.sin, DType::f32, count, pairs).row<float>(0);
  kernels::rope_angles(stream, table.at<kernels::RopePosition>(1), count, frequencies_, pairs,
                       kernels::RopeAngles::wide, cos, sin);
  for (int layer = 0; layer < pages.layout().layers; ++layer)
    kernels::rotate_keys(stream, table.at<std::int32_t>(0), count, cos, sin, pages.layer(layer));
}

}  // namespace vigil::model
