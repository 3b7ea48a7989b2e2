#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace offprof {

/// What kind of trouble an Error is; `main` alone turns it into an exit status.
enum class ErrorKind {
  kInput,        ///< bad usage or a bad input file: exit 2
  kEnvironment,  ///< the machine lacks something, memory or a library: exit 3
};

/// Something a user can cause and mend. `what()` says what went wrong, where and why; `hint()` says what to
/// do next. What only a bug can cause is a check (see check.h), never an Error.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

/// A usage or input-file error (exit 2).
inline Error input_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::kInput, message, std::move(hint)};
}

/// Something that the machine lacks (exit 3).
inline Error environment_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::kEnvironment, message, std::move(hint)};
}

}  // namespace offprof
