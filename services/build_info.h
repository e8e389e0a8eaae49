// What was built. Told apart from what is compiled, so that a commit is no reason to compile more than a
// line.
#pragma once

namespace vigil::services {

extern const char* const kVersion;
/// The commit that was built, "+" if the tree had changes; "unknown" outside of a git checkout.
extern const char* const kCommit;

}  // namespace vigil::services
