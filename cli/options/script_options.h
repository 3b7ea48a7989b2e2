#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiler/plugin/script_io.h"

namespace offprof {

/// Group of the options for training scripts in a command's help.
inline constexpr const char* kScriptGroup = "Training scripts";

/// The program of a command line, a training script or a TorchScript module, and the options that only
/// training scripts have.
class ScriptOptions {
 public:
  /// Adds the positional arguments PROGRAM, described by `what`, and ARGS, and the group of options. This
  /// object must outlive the parse.
  void add_to(CLI::App& app, const std::string& what);

  /// Tells scripts and models apart: the parser cannot know that a module of Python (`-m`) has no path. Call
  /// it first, with the whole command line. Throws Error (input) if there is no program, or a model with
  /// arguments or with options that only scripts have.
  void choose_program(const std::vector<std::string>& argv);

  /// Throws Error (input) if the program is a model, for which there is no such option.
  void require_script(const std::string& option) const;

  bool is_script() const { return request_.is_module || program_.ends_with(".py"); }
  /// Returns the path of the script or the model, or the name of the module.
  const std::string& program() const { return program_; }
  /// Returns the words that name the program on a command line: `train.py`, or `-m` and the module's name.
  std::vector<std::string> words() const;
  /// Returns the options of the group as they were given, for the command line of another command:
  /// `--patience 30s`.
  std::vector<std::string> option_words() const;
  /// Sets what the virtual GPU assumes. Throws Error (input) if something is assumed, but there is none.
  void set_assumptions(std::optional<ScriptGpu>& gpu) const;
  /// Returns the arguments of the script.
  const std::vector<std::string>& arguments() const { return request_.arguments; }

  /// Returns the request for the script, without `run` but for the program in it. Throws Error (input) for a
  /// choice of steps that does not exist.
  ScriptRequest request() const;
  /// Returns the Python that runs the script: see choose_python.
  std::string python() const;

 private:
  void read_patience(const std::string& text);

  ScriptRequest request_;
  std::string program_, module_, python_, patience_;
  bool balanced_experts_ = false;
};

}  // namespace offprof
