#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/descriptor.h"

namespace offprof {

/// A folder of tensors' values, each in a file of its own, that one process at a time may use. Its functions
/// may be called from any thread.
class OffloadFolder {
 public:
  /// Makes the folder if it is not there, and removes from it what a process that was killed has left
  /// half-written. Throws Error: (input) it cannot be made or written; (environment) it is in use.
  static std::shared_ptr<OffloadFolder> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

  /// Where the value of that name lies, or will. It never leaves the folder: what is not a letter, a digit or
  /// one of
  /// `_-.` is written as `%2F`, and so is a dot at the beginning. Throws Error (input) for a name that is
  /// empty or, so written, longer than file systems allow.
  std::filesystem::path file_of(std::string_view name) const;
  /// The names of the values that lie here, sorted.
  std::vector<std::string> names() const;

  /// Whoever has it is the only one in this process to use a name, until the end of scope.
  class Claim {
   public:
    /// Throws Error (input) where another has the name.
    Claim(std::shared_ptr<OffloadFolder> folder, std::string name);
    ~Claim();
    Claim(Claim&& other) noexcept = default;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    Claim& operator=(Claim&&) = delete;

    const OffloadFolder& folder() const { return *folder_; }
    const std::string& name() const { return name_; }

   private:
    std::shared_ptr<OffloadFolder> folder_;  ///< nullptr: moved from
    std::string name_;
  };

 private:
  explicit OffloadFolder(const std::filesystem::path& path);

  std::filesystem::path path_;
  Descriptor lock_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> claimed_;  ///< under `mutex_`
};

}  // namespace offprof
