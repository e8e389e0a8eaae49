#include "cluster/bulk/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <xxhash.h>
#if defined(__x86_64__)
// The same sums by the widest vectors that the processor has.
#include <xxh_x86dispatch.h>
#endif

namespace vigil::cluster {
namespace {

static_assert(std::endian::native == std::endian::little);

// "vigil bulk", and the version of what is written here.
constexpr std::uint32_t kMagic = 0x4b4c4256;
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kSumBytes = 8;
// Of a message and of a part, in the first frame.
constexpr std::size_t kMessageBytes = 16;
constexpr std::size_t kPartBytes = 16;
// In a part's size: it is a frame of its own.
constexpr std::uint64_t kOwnFrame = std::uint64_t{1} << 63;

enum class Kind : std::uint8_t { hello = 1, welcome, data, credit, alive, bye };

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

class Writer {
 public:
  explicit Writer(Kind kind, std::size_t room = 0) {
    text_.reserve(room + 64);
    put(kind);
  }

  template <class T>
  void put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text) { text_.append(text); }
  void put_name(std::string_view name) {
    put(static_cast<std::uint8_t>(name.size()));
    put_text(name);
  }

  std::size_t size() const { return text_.size(); }

  Bytes sealed() && {
    put(sum_of(std::as_bytes(std::span(text_))));
    return Bytes(std::move(text_));
  }

 private:
  std::string text_;
};

/// Reads what is there; `failed` once that was too little.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <class T>
  T get() {
    const std::string_view bytes = get_text(sizeof(T));
    std::array<char, sizeof(T)> value{};
    if (bytes.size() == value.size()) std::copy(bytes.begin(), bytes.end(), value.begin());
    return std::bit_cast<T>(value);
  }
  std::string_view get_text(std::uint64_t size) {
    if (size > text_.size()) {
      failed_ = true;
      text_ = {};
    }
    const std::string_view result = text_.substr(0, failed_ ? 0 : size);
    text_.remove_prefix(result.size());
    return result;
  }
  std::string get_name() { return std::string(get_text(get<std::uint8_t>())); }

  std::size_t left() const { return text_.size(); }
  bool failed() const { return failed_; }
  bool whole() const { return !failed_ && text_.empty(); }

 private:
  std::string_view text_;
  bool failed_ = false;
};

using Decoded = std::variant<BulkParcel, BulkEnd>;

Decoded decode_hello(Reader& in) {
  BulkHello hello;
  const bool known = in.get<std::uint32_t>() == kMagic && in.get<std::uint16_t>() == kVersion;
  if (!known) return BulkEnd::protocol;
  hello.checksums = in.get<std::uint8_t>() != 0;
  hello.from = in.get_name();
  hello.to = in.get_name();
  hello.incarnation = in.get<std::uint64_t>();
  hello.grant = {in.get<std::uint64_t>(), in.get<std::uint64_t>()};
  hello.limits.message = in.get<std::uint64_t>();
  hello.limits.header = in.get<std::uint64_t>();
  hello.limits.parts = in.get<std::uint32_t>();
  if (!in.whole()) return BulkEnd::protocol;
  return hello;
}

Decoded decode_welcome(Reader& in) {
  BulkWelcome welcome;
  welcome.incarnation = in.get<std::uint64_t>();
  welcome.number = in.get<std::uint64_t>();
  if (!in.whole()) return BulkEnd::protocol;
  return welcome;
}

Decoded decode_credit(Reader& in) {
  BulkCredit credit;
  credit.more = {in.get<std::uint64_t>(), in.get<std::uint64_t>()};
  const auto count = in.get<std::uint16_t>();
  if (in.left() != count * sizeof(std::uint64_t)) return BulkEnd::protocol;
  credit.numbers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) credit.numbers.push_back(in.get<std::uint64_t>());
  return credit;
}

Decoded decode_bye(Reader& in) {
  const auto why = in.get<std::uint8_t>();
  if (!in.whole() || why >= kBulkEnds.size()) return BulkEnd::protocol;
  return BulkBye{static_cast<BulkEnd>(why)};
}

/// The messages of a parcel, one after the other.
class DataReader {
 public:
  DataReader(Reader& in, const Frames& frames, const BulkLimits& limits)
      : in_(in), frames_(frames), limits_(limits) {}

  Decoded read() {
    const bool summed = in_.get<std::uint8_t>() != 0;
    const auto count = in_.get<std::uint16_t>();
    BulkData data;
    for (std::size_t i = 0; i < count; ++i) {
      BulkNumbered message;
      if (const auto wrong = read_message(message, summed)) return *wrong;
      data.messages.push_back(std::move(message));
    }
    if (!in_.whole() || frame_ != frames_.size() || count == 0) return BulkEnd::protocol;
    return data;
  }

 private:
  std::optional<BulkEnd> read_message(BulkNumbered& message, bool summed) {
    message.number = in_.get<std::uint64_t>();
    const auto header = in_.get<std::uint32_t>();
    const auto parts = in_.get<std::uint32_t>();
    if (header > limits_.header || parts > limits_.parts) return BulkEnd::limits;
    if (in_.left() / kPartBytes < parts) return BulkEnd::protocol;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;
    sizes.reserve(parts);
    std::uint64_t bytes = header;
    for (std::size_t i = 0; i < parts; ++i) {
      const auto size = in_.get<std::uint64_t>();
      sizes.emplace_back(size, in_.get<std::uint64_t>());
      // Each is below 2^63.
      if ((size & ~kOwnFrame) > limits_.message) return BulkEnd::limits;
      bytes += size & ~kOwnFrame;
      if (bytes > limits_.message) return BulkEnd::limits;
    }
    message.message.header = std::string(in_.get_text(header));
    message.message.parts.reserve(parts);
    for (const auto& [size, sum] : sizes) {
      if ((size & kOwnFrame) == 0) {
        const std::string_view text = in_.get_text(size);
        if (in_.failed()) return BulkEnd::protocol;
        message.message.parts.push_back(
            frames_[0].part(static_cast<std::size_t>(text.data() - frames_[0].text().data()), text.size()));
        continue;
      }
      if (frame_ == frames_.size() || frames_[frame_].size() != (size & ~kOwnFrame)) return BulkEnd::protocol;
      if (summed && sum_of(frames_[frame_].span()) != sum) return BulkEnd::checksum;
      message.message.parts.push_back(frames_[frame_++]);
    }
    return in_.failed() ? std::optional(BulkEnd::protocol) : std::nullopt;
  }

  Reader& in_;
  const Frames& frames_;
  const BulkLimits& limits_;
  std::size_t frame_ = 1;
};

bool is_small(const Bytes& part) {
  return part.size() <= kSmallPart;
}

/// What a message adds to the first frame.
std::size_t bytes_of(const BulkMessage& message) {
  std::size_t sum = kMessageBytes + message.header.size() + message.parts.size() * kPartBytes;
  for (const Bytes& part : message.parts) sum += is_small(part) ? part.size() : 0;
  return sum;
}

void write_message(Writer& out, const BulkNumbered& numbered, Frames& frames, bool checksums) {
  const BulkMessage& message = numbered.message;
  out.put(numbered.number);
  out.put(static_cast<std::uint32_t>(message.header.size()));
  out.put(static_cast<std::uint32_t>(message.parts.size()));
  for (const Bytes& part : message.parts) {
    const bool small = is_small(part);
    out.put(small ? part.size() : part.size() | kOwnFrame);
    out.put(small || !checksums ? std::uint64_t{0} : sum_of(part.span()));
    if (!small) frames.push_back(part);
  }
  out.put_text(message.header);
  for (const Bytes& part : message.parts) {
    if (is_small(part)) out.put_text(part.text());
  }
}

}  // namespace

std::uint64_t most_bytes_of_first_frame(const BulkLimits& limits) {
  // The last that goes together with others may be as large as any.
  const std::uint64_t parts = limits.parts;
  return 64 + kTogether + kMessageBytes + limits.header + parts * kPartBytes +
         std::min(limits.message, parts * kSmallPart);
}

Frames encode(const BulkHello& hello) {
  Writer out(Kind::hello);
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<std::uint8_t>(hello.checksums));
  out.put_name(hello.from);
  out.put_name(hello.to);
  out.put(hello.incarnation);
  out.put(hello.grant.bytes);
  out.put(hello.grant.messages);
  out.put(hello.limits.message);
  out.put(hello.limits.header);
  out.put(hello.limits.parts);
  return {std::move(out).sealed()};
}

Frames encode(const BulkWelcome& welcome) {
  Writer out(Kind::welcome);
  out.put(welcome.incarnation);
  out.put(welcome.number);
  return {std::move(out).sealed()};
}

Frames encode(const BulkCredit& credit) {
  Writer out(Kind::credit);
  out.put(credit.more.bytes);
  out.put(credit.more.messages);
  out.put(static_cast<std::uint16_t>(credit.numbers.size()));
  for (const std::uint64_t number : credit.numbers) out.put(number);
  return {std::move(out).sealed()};
}

Frames encode(const BulkAlive& /*alive*/) {
  return {Writer(Kind::alive).sealed()};
}

Frames encode(const BulkBye& bye) {
  Writer out(Kind::bye);
  out.put(bye.why);
  return {std::move(out).sealed()};
}

Frames encode_together(const std::vector<BulkNumbered>& messages, std::size_t& begin, bool checksums) {
  std::size_t end = begin;
  std::size_t first = 0;
  std::size_t large = 0;
  do {
    const BulkMessage& message = messages[end++].message;
    first += bytes_of(message);
    large += static_cast<std::size_t>(std::count_if(message.parts.begin(), message.parts.end(),
                                                    [](const Bytes& part) { return !is_small(part); }));
  } while (end < messages.size() && first < kTogether && large < kFramesTogether);
  Writer out(Kind::data, first);
  out.put(static_cast<std::uint8_t>(checksums));
  out.put(static_cast<std::uint16_t>(end - begin));
  Frames frames(1);
  frames.reserve(1 + large);
  for (; begin < end; ++begin) write_message(out, messages[begin], frames, checksums);
  frames[0] = std::move(out).sealed();
  return frames;
}

std::variant<BulkParcel, BulkEnd> decode(const Frames& frames, const BulkLimits& limits, bool checksums) {
  if (frames.empty() || frames[0].size() < 1 + kSumBytes) return BulkEnd::protocol;
  const std::string_view text = frames[0].text();
  const std::string_view sealed = text.substr(0, text.size() - kSumBytes);
  Reader end(text.substr(sealed.size()));
  if (sum_of(std::as_bytes(std::span(sealed))) != end.get<std::uint64_t>()) return BulkEnd::checksum;
  Reader in(sealed);
  const Kind kind = in.get<Kind>();
  if (kind == Kind::data) {
    // A sender that saves itself the sums that we want sends something else.
    if (checksums && sealed.size() > 1 && sealed[1] == 0) return BulkEnd::protocol;
    return DataReader(in, frames, limits).read();
  }
  if (frames.size() != 1 || text.size() > kControlBytes) return BulkEnd::protocol;
  switch (kind) {
    case Kind::hello:
      return decode_hello(in);
    case Kind::welcome:
      return decode_welcome(in);
    case Kind::credit:
      return decode_credit(in);
    case Kind::bye:
      return decode_bye(in);
    case Kind::alive:
      if (in.whole()) return BulkAlive{};
      return BulkEnd::protocol;
    case Kind::data:
      break;
  }
  return BulkEnd::protocol;
}

}  // namespace vigil::cluster
