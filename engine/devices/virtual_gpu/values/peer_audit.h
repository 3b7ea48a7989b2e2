#pragma once

#include <string>
#include <vector>

namespace offprof {

/// Compares what ranks of a job have sent with what they have received, after all have ended. `folder` is
/// that of PeerSettings.
///
/// Returns a text for each pair of ranks, in one direction, whose messages do not match: the first such
/// message, with the places in the program. Communicators that a rank has not left, which a failure does,
/// are not compared. A message to or from a rank that has said nothing in the communicator is reported only
/// if all ranks of the job have run. Throws Error (environment) if a file cannot be read.
std::vector<std::string> unmatched_messages(const std::string& folder);

}  // namespace offprof
