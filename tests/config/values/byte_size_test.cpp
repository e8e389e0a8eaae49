#include "config/values/byte_size.h"

#include <gtest/gtest.h>

namespace vigil::config {
namespace {

TEST(ByteSize, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_byte_size("0B"), ByteSize{0});
  EXPECT_EQ(parse_byte_size("512B"), ByteSize{512});
  EXPECT_EQ(parse_byte_size("1KiB"), ByteSize{1024});
  EXPECT_EQ(parse_byte_size("1kB"), ByteSize{1000});
  EXPECT_EQ(parse_byte_size("64MiB"), mebibytes(64));
  EXPECT_EQ(parse_byte_size("1.5GiB"), mebibytes(1536));
  EXPECT_EQ(parse_byte_size("500GB"), ByteSize{500'000'000'000});
  EXPECT_EQ(parse_byte_size("2TiB"), gibibytes(2048));
  EXPECT_EQ(parse_byte_size("1TB"), ByteSize{1'000'000'000'000});
}

TEST(ByteSize, RefusesEverythingElse) {
  for (const char* text :
       {"", "B", "5", "5 GiB", "-5GiB", "-0B", "5gib", "5G", "5KB", "1e3B", "infB", "nanB", "5B ", " 5B",
        "1GiB1MiB", "2000TiB", "99999999999999999999999TB", "0x10B", "1,5GB"}) {
    EXPECT_EQ(parse_byte_size(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ByteSize, PrintsWhatItReadsBack) {
  for (const std::uint64_t bytes :
       {0ULL, 1ULL, 1000ULL, 1024ULL, 1'500'000ULL, 1ULL << 30, 3ULL << 39, 999'999'999'999ULL})
    EXPECT_EQ(parse_byte_size(format_byte_size({bytes})), ByteSize{bytes}) << bytes;
  EXPECT_EQ(format_byte_size(gibibytes(10)), "10GiB");
  EXPECT_EQ(format_byte_size(mebibytes(64)), "64MiB");
  EXPECT_EQ(format_byte_size({500'000'000'000}), "500GB");
  EXPECT_EQ(format_byte_size({1234}), "1234B");
}

}  // namespace
}  // namespace vigil::config
