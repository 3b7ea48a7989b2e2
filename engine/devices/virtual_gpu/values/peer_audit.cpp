#include "engine/devices/virtual_gpu/values/peer_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "engine/devices/virtual_gpu/values/peer_file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

/// Number of characters of a file name that stand for the communicator.
constexpr std::size_t kLengthOfCommunicator = 16;

/// A line of messages between two ranks of a communicator.
struct Line {
  std::string communicator;  ///< first part of the names of its files
  int from = 0, to = 0;

  auto operator<=>(const Line&) const = default;  // NOLINT(modernize-use-nullptr): compares with 0
};

/// Returns the line that the file of that name is an end of; nullopt: it is none.
std::optional<Line> line_of(const std::string& name) {
  Line line{name.substr(0, kLengthOfCommunicator)};
  const char* const end = name.c_str() + kLengthOfCommunicator;
  return std::sscanf(end, ".%d-%d.", &line.from, &line.to) == 2 ? std::optional(line) : std::nullopt;
}

/// Reads all messages.
std::vector<PeerMessage> messages_of(PeerFile file) {
  std::vector<PeerMessage> messages;
  while (file.has(messages.size())) messages.push_back(file.at(messages.size()));
  return messages;
}

/// Returns what is sent or received: `400 bytes of float32`.
std::string_view content_of(const PeerMessage& message) {
  const std::string_view what = message.what;
  return what.substr(std::min(what.size(), what.find(" of ") + 4));
}

class Audit {
 public:
  explicit Audit(std::string folder) : folder_(std::move(folder)) {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name.find('.') != kLengthOfCommunicator) continue;  // other things that ranks tell each other
      files_.push_back(name);
      if (auto line = line_of(name)) lines_.insert(*std::move(line));
    }
  }

  std::vector<std::string> problems() {
    std::vector<std::string> found;
    for (const Line& line : lines_)
      if (auto problem = problem_of(line)) found.push_back(*std::move(problem));
    return found;
  }

 private:
  enum class State { kAbsent, kUnfinished, kLeft };

  PeerFile file(const std::string& name) const { return PeerFile(folder_ + "/" + name); }

  PeerFile file_of(const Line& line, int rank) const {
    return file(fmt::format("{}.{}", line.communicator, rank));
  }

  /// A communicator of many ranks has many lines.
  State state_of(const Line& line, int rank) {
    const auto [known, is_new] = states_.try_emplace({line.communicator, rank}, State::kAbsent);
    PeerFile said = file_of(line, rank);
    if (!is_new || !said.process()) return known->second;
    std::size_t count = 0;
    while (said.has(count)) ++count;
    const bool has_left = count > 0 && said.at(count - 1).what == kNothingMore;
    return known->second = has_left ? State::kLeft : State::kUnfinished;
  }

  std::optional<std::string> problem_of(const Line& line) {
    const State from = state_of(line, line.from), to = state_of(line, line.to);
    if (from == State::kUnfinished || to == State::kUnfinished) return std::nullopt;
    if ((from == State::kAbsent || to == State::kAbsent) && !all_have_run()) return std::nullopt;
    const std::string ends = fmt::format("{}.{}-{}", line.communicator, line.from, line.to);
    const std::vector<PeerMessage> sent = messages_of(file(ends + ".sent"));
    const std::vector<PeerMessage> received = messages_of(file(ends + ".received"));
    const auto [sent_at, received_at] = std::ranges::mismatch(sent, received, {}, content_of, content_of);
    const auto describe = [&](int rank, const char* verb, const PeerMessage& message) {
      return fmt::format("rank {} {} {}{}", file_of(line, rank).process()->rank, verb, content_of(message),
                         at_site(message.site));
    };
    if (sent_at == sent.end() && received_at == received.end()) return std::nullopt;
    if (received_at == received.end())
      return describe(line.from, "sends", *sent_at) + ", which no rank receives";
    const std::string receives = describe(line.to, "receives", *received_at);
    if (sent_at == sent.end()) return receives + ", which no rank sends";
    return describe(line.from, "sends", *sent_at) + ", and " + receives;
  }

  /// Returns true if each rank of the job has joined a communicator.
  bool all_have_run() const {
    std::set<int> ranks, sizes;
    for (const std::string& name : files_)
      if (const auto process = file(name).process()) {
        ranks.insert(process->rank);
        sizes.insert(process->ranks);
      }
    return sizes == std::set{static_cast<int>(ranks.size())};
  }

  std::string folder_;
  std::vector<std::string> files_;  ///< names
  std::set<Line> lines_;
  std::map<std::pair<std::string, int>, State> states_;  ///< by communicator and rank
};

}  // namespace

std::vector<std::string> unmatched_messages(const std::string& folder) {
  return Audit(folder).problems();
}

}  // namespace offprof
