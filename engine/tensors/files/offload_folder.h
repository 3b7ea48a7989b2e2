#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/descriptor.h"

namespace offprof {

/// A folder of tensors' values, each in a separate file. Only one process may use it at a time. Its functions
/// may be called from any thread.
class OffloadFolder {
 public:
  /// Creates the folder if it is missing, and removes partial files that a killed process has left. Throws
  /// Error (input) if the folder cannot be created or written, and Error (environment) if it is in use.
  static std::shared_ptr<OffloadFolder> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }

  /// Returns the path of the value's file, which need not exist. It is always inside the folder: characters
  /// other than letters, digits and `_-.` are escaped like `%2F`, and so is a dot at the beginning. Throws
  /// Error (input) for a name that is empty or, after escaping, longer than file systems allow.
  std::filesystem::path file_of(std::string_view name) const;
  /// Returns the names of the existing values, sorted.
  std::vector<std::string> names() const;

  /// Reserves a name for one user in this process while this object lives.
  class Claim {
   public:
    /// Throws Error (input) if the name is already claimed.
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
  std::set<std::string, std::less<>> claimed_;  ///< guarded by `mutex_`
};

}  // namespace offprof
