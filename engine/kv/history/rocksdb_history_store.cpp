#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/durable.h"
#include "engine/kv/history/catalog.h"
#include "engine/kv/history/erasure_file.h"
#include "engine/kv/history/history_state.h"
#include "engine/kv/history/history_store.h"
#include "engine/kv/history/index_database.h"
#include "engine/kv/history/part_file.h"
#include "engine/kv/history/part_maker.h"
#include "engine/kv/history/part_reader.h"

namespace vigil::history {
namespace {

namespace fs = std::filesystem;

class RocksdbHistoryStore final : public HistoryStore {
 public:
  RocksdbHistoryStore(const fs::path& path, const HistoryOptions& options)
      : folder_(make_history_folder(path)),
        lock_(lock_history(folder_)),
        options_(options),
        files_(folder_.parts(), options.most_open_files) {
    open();
    try {
      const std::lock_guard lock(changing_);
      finish_all();
    } catch (const HistoryError&) {
      // They hold, and are not finished.
    } catch (const base::FileError&) {
    }
  }

  PutReport put(const GivenPart& part) override {
    if (const auto fault = fault_of(part)) throw std::invalid_argument("history: " + *fault);
    return changing([&] { return put_part(part); });
  }

  std::vector<Value> read(const CameraId& camera, std::span<const ValueName> names) const override {
    std::vector<Value> values;
    values.reserve(names.size());
    for (const ValueName& name : names) values.push_back(read_one(camera, name));
    return values;
  }

  std::vector<KeptPage> pages(const CameraId& camera, const WallRange& wall) const override {
    const std::shared_lock lock(looking_);
    return state_.catalog.pages(camera, wall, damage_);
  }

  std::uint64_t last_page(const CameraId& camera) const override {
    const std::shared_lock lock(looking_);
    const auto last = state_.last_pages.find(camera);
    return last == state_.last_pages.end() ? 0 : last->second;
  }

  std::uint64_t erase(const CameraId& camera, const WallRange& wall) override {
    if (wall.to < wall.from) throw std::invalid_argument("history: a range that ends before it begins");
    return changing([&] {
      const Erasure erasure{state_.next_erasure, camera, wall, false};
      auto erasures = state_.catalog.erasures();
      erasures.emplace(erasure.id, erasure);
      IndexBatch batch(*index_);
      batch.put_erasure(erasure);
      ++state_.next_erasure;
      settle_erasures(std::move(erasures), NoteChanges(state_.notes), batch);
      return erasure.id;
    });
  }

  Removed finish_erasures() override {
    return changing([&] { return finish_all(); });
  }

  std::vector<Erasure> erasures() const override {
    const std::shared_lock lock(looking_);
    std::vector<Erasure> result;
    for (const auto& [id, erasure] : state_.catalog.erasures()) result.push_back(erasure);
    return result;
  }

  void forget_erasure(std::uint64_t id, std::optional<std::uint8_t> why) override {
    changing([&] {
      auto erasures = state_.catalog.erasures();
      const auto entry = erasures.find(id);
      if (entry == erasures.end() || !entry->second.finished)
        throw std::invalid_argument("history: no such erasure that is finished");
      NoteChanges notes(state_.notes);
      if (why) notes.of(entry->second.camera).add({entry->second.wall, *why});
      erasures.erase(entry);
      IndexBatch batch(*index_);
      batch.remove_erasure(id);
      settle_erasures(std::move(erasures), std::move(notes), batch);
      scrub({});
      return 0;
    });
  }

  Removed retire(std::span<const Expiry> expiries) override {
    return changing([&] {
      Removed removed;
      IndexBatch batch(*index_);
      const std::vector<StoredPartPtr> gone = state_.catalog.over(expiries);
      for (const StoredPartPtr& part : gone) {
        removed.pages += part->pages.size();
        removed.bytes += part->bytes();
        batch.remove_part(part->key);
      }
      // A key is of use as long as one of its hour's parts is there.
      const std::vector<HourKey> hours = state_.catalog.hours_without(gone);
      for (const HourKey& hour : hours) batch.remove_key(hour);
      NoteChanges notes(state_.notes);
      notes.cut(expiries, state_.catalog.erasures());
      notes.put(batch, options_.master);
      if (batch.empty()) return removed;
      write(batch);
      {
        const std::unique_lock lock(looking_);
        std::move(notes).settle(state_.notes);
        for (const StoredPartPtr& part : gone) state_.catalog.remove(part->key);
      }
      for (const StoredPartPtr& part : gone) state_.removed.insert(part->key.part);
      for (const HourKey& hour : hours) state_.secrets.erase(hour);
      remove_files();
      if (options_.master && !hours.empty()) scrub({});
      return removed;
    });
  }

  void note(std::span<const Note> notes) override {
    check_notes(notes);
    changing([&] {
      NoteChanges changes(state_.notes);
      for (const Note& each : notes) changes.of(each.camera).add({each.wall, each.why});
      changes.cut(state_.catalog.erasures());
      IndexBatch batch(*index_);
      changes.put(batch, options_.master);
      if (batch.empty()) return 0;
      write(batch);
      const std::unique_lock lock(looking_);
      std::move(changes).settle(state_.notes);
      return 0;
    });
  }

  std::vector<Note> notes(const CameraId& camera, const WallRange& wall) const override {
    const std::shared_lock lock(looking_);
    return notes_of(state_.notes, camera, wall);
  }

  std::vector<CameraSummary> list() const override {
    const std::shared_lock lock(looking_);
    return state_.catalog.list(damage_);
  }

  std::vector<HourSummary> hours(const std::optional<CameraId>& camera) const override {
    const std::shared_lock lock(looking_);
    return state_.catalog.hours(camera);
  }

  VerifyReport verify(const std::optional<CameraId>& camera, std::uint64_t numbers_a_page) const override {
    VerifyReport report;
    std::vector<CameraId> cameras;
    {
      const std::shared_lock lock(looking_);
      cameras = camera ? std::vector{*camera} : state_.catalog.cameras();
    }
    for (const CameraId& each : cameras) {
      std::vector<std::pair<std::uint64_t, std::vector<EntryValue>>> pages;
      {
        const std::shared_lock lock(looking_);
        pages = state_.catalog.values(each);
      }
      std::map<std::uint64_t, bool> is_whole;
      for (const auto& [page, values] : pages) {
        bool whole = true;
        bool there = false;
        for (const EntryValue& of : values) {
          const Value value = read_one(each, {page, of.layers});
          whole = whole && value;
          there = there || value.missing() != Missing::absent;
        }
        // It may have gone meanwhile.
        if (!there) continue;
        bool& all = is_whole.try_emplace(page / numbers_a_page, true).first->second;
        all = all && whole;
      }
      for (const auto& [page, whole] : is_whole) ++(whole ? report.whole : report.damaged);
    }
    return report;
  }

 private:
  /// One change at a time, on an index that can be written to.
  template <class F>
  std::invoke_result_t<F&> changing(F change) {
    const std::lock_guard lock(changing_);
    try {
      if (failed_) open();
      if (!state_.removed.empty()) remove_files();
      return change();
    } catch (const base::FileError& error) {
      throw HistoryError("history " + std::string(error.what()));
    }
  }

  void open() {
    index_.reset();
    failed_ = true;
    try {
      OpenedHistory opened = open_history(folder_, files_, options_.master, refused_);
      index_ = std::move(opened.index);
      const std::unique_lock lock(looking_);
      state_ = std::move(opened.state);
    } catch (const base::FileError& error) {
      throw HistoryError("history " + std::string(error.what()));
    }
    failed_ = false;
    refused_.clear();
    remove_files();
  }

  void write(IndexBatch& batch) {
    try {
      index_->write(batch);
    } catch (const HistoryError&) {
      failed_ = true;
      throw;
    }
  }

  void scrub(const std::vector<CameraId>& cameras) {
    try {
      index_->scrub(cameras);
    } catch (const HistoryError&) {
      failed_ = true;
      throw;
    }
  }

  /// Of an hour that has none yet, a new one.
  PartSecret secret_of(const HourKey& hour) const {
    const auto known = state_.secrets.find(hour);
    return known != state_.secrets.end() ? known->second : new_secret(hour, options_.master);
  }

  PutReport put_part(const GivenPart& part) {
    PutReport report;
    std::vector<MadePage> pages;
    std::uint64_t bytes = 0;
    for (const GivenPage& page : part.pages) {
      if (state_.catalog.has(part.camera, page.info.number)) {
        throw std::invalid_argument("history: page " + std::to_string(page.info.number) +
                                    " is there already");
      }
      if (state_.catalog.is_erased(part.camera, wall_of(page.info))) {
        ++report.erased;
        continue;
      }
      MadePage& made = pages.emplace_back(MadePage{page.info, {}});
      for (const GivenValue& value : page.values) {
        made.values.push_back({value.layers, static_cast<std::uint32_t>(value.bytes.size()),
                               [value] { return Value(value.bytes, nullptr); }});
      }
      bytes += page.info.bytes;
    }
    report.pages = pages.size();
    if (pages.empty()) return report;
    check_space(folder_, bytes, options_.keep_free);
    const PartKey key{{part.camera, part.hour}, state_.next_part++};
    const PartSecret secret = secret_of(key.hour);
    // Until it counts.
    state_.removed.insert(key.part);
    const MadePart made = make_part(files_, buffer_, key, pages, {}, secret);
    const std::uint64_t last = std::max(last_page(part.camera), pages.back().info.number);
    IndexBatch batch(*index_);
    batch.put_part(key, made.encoded);
    if (secret.key) batch.put_key(key.hour, secret.wrapped);
    batch.put_last_page(part.camera, last);
    try {
      write(batch);
    } catch (const HistoryError&) {
      // Perhaps the index has it.
      refused_.insert(key.part);
      throw;
    }
    state_.removed.erase(key.part);
    if (secret.key) state_.secrets[key.hour] = secret;
    const std::unique_lock lock(looking_);
    state_.catalog.add(stored_part(key, made.entry, secret.key, made.file_bytes));
    state_.last_pages[part.camera] = last;
    return report;
  }

  Value read_one(const CameraId& camera, const ValueName& name) const {
    for (;;) {
      std::optional<Catalog::Place> place;
      {
        const std::shared_lock lock(looking_);
        place = state_.catalog.find(camera, name.page);
      }
      if (!place) return Value(Missing::absent);
      const auto& values = (*place)->values;
      const auto value = std::find_if(values.begin(), values.end(),
                                      [&](const EntryValue& each) { return each.layers == name.layers; });
      if (value == values.end()) return Value(Missing::absent);
      Value read = read_value(files_, *place->part, **place, *value);
      // It may have been erased meanwhile, or written again elsewhere.
      const std::shared_lock lock(looking_);
      const auto now = state_.catalog.find(camera, name.page);
      if (!now) return Value(Missing::absent);
      if (!read && now->part != place->part) continue;
      if (value->offset) damage_.set(place->part->key.part, *value->offset, !read);
      return read;
    }
  }

  // The file comes first: it is looked at where the index was lost.
  void settle_erasures(std::map<std::uint64_t, Erasure> erasures, NoteChanges notes, IndexBatch& batch) {
    notes.cut(erasures);
    notes.put(batch, options_.master);
    const std::map<std::uint64_t, Erasure> before = state_.catalog.erasures();
    write_erasures(folder_.erasures(), {state_.next_erasure, erasures});
    try {
      write(batch);
    } catch (const HistoryError&) {
      forgive([&] { write_erasures(folder_.erasures(), {state_.next_erasure, before}); });
      throw;
    }
    const std::unique_lock lock(looking_);
    state_.catalog.erasures() = std::move(erasures);
    std::move(notes).settle(state_.notes);
  }

  Removed finish_all() {
    std::set<CameraId> cameras;
    IndexBatch batch(*index_);
    auto erasures = state_.catalog.erasures();
    for (auto& [id, erasure] : erasures) {
      if (erasure.finished) continue;
      cameras.insert(erasure.camera);
      erasure.finished = true;
      batch.put_erasure(erasure);
    }
    Removed removed;
    if (cameras.empty()) return removed;
    for (const CameraId& camera : cameras) {
      std::set<std::uint32_t> hours;
      for (const StoredPartPtr& part : state_.catalog.parts(camera))
        if (state_.catalog.has_erased(*part)) hours.insert(part->key.hour.hour);
      for (const std::uint32_t hour : hours) erase_in({camera, hour}, removed);
    }
    remove_files();
    if (!state_.removed.empty()) {
      throw HistoryError("history " + folder_.path.string() +
                         ": an erasure is not finished: a file of a part cannot be removed");
    }
    scrub({cameras.begin(), cameras.end()});
    settle_erasures(std::move(erasures), NoteChanges(state_.notes), batch);
    return removed;
  }

  /// Writes what stays of an hour again: of parts that have erased pages; and, as the hour's key goes, of all
  /// that was encrypted by it.
  void erase_in(const HourKey& hour, Removed& removed) {
    const std::vector<StoredPartPtr> parts = state_.catalog.parts(hour);
    const PartSecret secret = new_secret(hour, options_.master);
    IndexBatch batch(*index_);
    std::vector<StoredPartPtr> gone;
    std::vector<StoredPartPtr> made;
    bool any_stays = false;
    Removed here;
    try {
      for (const StoredPartPtr& part : parts) {
        if (!secret.key && !state_.catalog.has_erased(*part)) continue;
        gone.push_back(part);
        batch.remove_part(part->key);
        for (const StoredPage& page : part->pages) {
          if (!state_.catalog.is_erased(hour.camera, page.wall)) continue;
          ++here.pages;
          here.bytes += page.bytes;
        }
        const std::vector<MadePage> pages = what_stays(part);
        if (pages.empty()) continue;
        any_stays = true;
        // It will have less than before, and may take what is kept free.
        check_space(folder_, part->bytes(), 0);
        const PartKey key{hour, state_.next_part++};
        state_.removed.insert(key.part);
        const MadePart next = make_part(files_, buffer_, key, pages, {part->key.part}, secret);
        made.push_back(stored_part(key, next.entry, secret.key, next.file_bytes));
        batch.put_part(key, next.encoded);
      }
      if (secret.key && any_stays) batch.put_key(hour, secret.wrapped);
      if (secret.key && !any_stays) batch.remove_key(hour);
      write(batch);
    } catch (...) {
      // If the index may have it, what is there says which of them count when it is opened again.
      if (!failed_) remove_files();
      throw;
    }
    {
      const std::unique_lock lock(looking_);
      for (const StoredPartPtr& part : gone) state_.catalog.remove(part->key);
      for (const StoredPartPtr& part : made) state_.catalog.add(part);
    }
    for (const StoredPartPtr& part : made) state_.removed.erase(part->key.part);
    for (const StoredPartPtr& part : gone) state_.removed.insert(part->key.part);
    if (secret.key && any_stays) state_.secrets[hour] = secret;
    if (!any_stays) state_.secrets.erase(hour);
    removed.pages += here.pages;
    removed.bytes += here.bytes;
  }

  std::vector<MadePage> what_stays(const StoredPartPtr& part) const {
    std::vector<MadePage> pages;
    for (const StoredPage& page : part->pages) {
      const bool is_erased = state_.catalog.is_erased(part->key.hour.camera, page.wall);
      auto info = is_erased ? std::nullopt : decode_page_info(page.info);
      if (!info) continue;
      MadePage& made = pages.emplace_back(MadePage{std::move(*info), {}});
      for (const EntryValue& value : page.values) {
        made.values.push_back({value.layers, value.bytes, [this, part, &page, value] {
                                 return read_value(files_, *part, page, value);
                               }});
      }
    }
    return pages;
  }

  template <class F>
  void forgive(F attempt) const {
    try {
      attempt();
    } catch (const base::FileError&) {
      // The disk refuses everything; the next start looks at what is there.
    }
  }

  /// Those of parts that count no more; what cannot be removed now is tried again later.
  void remove_files() {
    std::vector<std::uint64_t> gone;
    for (const std::uint64_t part : state_.removed)
      forgive([&] {
        files_.remove(part);
        gone.push_back(part);
      });
    if (gone.empty()) return;
    try {
      base::sync(files_.folder());
    } catch (const base::FileError&) {
      return;
    }
    IndexBatch batch(*index_);
    for (const std::uint64_t part : gone) batch.forget_removed(part);
    write(batch);
    for (const std::uint64_t part : gone) state_.removed.erase(part);
  }

  HistoryFolder folder_;
  base::Descriptor lock_;
  HistoryOptions options_;
  mutable PartFiles files_;
  /// Held by what changes something; what it changes of the state it does under `looking_` as well, which
  /// those that only look share.
  mutable std::mutex changing_;
  mutable std::shared_mutex looking_;
  std::unique_ptr<IndexDatabase> index_;
  AlignedBytes buffer_;
  HistoryState state_;
  mutable DamageBook damage_;
  /// The index has to be opened again before it is written to.
  bool failed_ = false;
  /// Parts of which it is not known whether the index has them, and that must not count.
  std::set<std::uint64_t> refused_;
};

}  // namespace

std::unique_ptr<HistoryStore> open_history_store(const std::filesystem::path& folder,
                                                 const HistoryOptions& options) {
  try {
    return std::make_unique<RocksdbHistoryStore>(folder, options);
  } catch (const base::FileError& error) {
    throw HistoryError("history " + std::string(error.what()));
  } catch (const fs::filesystem_error& error) {
    throw HistoryError("history " + folder.string() + ": " + error.code().message());
  }
}

}  // namespace vigil::history
