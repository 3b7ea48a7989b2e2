#include "engine/tensors/files/offload_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "traces/base/error.h"
#include "traces/base/printable.h"
#include "traces/base/temporary.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValueEnd = ".safetensors";
constexpr const char* kLockName = ".offprof.lock";
constexpr std::size_t kLongestFileName = 255;  ///< NAME_MAX of Linux

bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

std::string file_name(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    const bool hides = c == '.' && escaped.empty();
    escaped += stands_for_itself(c) && !hides ? std::string(1, c)
                                              : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped.append(kValueEnd);
}

/// Returns the name of the value in a file; nullopt: it is not the file of a value.
std::optional<std::string> name_in(std::string_view file) {
  if (!file.ends_with(kValueEnd)) return std::nullopt;
  const std::string_view escaped = file.substr(0, file.size() - kValueEnd.size());
  std::string name;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(escaped[i]);
    if (c == '%') {
      const char* const digits = escaped.data() + i + 1;
      std::from_chars(digits, escaped.data() + std::min(i + 3, escaped.size()), c, 16);
      i += 2;
    }
    name += static_cast<char>(c);
  }
  return file_name(name) == file ? std::optional(name) : std::nullopt;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw input_error(fmt::format("cannot create the folder '{}': {}", path.string(), error.message()));
  if (!fs::is_directory(path, error)) throw input_error(fmt::format("'{}' is not a folder", path.string()));
}

Descriptor lock_folder(const fs::path& path) {
  Descriptor lock(::open((path / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.valid())
    throw input_error(
        fmt::format("cannot write into the folder '{}': {}", path.string(), std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK)
    throw environment_error(fmt::format("the folder '{}' is already in use", path.string()),
                            "Give each process and each OffloadFolder its own folder.");
  throw environment_error(
      fmt::format("cannot lock the folder '{}': {}", path.string(), std::strerror(errno)));
}

/// Removes partial files. Nobody else writes here while the folder is locked.
void remove_leftovers(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    std::error_code error;  // a file that cannot be removed only takes space
    if (is_temporary(entry.path())) fs::remove(entry.path(), error);
  }
}

}  // namespace

std::shared_ptr<OffloadFolder> OffloadFolder::open(const fs::path& path) {
  make_folder(path);
  return std::shared_ptr<OffloadFolder>(new OffloadFolder(path));
}

OffloadFolder::OffloadFolder(const fs::path& path) : path_(path), lock_(lock_folder(path)) {
  remove_leftovers(path);
}

fs::path OffloadFolder::file_of(std::string_view name) const {
  const std::string file = file_name(name);
  if (!name.empty() && file.size() <= kLongestFileName) return path_ / file;
  throw input_error(fmt::format("an offloaded tensor cannot be named '{}': {}", printable(name),
                                name.empty() ? "the name is empty" : "the name is too long for a file name"));
}

std::vector<std::string> OffloadFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_))
    if (auto name = name_in(entry.path().filename().string())) names.push_back(std::move(*name));
  std::sort(names.begin(), names.end());
  return names;
}

OffloadFolder::Claim::Claim(std::shared_ptr<OffloadFolder> folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)) {
  folder_->file_of(name_);
  const std::lock_guard lock(folder_->mutex_);
  if (!folder_->claimed_.insert(name_).second)
    throw input_error(fmt::format("another offloaded tensor in '{}' is named '{}'", folder_->path_.string(),
                                  printable(name_)),
                      "Give each tensor its own name or its own folder.");
}

OffloadFolder::Claim::~Claim() {
  if (folder_ == nullptr) return;
  const std::lock_guard lock(folder_->mutex_);
  folder_->claimed_.erase(name_);
}

}  // namespace offprof
