#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/command_log.h"
#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Records commands instead of carrying them out. For tests.
class RecordingExecutor final : public Executor {
 public:
  void execute(const Command& command) override {
    if (!short_log_.empty()) short_log_ += ", ";
    short_log_ += to_string(command.kind);
    short_log_ += " " + std::to_string(command.copy < 0 ? command.tensor : command.copy);
    commands_.push_back(command);
  }

  /// Does not record refused commands.
  bool try_execute(const Command& command) override {
    if (refusals_ == 0) return Executor::try_execute(command);
    --refusals_;
    return false;
  }
  /// Acts like a device that has no memory for the next `count` copies in.
  void refuse_next(int count) { refusals_ = count; }

  /// Returns the commands since the last call, such as `keep 0, copy_out 0, wait_out 0`. Each command comes
  /// with the number of its copy; `keep` and `free_unpacked` come with the number of their tensor.
  std::string take_short_log() { return std::exchange(short_log_, {}); }

  const std::vector<Command>& commands() const { return commands_; }

 private:
  int refusals_ = 0;
  std::string short_log_;
  std::vector<Command> commands_;
};

}  // namespace offprof
