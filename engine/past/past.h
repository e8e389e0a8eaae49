// What of a sequence has left its pages and can still be attended to: the past of one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kv/page_store.h"
#include "engine/kv/retrieval/hc_table.h"
#include "engine/kv/retrieval/retriever.h"
#include "engine/model/files/config.h"
#include "engine/past/past_options.h"
#include "engine/past/slab_room.h"
#include "kernels/device/buffer.h"
#include "kernels/device/host_buffer.h"
#include "kernels/fetch_clusters/fetch_clusters.h"
#include "kernels/fetch_clusters/pack_clusters.h"
#include "kernels/rope/rope.h"

namespace vigil::past {

/// The keys and values of a sequence's past in one part of the model (some KV heads of all layers), in the
/// memory of the host, and which of them a layer's queries need.
///
/// Patches form blocks, and tokens form clusters within a block. WiCSum sees the clusters of all blocks, by
/// layer. In the host's memory a cluster of a block is one piece (kernels::ClusterPieces): contiguous. While
/// its block is open, clusters grow: then all of the block is laid anew, out of a copy of its keys and values
/// on the device, before it is asked. So a patch is packed again as often as somebody asks until its block is
/// full, at most block_patches times, and the device keeps one block per stream; a block that is closed is
/// never written again, and nothing of it is rounded twice. With blocks clusters are smaller than without:
/// what stays the same for longer than a block begins a cluster in each. What is forgotten is the oldest
/// block, whole: its clusters are the first of each layer, and those of the others move up.
///
/// A part that has some of the KV heads hashes those: its clusters are others than those of the whole. On one
/// device; in each call a stream that follows those of the calls before. Its memory may be written until what
/// was submitted is done: whoever destroys it has waited. Not thread-safe. On a GPU, asking waits for nothing
/// (but for controls); appending and laying wait for the device.
class Past {
 public:
  /// `layout`: of the part's pages, f32 or bf16. Throws std::invalid_argument for a method that there is not,
  /// settings that no table can have, and no room; std::bad_alloc.
  Past(const kernels::Stream& stream, const model::TextConfig& text, const kv::PageLayout& layout,
       const PastOptions& options);

  /// The next patch, whose keys and values lie in these slots. times: of each token, its position on the
  /// axes of time. Throws std::invalid_argument for as many times as there are not slots; and, where a block
  /// is complete, as `lay`: then it was not appended. std::bad_alloc and DeviceError where memory is not to
  /// be had.
  void append(kernels::Stream& stream, const kv::PageStore& pages, std::span<const std::int32_t> slots,
              std::span<const std::int32_t> times);

  /// Lays what was appended since. Whoever asks has called it before. Throws std::invalid_argument for an
  /// open block that has no room by itself, which is gone then, std::logic_error where a control would have
  /// to forget, and std::bad_alloc and DeviceError where memory is not to be had.
  void lay(kernels::Stream& stream);

  /// The oldest block goes, the open one too. Throws std::logic_error for controls, which cannot.
  void forget_block(const kernels::Stream& stream);

  /// Of each block, the oldest first, by how much its keys are later in time than they were computed, from
  /// now on: so that stretches of the past lie side by side. Throws std::invalid_argument for another number
  /// of them than there are blocks, and std::logic_error for controls.
  void turn(kernels::Stream& stream, std::span<const std::int32_t> by);

  /// Its bytes may be so many from now on; below one: one. Where they are more, its oldest blocks go, for
  /// which it waits for the device; what stays is not moved, and is to be laid again: then is seen whether
  /// the open block has room by itself. Throws std::logic_error where a control would have to forget.
  void resize(const kernels::Stream& stream, std::int64_t host_bytes);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// The patches that each block has, the oldest first.
  std::vector<int> patches() const;
  const PastOptions& options() const { return options_; }
  /// What it takes of the host's memory, and of the device's.
  std::int64_t host_bytes() const { return room_.bytes(); }
  std::int64_t device_bytes() const;
  /// Clusters of a layer (of a control: tokens) that are laid.
  std::int64_t units(int layer) const {
    return static_cast<std::int64_t>(layers_[static_cast<std::size_t>(layer)].counts.size());
  }

  /// What the queries of a layer have chosen of it, on the device: whoever asks has it, so that one choice
  /// may be brought while the next one is made. Void when the past changes: by `append`, `lay`, `turn`,
  /// `resize` and `forget_block`.
  struct Choice {
    /// [kv_heads, units_capacity()] clusters, in the order of their blocks; then [kv_heads] their number, and
    /// the tokens that they have.
    kernels::Buffer lists;
    /// [kv_heads, units_capacity()]: where each will lie.
    kernels::Buffer places;
    int layer = 0;
  };
  /// Chooses by these queries of a layer. q: [rows, heads * head_dim] of the cache's type, rotated; `now`:
  /// the time at which keys that stand still are to be seen. Throws as the kernels do.
  void choose(kernels::Stream& stream, int layer, kernels::ConstMatrix q, float scale, std::int32_t now,
              Choice& to);
  /// Of a choice, on the device.
  kernels::ClusterSelection selection(const Choice& choice) const;
  /// Where what was chosen will lie, and how much it is. `to` has keys, values, counts, the capacity and the
  /// type; its places are the choice's. What has no room in it is left out: the newest clusters.
  void place(kernels::Stream& stream, Choice& choice, kernels::FetchedLists to) const;
  /// Brings it; this may be on another stream, which follows the one of `place`.
  void bring(kernels::Stream& stream, const Choice& choice, kernels::FetchedLists to) const;
  std::int64_t units_capacity() const { return capacity_; }
  /// Tokens of each unit of a layer.
  std::span<const std::int32_t> counts(int layer) const {
    return layers_[static_cast<std::size_t>(layer)].counts;
  }

 private:
  struct Block {
    int patches = 0;
    std::int64_t tokens = 0;
    /// Where its clusters lie, one behind the other; nothing while nothing of it is laid.
    std::vector<SlabRoom::Range> ranges;
    /// In each layer.
    std::vector<std::int64_t> units;
    std::int32_t turned = 0;
    /// Rows of angles that its largest cluster takes.
    std::int32_t longest = 0;
  };
  /// What the device is told of a layer's clusters, block after block.
  struct Layer {
    std::vector<std::int32_t> counts;
    std::vector<std::byte*> begins;
  };
  /// The tokens of a layer of the open block, by cluster.
  struct Order {
    std::vector<std::int32_t> tokens, counts;
  };

  bool is_resv() const { return settings_.has_value(); }
  kernels::ClusterPieces pieces(int layer) const;
  void begin_block(const kernels::Stream& stream);
  /// The open block gets its clusters and its place, but for the packing.
  std::vector<Order> orders(kernels::Stream& stream) const;
  /// What a cluster takes in the host's memory.
  std::int64_t bytes_of(std::int32_t tokens) const;
  std::int64_t bytes_of(const std::vector<Order>& orders) const;
  /// Gives the open block's clusters their places: where each begins, layer after layer; nothing where there
  /// is no room for them by themselves.
  std::optional<std::vector<std::byte*>> give_room(const kernels::Stream& stream,
                                                   const std::vector<Order>& orders);
  /// Room of `least` bytes in one piece, or more of it up to `most`: in a slab that is there, in a new one,
  /// or where what is forgotten was; nothing if even that is too little.
  std::optional<SlabRoom::Range> make_room(const kernels::Stream& stream, std::int64_t least,
                                           std::int64_t most);
  void add_slab(const kernels::Stream& stream, std::int64_t bytes);
  /// Slabs that have nothing are given back, until it has no more than `most` bytes or none of them.
  void drop_slabs(const kernels::Stream& stream, std::int64_t most);
  /// A block's clusters are nowhere: as `drop_units`.
  void give_back(Block& block, bool first);
  void pack(kernels::Stream& stream, const std::vector<Order>& orders);
  void copy_sums(kernels::Stream& stream);
  /// Turns the sums of a block's keys on the device by a time.
  void turn_sums(kernels::Stream& stream, std::size_t block, std::int32_t by);
  /// Takes the first (or the last) block's clusters out of each layer's lists.
  void drop_units(const Block& block, bool first);
  void drop_open_block(kernels::Stream& stream);
  void reserve_units(const kernels::Stream& stream);
  void send(kernels::Stream& stream);
  /// cos and sin of turning by these times, one a row.
  void angles(kernels::Stream& stream, std::span<const std::int32_t> times, kernels::Buffer& to) const;
  void stage(kernels::Stream& stream, const kv::PageStore& pages, std::span<const std::int32_t> slots);
  kernels::ConstMatrix still(kernels::Stream& stream, kernels::ConstMatrix q, std::int32_t now);
  kernels::KvLayers staged() const;

  PastOptions options_;
  retrieval::KeyShape shape_;
  std::optional<retrieval::ResvSettings> settings_;
  model::TimeAxes time_axes_;
  kernels::DeviceArray<kernels::RopeFrequency> frequencies_;
  SlabRoom room_;
  /// By its numbers.
  std::map<std::int64_t, kernels::HostBytes> slabs_;
  /// Where the device counts the begins of clusters from: slabs have nothing to do with each other.
  std::byte* counted_from_ = nullptr;
  std::deque<Block> blocks_;
  std::int64_t tokens_ = 0;
  bool is_laid_ = true;
  /// Of a control, all; of ReSV, the open block's.
  retrieval::RetrieverPtr control_;
  std::unique_ptr<retrieval::HcTable> table_;
  /// Keys and values of the open block: [token][layer][key, value][kv_heads][head_dim] of the cache's type.
  kernels::Buffer staged_;
  std::int64_t staged_room_ = 0;
  std::vector<Layer> layers_;
  /// Clusters that each layer has room for on the device.
  std::int64_t capacity_ = 0;
  /// f32 [layers, capacity, cols]; [layers, capacity] of begins, counts and rows of angles; [layers].
  kernels::Buffer sums_, begins_, counts_, angle_rows_, clusters_;
  /// cos, then sin.
  kernels::Buffer turn_, turned_queries_, query_turn_;
  std::int64_t turn_rows_ = 0;
  kernels::Buffer keys_;
  kernels::DeviceArray<std::int32_t> slots_, rows_;
  /// Those of the open block, of all layers, as they were packed last.
  kernels::DeviceArray<kernels::ClusterToPack> packed_;
};

}  // namespace vigil::past
