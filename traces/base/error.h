#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace offprof {

/// Kind of an Error. Only `main` turns it into an exit status.
enum class ErrorKind {
  kInput,        ///< bad usage or a bad input file: exit 2
  kEnvironment,  ///< the machine lacks memory, a library or the like: exit 3
};

/// Problem that a user can cause and fix. `what()` describes the problem, its place and its cause; `hint()`
/// describes the next step. A condition that only a bug can break is a check (see check.h), never an Error.
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

/// Returns a usage or input-file error (exit 2).
inline Error input_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::kInput, message, std::move(hint)};
}

/// Returns an error for something that the machine lacks (exit 3).
inline Error environment_error(const std::string& message, std::string hint = {}) {
  return {ErrorKind::kEnvironment, message, std::move(hint)};
}

}  // namespace offprof
