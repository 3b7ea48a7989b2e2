#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Records commands instead of carrying them out. For tests.
class RecordingExecutor final : public Executor {
 public:
  void execute(const Command& command) override {
    if (!short_log_.empty()) short_log_ += ", ";
    std::visit([this](const auto& each) { add_to_short_log(each); }, command);
    commands_.push_back(command);
  }

  /// Does not record refused commands.
  bool try_execute(const RefusableCommand& command) override {
    if (refusals_ == 0) return Executor::try_execute(command);
    --refusals_;
    return false;
  }
  /// Acts like a device that has no memory for the next `count` copies in.
  void refuse_next(int count) { refusals_ = count; }

  /// Returns the commands since the last call, such as `keep 0, copy_out 0, wait_out 0`. Each command comes
  /// with the number of its copy; `keep` and `release_kept` come with the number of their tensor.
  std::string take_short_log() { return std::exchange(short_log_, {}); }

  const std::vector<Command>& commands() const { return commands_; }

 private:
  template <typename EachCommand>
  void add_to_short_log(const EachCommand& command) {
    short_log_ += command.kName;
    if constexpr (requires { command.copy; })
      short_log_ += " " + std::to_string(command.copy);
    else
      short_log_ += " " + std::to_string(command.tensor);
  }

  int refusals_ = 0;
  std::string short_log_;
  std::vector<Command> commands_;
};

}  // namespace offprof
