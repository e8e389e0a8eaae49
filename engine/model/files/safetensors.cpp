#include "engine/model/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

/// The bound of the reference implementation: enough for half a million tensors.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr std::size_t kMostDimensions = 64;
static_assert(std::endian::native == std::endian::little, "safetensors are little-endian and read in place");

/// A read-only map of a whole file.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path) {
    // A pipe would be waited for until somebody writes to it.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) throw ModelError(path.string() + ": " + std::generic_category().message(errno));
    struct stat status {};
    const bool known = ::fstat(file, &status) == 0;
    const bool regular = known && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    const int reason = errno;
    ::close(file);
    if (known && !regular) throw ModelError(path.string() + ": not a regular file");
    if (!known || data_ == MAP_FAILED) {
      throw ModelError(path.string() + ": " + std::generic_category().message(reason));
    }
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), bytes_}; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

std::optional<kernels::DType> readable_type(std::string_view name) {
  if (name == "F32") return kernels::DType::f32;
  if (name == "BF16") return kernels::DType::bf16;
  if (name == "F16") return kernels::DType::f16;
  if (name == "I32") return kernels::DType::i32;
  if (name == "U8") return kernels::DType::u8;
  return std::nullopt;
}

struct ByteRange {
  std::uint64_t begin;
  std::uint64_t end;
  const std::string* tensor;
};

[[noreturn]] void fail(const std::string& file, std::string_view tensor, const std::string& reason) {
  throw ModelError(file + ": tensor " + in_quotes(tensor) + ": " + reason);
}

/// A list of numbers that are not negative; a range has two, a shape any count up to kMostDimensions.
std::vector<std::uint64_t> counts(const std::string& file, const std::string& tensor, const Json& entry,
                                  const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) fail(file, tensor, std::string(key) + " is not a list");
  if (found->size() > kMostDimensions) {
    fail(file, tensor, std::string(key) + " has " + std::to_string(found->size()) + " entries");
  }
  std::vector<std::uint64_t> values;
  for (const Json& item : *found) {
    if (!item.is_number_unsigned()) {
      fail(file, tensor, std::string(key) + " holds " + in_quotes(item.dump()) + ", not a count");
    }
    values.push_back(item.get<std::uint64_t>());
  }
  return values;
}

/// Elements of a shape, or nothing where the product leaves the range of int64 (no file is that long).
std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& shape) {
  std::uint64_t elements = 1;
  bool overflow = false;
  for (const std::uint64_t size : shape) {
    // A zero elsewhere in the shape must not hide a size that no std::int64_t holds.
    if (size > (std::uint64_t{1} << 62U)) return std::nullopt;
    overflow = overflow || __builtin_mul_overflow(elements, size, &elements);
  }
  if (std::find(shape.begin(), shape.end(), std::uint64_t{0}) != shape.end()) return 0;
  if (overflow || elements > (std::uint64_t{1} << 62U)) return std::nullopt;
  return elements;
}

}  // namespace

struct SafetensorsFile::State {
  std::string name;
  std::optional<Mapping> mapping;
  std::map<std::string, TensorView, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> other_types;
  std::map<std::string, std::string, std::less<>> metadata;

  void read(std::span<const std::byte> bytes);
  void read_metadata(const Json& entry);
  ByteRange read_tensor(const std::string& tensor, const Json& entry, std::span<const std::byte> data);
};

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    // The sizes before a zero may multiply beyond the range: the reader checks only that the product is
    // right.
    if (size == 0) return 0;
  }
  for (const std::int64_t size : shape) count *= size;
  return count;
}

SafetensorsFile::SafetensorsFile() : state_(std::make_unique<State>()) {}
SafetensorsFile::~SafetensorsFile() = default;

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->state_->name = path.string();
  file->state_->mapping.emplace(path);
  file->state_->read(file->state_->mapping->bytes());
  return file;
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                                              std::string name) {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->state_->name = std::move(name);
  file->state_->read(bytes);
  return file;
}

void SafetensorsFile::State::read(std::span<const std::byte> bytes) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    throw ModelError(name + ": " + std::to_string(bytes.size()) +
                     " bytes are too few for a safetensors file");
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  bytes = bytes.subspan(sizeof(header_bytes));
  if (header_bytes > kMostHeaderBytes || header_bytes > bytes.size()) {
    throw ModelError(name + ": the header claims " + std::to_string(header_bytes) + " bytes, the file has " +
                     std::to_string(bytes.size()) + " after the length (at most " +
                     std::to_string(kMostHeaderBytes) + " are accepted)");
  }
  const auto header_size = static_cast<std::size_t>(header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), header_size);
  const Json header = parse_json(text, name + ": header", {.depth = 8, .unique_keys = true});
  if (!header.is_object()) throw ModelError(name + ": header: an object was expected");

  std::vector<ByteRange> ranges;
  for (const auto& [tensor, entry] : header.items()) {
    if (tensor == "__metadata__") {
      read_metadata(entry);
    } else {
      ranges.push_back(read_tensor(tensor, entry, bytes.subspan(header_size)));
    }
  }
  std::erase_if(ranges, [](const ByteRange& range) { return range.begin == range.end; });
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) {
      fail(name, *ranges[i].tensor, "its bytes overlap those of " + in_quotes(*ranges[i - 1].tensor));
    }
  }
}

void SafetensorsFile::State::read_metadata(const Json& entry) {
  if (!entry.is_object()) throw ModelError(name + ": header: __metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      throw ModelError(name + ": header: __metadata__: " + in_quotes(key) + " is not a string");
    }
    metadata.emplace(key, value.get<std::string>());
  }
}

ByteRange SafetensorsFile::State::read_tensor(const std::string& tensor, const Json& entry,
                                              std::span<const std::byte> data) {
  if (!entry.is_object()) fail(name, tensor, "its entry is not an object");
  const auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string()) fail(name, tensor, "dtype is not a string");
  const auto shape = counts(name, tensor, entry, "shape");
  const auto offsets = counts(name, tensor, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) fail(name, tensor, "data_offsets is not a range");
  if (offsets[1] > data.size()) {
    fail(name, tensor,
         "its bytes end at " + std::to_string(offsets[1]) + ", the file's data at " +
             std::to_string(data.size()) + " (a truncated file?)");
  }
  const auto elements = product(shape);
  if (!elements) fail(name, tensor, "its shape has more elements than any file can hold");

  const auto& type_name = type->get_ref<const std::string&>();
  const auto dtype = readable_type(type_name);
  if (!dtype) {
    const auto [at, added] = other_types.emplace(tensor, type_name);
    return {offsets[0], offsets[1], &at->first};
  }
  const std::uint64_t stored = offsets[1] - offsets[0];
  const std::uint64_t size = kernels::size_of(*dtype);
  if (*elements > stored / size || *elements * size != stored) {
    fail(name, tensor,
         "its shape and type need " + std::to_string(*elements) + " times " + std::to_string(size) +
             " bytes, data_offsets give " + std::to_string(stored));
  }
  const std::byte* begin = data.data() + offsets[0];
  if (stored != 0 && reinterpret_cast<std::uintptr_t>(begin) % size != 0) {
    fail(name, tensor, "its bytes are not aligned to its elements of " + std::to_string(size) + " bytes");
  }
  const auto [at, added] = tensors.emplace(tensor, TensorView{begin, *dtype, {shape.begin(), shape.end()}});
  return {offsets[0], offsets[1], &at->first};
}

const std::string& SafetensorsFile::name() const {
  return state_->name;
}

const TensorView* SafetensorsFile::find(std::string_view tensor) const {
  if (const auto found = state_->tensors.find(tensor); found != state_->tensors.end()) return &found->second;
  if (const auto other = state_->other_types.find(tensor); other != state_->other_types.end()) {
    fail(state_->name, tensor, "the element type " + in_quotes(other->second) + " is not supported");
  }
  return nullptr;
}

const std::map<std::string, TensorView, std::less<>>& SafetensorsFile::tensors() const {
  return state_->tensors;
}

const std::map<std::string, std::string, std::less<>>& SafetensorsFile::other_types() const {
  return state_->other_types;
}

const std::map<std::string, std::string, std::less<>>& SafetensorsFile::metadata() const {
  return state_->metadata;
}

}  // namespace vigil::model
