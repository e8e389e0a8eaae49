#include "bench/store_rates.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace vigil::bench {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::uint32_t kFirstHour = 495'994;
constexpr history::Layers kLayers{0, 6};

history::CameraId rated_camera() {
  return {"bench", "camera"};
}

/// Of a patch of a second, of which a third of 12 x 21 tokens is kept.
history::GivenPage page_of(std::uint64_t number, std::span<const std::byte> value) {
  history::GivenPage page;
  page.info.number = number;
  page.info.form = static_cast<std::uint8_t>(2);
  page.info.bytes = value.size();
  history::PatchInfo patch;
  patch.number = static_cast<std::int64_t>(number);
  patch.place = 2 * patch.number;
  patch.kept = base::GridMask::none(12, 21);
  for (std::int64_t cell = patch.number % 3; cell < patch.kept.cells(); cell += 3) patch.kept.add(cell);
  const std::int64_t from = kFirstHour * kHour + patch.number * kSecond;
  patch.wall = {from, from + kSecond - 1};
  patch.seconds = static_cast<double>(patch.number);
  page.info.tokens = static_cast<std::uint32_t>(patch.kept.count());
  page.info.patches.push_back(std::move(patch));
  page.values.push_back({kLayers, value});
  return page;
}

}  // namespace

std::vector<std::byte> random_bytes(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t eight = random();
    std::memcpy(result.data() + at, &eight, sizeof(eight));
  }
  return result;
}

double write_store(const DiskLayout& layout, std::span<const std::byte> value,
                   const std::optional<history::SecretKey>& master, const base::Clock& clock) {
  const auto store = history::open_history_store(layout.folder / "store", {.master = master});
  std::uint64_t number = 0;
  return rate_of(layout, clock, [&] {
    for (std::size_t part = 0; part < layout.files; ++part) {
      history::GivenPart given{rated_camera(), kFirstHour, {}};
      for (std::size_t i = 0; i < layout.values(); ++i) given.pages.push_back(page_of(++number, value));
      store->put(given);
    }
  });
}

double read_store(const DiskLayout& layout, int threads, const std::optional<history::SecretKey>& master,
                  const base::Clock& clock) {
  const auto store = history::open_history_store(layout.folder / "store", {.master = master});
  return read_rate(layout, threads, clock, [&](std::size_t part) {
    for (const std::size_t i : order_of(layout, part)) {
      const history::ValueName name{part * layout.values() + i + 1, kLayers};
      if (!store->read(rated_camera(), {&name, 1}).at(0))
        throw std::runtime_error("the history lost a value");
    }
  });
}

Figures store_rates(const StoreRatesOptions& options, const base::Clock& clock) {
  const DiskLayout layout{options.folder, options.value_bytes, std::size_t{64} << 20U, options.files};
  const std::vector<std::byte> value = random_bytes(options.value_bytes);
  const std::optional<history::SecretKey> master = history::SecretKey::random();
  Figures figures;
  const auto add = [&](const std::string& name, double rate) { figures.add(name, "B/s", rate); };
  for (int round = 0; round < options.rounds; ++round) {
    if (options.has_fio) add("write_fio", write_fio(layout));
    add("write_store", write_store(layout, value, std::nullopt, clock));
    add("write_plain", write_plain(layout, value, clock));
    for (const int count : options.threads) {
      const std::string by = "_" + std::to_string(count);
      if (options.has_fio) add("read_fio" + by, read_fio(layout, count));
      add("read_store" + by, read_store(layout, count, std::nullopt, clock));
      add("read_plain" + by, read_plain(layout, count, clock));
    }
    std::filesystem::remove_all(layout.folder / "store");
    add("write_sealed", write_store(layout, value, master, clock));
    for (const int count : options.threads)
      add("read_sealed_" + std::to_string(count), read_store(layout, count, master, clock));
    for (const auto& entry : std::filesystem::directory_iterator(options.folder))
      std::filesystem::remove_all(entry.path());
  }
  return figures;
}

}  // namespace vigil::bench
