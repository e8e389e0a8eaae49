// A window's pages on their way from the device that has asked it to the one that generates: straight from
// the one to the other (what `decode_device` does), and by way of the host's memory (what goes to another
// node's; the wire between is not in it: loadtest/bulk). A JSON object a line: milliseconds for one window.
//
//   bench_pages [DEVICE] [OTHER] [TOKENS] [LAYERS] [KV_HEADS] [HEAD_DIM]
//   (DEVICE, OTHER: cpu, cuda:0, cuda:1; the numbers: of a window, and of the model, here at the 7B shape)
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kv/page_store.h"
#include "engine/run/device.h"
#include "loadtest/engine/median.h"

namespace {

using namespace vigil;

struct End {
  End(const std::string& name, const kv::PageLayout& layout, std::int64_t pages)
      : stream(run::make_streams(run::parse_device(name), 0).front()), store(stream, layout, pages) {}
  kernels::Stream stream;
  kv::PageStore store;
};

void print(const char* way, const std::string& from, const std::string& to, std::int64_t pages,
           std::size_t bytes, double milliseconds) {
  std::printf(
      "{\"bench\": \"pages\", \"way\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"pages\": %lld, \"bytes\": "
      "%zu, "
      "\"ms\": %.3f, \"gb_per_s\": %.1f}\n",
      way, from.c_str(), to.c_str(), static_cast<long long>(pages), bytes, milliseconds,
      static_cast<double>(bytes) / 1e6 / milliseconds);
}

void run_all(const std::string& from, const std::string& to, std::int64_t tokens,
             const kv::PageLayout& layout) {
  const std::int64_t pages = (tokens + layout.page_tokens - 1) / layout.page_tokens;
  const auto page = static_cast<std::size_t>(layout.page_bytes());
  const std::size_t bytes = page * static_cast<std::size_t>(pages);
  const End here(from, layout, pages), there(to, layout, pages);
  const bool is_open = kernels::share_memory(here.stream, there.stream);
  std::vector<std::byte> host(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) host[i] = static_cast<std::byte>(i * 2654435761U >> 24U);
  const auto each = [&](const auto& copy) {
    for (std::int64_t i = 0; i < pages; ++i)
      copy(static_cast<kv::PageId>(i), static_cast<std::size_t>(i) * page);
  };
  const auto wait = [&] {
    here.stream.synchronize();
    there.stream.synchronize();
  };
  each([&](kv::PageId i, std::size_t at) {
    kernels::upload(here.stream, here.store.page(i), host.data() + at, page);
  });
  wait();
  const auto check = [&] {
    each([&](kv::PageId i, std::size_t at) {
      kernels::download(there.stream, back.data() + at, there.store.page(i), page);
    });
    if (std::memcmp(back.data(), host.data(), bytes) != 0) throw std::runtime_error("other bytes have come");
  };

  const double straight = median_ms(wait, [&] {
    each([&](kv::PageId i, std::size_t) {
      kernels::copy(there.stream, there.store.page(i), here.store.page(i), page);
    });
    there.stream.synchronize();
  });
  check();
  print(is_open ? "straight" : "straight, by way of the driver", from, to, pages, bytes, straight);

  const double off = median_ms(wait, [&] {
    each([&](kv::PageId i, std::size_t at) {
      kernels::download(here.stream, back.data() + at, here.store.page(i), page);
    });
  });
  print("to the host", from, "host", pages, bytes, off);
  const double on = median_ms(wait, [&] {
    each([&](kv::PageId i, std::size_t at) {
      kernels::upload(there.stream, there.store.page(i), back.data() + at, page);
    });
    there.stream.synchronize();
  });
  check();
  print("from the host", "host", to, pages, bytes, on);
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i, const char* other) { return std::string(argc > i ? argv[i] : other); };
  const auto number = [&](int i, int other) { return argc > i ? std::atoi(argv[i]) : other; };
  try {
    run_all(word(1, "cuda:0"), word(2, "cuda:1"), number(3, 2048),
            {.layers = number(4, 28),
             .kv_heads = number(5, 4),
             .head_dim = number(6, 128),
             .dtype = kernels::DType::bf16});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_pages: %s\n", error.what());
    return 1;
  }
  return 0;
}
