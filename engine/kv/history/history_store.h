// The seam behind which a camera's history is kept: pages of keys and values that have left its windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/history_error.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"

namespace vigil::history {

/// Bytes of the values of one part at most.
inline constexpr std::size_t kMostPartBytes = std::size_t{64} << 20U;

/// A value that is to be kept. The bytes are the caller's.
struct GivenValue {
  Layers layers;
  std::span<const std::byte> bytes;
};

struct GivenPage {
  PageInfo info;
  /// At least one, of ascending layers.
  std::vector<GivenValue> values;
};

/// What is written at once, and goes at once when its hour is over: some minutes of a camera within an hour.
struct GivenPart {
  CameraId camera;
  std::uint32_t hour = 0;
  /// At least one, of ascending numbers.
  std::vector<GivenPage> pages;
};

struct PutReport {
  std::size_t pages = 0;
  /// Their time was erased: nothing of them was kept.
  std::size_t erased = 0;

  friend bool operator==(const PutReport&, const PutReport&) = default;
};

/// Of a camera, one value of a page.
struct ValueName {
  std::uint64_t page = 0;
  Layers layers;

  friend bool operator==(const ValueName&, const ValueName&) = default;
};

/// absent: it was never there, or is there no longer; damaged: it should be there, and what is there is not
/// what was written, or cannot be read.
enum class Missing : std::uint8_t { no, absent, damaged };

/// A value as it was read, or why not. Move-only.
class Value {
 public:
  explicit Value(Missing missing) : missing_(missing) {}
  /// `bytes` lie within what `owner` keeps alive.
  Value(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  explicit operator bool() const { return missing_ == Missing::no; }
  Missing missing() const { return missing_; }
  /// Its payload, of a store on a disk at an address that is a multiple of 64; empty if it is missing.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Missing missing_ = Missing::no;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

struct KeptValue {
  Layers layers;
  /// Of its payload.
  std::uint32_t bytes = 0;
  /// It was read and found damaged, or its file is missing or too short.
  bool damaged = false;

  friend bool operator==(const KeptValue&, const KeptValue&) = default;
};

struct KeptPage {
  PageInfo info;
  std::uint32_t hour = 0;
  std::vector<KeptValue> values;

  friend bool operator==(const KeptPage&, const KeptPage&) = default;
};

struct CameraSummary {
  CameraId camera;
  std::uint64_t pages = 0;
  /// Of their values.
  std::uint64_t bytes = 0;
  /// From the first page to the last.
  WallRange wall;
  /// Ascending.
  std::vector<std::uint8_t> forms;
  /// Pages of which a value is known to be damaged, in the order of their numbers.
  std::vector<WallRange> gaps;

  friend bool operator==(const CameraSummary&, const CameraSummary&) = default;
};

/// Of a camera's hour, the pages of one form.
struct HourSummary {
  CameraId camera;
  std::uint32_t hour = 0;
  std::uint8_t form = 0;
  std::uint64_t pages = 0;
  /// Of their values.
  std::uint64_t bytes = 0;
  /// From the first page to the last.
  WallRange wall;
  /// The lowest number.
  std::uint64_t first_page = 0;

  friend bool operator==(const HourSummary&, const HourSummary&) = default;
};

struct VerifyReport {
  /// Pages of which all values could be read, and others.
  std::uint64_t whole = 0;
  std::uint64_t damaged = 0;

  friend bool operator==(const VerifyReport&, const VerifyReport&) = default;
};

/// What nobody is to see any more. It holds from when `erase` returns, also for pages that come later, until
/// `forget_erasure`.
struct Erasure {
  std::uint64_t id = 0;
  CameraId camera;
  WallRange wall;
  /// Of what was there, no byte is left.
  bool finished = false;

  friend bool operator==(const Erasure&, const Erasure&) = default;
};

/// Why nothing was kept of some time: a number that is the caller's to give a meaning.
struct Note {
  CameraId camera;
  WallRange wall;
  std::uint8_t why = 0;

  friend bool operator==(const Note&, const Note&) = default;
};

/// Hours of a camera before this one are over: all that is there, or pages of one form alone.
struct Expiry {
  CameraId camera;
  std::uint32_t before_hour = 0;
  std::optional<std::uint8_t> form = std::nullopt;
  std::uint32_t from_hour = 0;
  /// What is known of it from then on, in the place of its notes.
  std::optional<Note> note = std::nullopt;

  bool covers(std::uint32_t hour, std::uint8_t of_form) const {
    return from_hour <= hour && hour < before_hour && (!form || *form == of_form);
  }
  friend bool operator==(const Expiry&, const Expiry&) = default;
};

/// Of a camera at most: those that end first are forgotten first.
inline constexpr std::size_t kMostNotes = 1024;

struct Removed {
  std::size_t pages = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Removed&, const Removed&) = default;
};

/// Blocking and thread-safe: reads go on beside everything else; what changes something waits for each other.
/// Calls throw HistoryError when the disk does not do what it should, after which nothing of what was asked
/// counts, and std::invalid_argument for what makes no sense.
class HistoryStore {
 public:
  virtual ~HistoryStore() = default;

  /// When it returns, all of the part lies on the disk, but for pages whose time meets an erasure. A page's
  /// number is new for its camera.
  virtual PutReport put(const GivenPart& part) = 0;

  /// One result a name, in order. What is damaged keeps nothing else from being read.
  virtual std::vector<Value> read(const CameraId& camera, std::span<const ValueName> names) const = 0;

  /// Pages whose time meets this range, in the order of their numbers.
  virtual std::vector<KeptPage> pages(const CameraId& camera, const WallRange& wall) const = 0;
  /// The highest number that was ever kept of this camera; 0 if there is none. It outlives the pages.
  virtual std::uint64_t last_page(const CameraId& camera) const = 0;

  /// The first stage: when it returns, it lies on the disk that pages which meet this range are gone, whole.
  /// Returns its id.
  virtual std::uint64_t erase(const CameraId& camera, const WallRange& wall) = 0;
  /// The second stage, for all erasures that are not finished: afterwards no byte of their pages is in a file
  /// of the store, nor what the index said of them. (What the file system or the disk itself keep of a
  /// deleted file is not overwritten: of pages that were encrypted, that is of no use without their key.)
  virtual Removed finish_erasures() = 0;
  /// By id. Times stay known until they are forgotten.
  virtual std::vector<Erasure> erasures() const = 0;
  /// No page of that time comes any more. With `why`, a note of that reason is what is known of it from then
  /// on. Throws std::invalid_argument for one that is not finished, or not there.
  virtual void forget_erasure(std::uint64_t id, std::optional<std::uint8_t> why) = 0;

  /// What these cover goes, and with the last part of an hour the key that it was encrypted by. Parts go
  /// whole: one of several forms stays until all of them are over at once. Their notes come with that.
  virtual Removed retire(std::span<const Expiry> expiries) = 0;

  /// When it returns, these lie on the disk, together. Those of a reason that meet or follow one another
  /// become one. An erasure takes notes of its range along, also those that come later until it is forgotten;
  /// and hours that are over theirs, unless it is for one form. They are in the index alone: whoever loses
  /// that loses them.
  virtual void note(std::span<const Note> notes) = 0;
  /// Those that meet this range, ascending by their beginning, then by the reason.
  virtual std::vector<Note> notes(const CameraId& camera, const WallRange& wall) const = 0;

  /// Cameras that have pages, in the order of their names.
  virtual std::vector<CameraSummary> list() const = 0;
  /// Of all cameras, or of one; ascending by camera, hour and form. What it costs goes by the hours that
  /// there are, and not by their pages.
  virtual std::vector<HourSummary> hours(const std::optional<CameraId>& camera) const = 0;
  /// Reads all pages, or those of one camera. Pages whose numbers, divided by `numbers_a_page` (1 or more),
  /// are the same are counted as one, which is damaged where one of them is.
  virtual VerifyReport verify(const std::optional<CameraId>& camera, std::uint64_t numbers_a_page) const = 0;
};

/// Forgets all when it goes.
std::unique_ptr<HistoryStore> make_memory_history_store();

struct HistoryOptions {
  /// With it, all is encrypted but names and hours; a folder that was begun without stays without.
  std::optional<SecretKey> master = std::nullopt;
  /// Files of parts that are kept open at most.
  std::size_t most_open_files = 128;
  /// Of the disk: what does not leave so many bytes free is refused.
  std::uintmax_t keep_free = std::uintmax_t{64} << 20U;
};

/// In this folder, which is made if it is missing; one process at a time has it. Completes what an erasure
/// that was interrupted had left; if the disk does not allow that, it opens, and the erasure is not finished.
/// Throws HistoryError, also for a master key that is not the one the folder was begun with.
std::unique_ptr<HistoryStore> open_history_store(const std::filesystem::path& folder,
                                                 const HistoryOptions& options = {});

/// What is wrong with a part, apart from what is kept already. For stores.
std::optional<std::string> fault_of(const GivenPart& part);

}  // namespace vigil::history
