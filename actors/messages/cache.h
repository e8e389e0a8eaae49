// The interfaces of the cache, of those who wait for its disk, and of those whom it asks and who ask it. What
// they carry is in `remembered.h`, `past.h` and `actors/cache/disk.h`.
//
//   executor --WatchPtr, LeftPages, end--> cache --PagesToRead--> reader
//            <--WantedForms-------------         <--ReadPages----
//            <--Show---------------------        --work, Expiries--> writer
//            ---LeftPages, Shown-------->        <--DiskNews--------
//            <--Recall-------------------        <--PastRequest-- past listener
//            ---Recalled---------------->        ---PastReply---->
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>

#include "actors/messages/messages.h"

namespace vigil::actors {

/// Between devices and the cache (remembered.h), and between it and who asks about the past (past.h).
struct LeftPages;
using LeftPagesPtr = std::shared_ptr<LeftPages>;
struct Shown;
using ShownPtr = std::shared_ptr<const Shown>;
struct Recalled;
using RecalledPtr = std::shared_ptr<const Recalled>;
struct Keeps;
using KeepsPtr = std::shared_ptr<const Keeps>;
/// Between the cache and what waits for its disk (actors/cache/disk.h).
struct PagesToRead;
using PagesToReadPtr = std::shared_ptr<const PagesToRead>;
struct ReadPages;
using ReadPagesPtr = std::shared_ptr<ReadPages>;
struct DiskNews;
using DiskNewsPtr = std::shared_ptr<const DiskNews>;
struct Expiries;
using ExpiriesPtr = std::shared_ptr<const Expiries>;
struct PastRequest;
using PastRequestPtr = std::shared_ptr<const PastRequest>;
struct PastReply;
using PastReplyPtr = std::shared_ptr<const PastReply>;

}  // namespace vigil::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::LeftPagesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::ShownPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::RecalledPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::KeepsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::PagesToReadPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::ReadPagesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::DiskNewsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::ExpiriesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::PastRequestPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::PastReplyPtr)

namespace vigil::actors {

/// What an executor is to the cache.
using recalling_actor = caf::typed_actor<
    // In which forms pages are wanted from now on.
    caf::reacts_to<WantedFormsPtr>,
    // Make pages of what a camera's windows still show; `LeftPages` come of it, if anything does, and then
    // `Shown`.
    caf::reacts_to<ShowPtr>,
    // Ask this of a window of the past; `Recalled` comes back.
    caf::reacts_to<RecallPtr>,
    // Nobody waits for this one any more.
    caf::reacts_to<forget_atom, std::uint64_t>>;

/// Whoever asks about the past on behalf of others.
using past_listener_actor = caf::typed_actor<
    // A word on what was asked.
    caf::reacts_to<PastReplyPtr>>;

/// The CACHE actor keeps what cameras remember, and answers what is asked about it. What waits for a disk is
/// done by its readers and its writer.
using cache_actor = caf::typed_actor<
    // The sending device makes pages and can be asked; it is told the forms that are wanted.
    caf::reacts_to<join_atom, std::string>,
    // A camera that is remembered, ahead of its first page, and whenever its settings change.
    caf::reacts_to<WatchPtr>,
    // No page of this camera follows.
    caf::reacts_to<end_atom, std::string>,
    // How long cameras are remembered, of those that another node may have.
    caf::reacts_to<KeepsPtr>,
    // Pages that have left their windows, or are shown.
    caf::reacts_to<LeftPagesPtr>,
    // All that the sending device has of a camera has come.
    caf::reacts_to<ShownPtr>,
    // What came of a window that was asked.
    caf::reacts_to<RecalledPtr>,
    // A request, whose replies go to the sender; and one whose answer nobody waits for any more.
    caf::reacts_to<PastRequestPtr>, caf::reacts_to<forget_atom, std::uint64_t>,
    // What a reader has read, and what the writer has written (from these).
    caf::reacts_to<ReadPagesPtr>, caf::reacts_to<DiskNewsPtr>,
    // Say that you are alive, and let go of what is too old (to itself).
    caf::reacts_to<tick_atom>,
    // Let all that was taken be written, and quit.
    caf::reacts_to<stop_atom>>;

/// A READER waits for the disk, for the cache.
using reader_actor = caf::typed_actor<
    // Pages that a question needs; `ReadPages` goes back.
    caf::reacts_to<PagesToReadPtr>,
    // Say that you are alive (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The WRITER waits for the disk, for the cache: writes parts, and removes what is over or erased.
using writer_actor = caf::typed_actor<
    // Write what is complete, and remove what is to go; `DiskNews` goes to the cache.
    caf::reacts_to<work_atom>,
    // These hours are over.
    caf::reacts_to<ExpiriesPtr>,
    // Say that you are alive (to itself).
    caf::reacts_to<tick_atom>,
    // Write all that there is, and quit.
    caf::reacts_to<stop_atom>>;

}  // namespace vigil::actors
