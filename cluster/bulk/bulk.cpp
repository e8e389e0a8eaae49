#include "cluster/bulk/bulk.h"

#include "cluster/bulk/receive_account.h"

namespace vigil::cluster {

std::string_view name_of(BulkEnd end) {
  switch (end) {
    case BulkEnd::connection:
      return "connection";
    case BulkEnd::silence:
      return "silence";
    case BulkEnd::checksum:
      return "checksum";
    case BulkEnd::credit:
      return "credit";
    case BulkEnd::limits:
      return "limits";
    case BulkEnd::protocol:
      return "protocol";
    case BulkEnd::refused:
      return "refused";
    case BulkEnd::superseded:
      return "superseded";
    case BulkEnd::unlisted:
      return "unlisted";
    case BulkEnd::closed:
      return "closed";
  }
  return "";
}

BulkReceipt::~BulkReceipt() {
  if (account_ != nullptr) account_->release(stream_, number_, bytes_);
}

}  // namespace vigil::cluster
