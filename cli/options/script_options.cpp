#include "cli/options/script_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "cli/options/options.h"
#include "cli/plugin/python_package.h"
#include "profiler/recording/step_groups.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns the words after `--` as they were typed: the parser takes an argument such as [1,2] apart. Returns
/// `parsed` if there is no mark, or if some of the arguments are before it.
std::vector<std::string> typed_arguments(const std::vector<std::string>& argv, const std::string& program,
                                         std::vector<std::string> parsed) {
  const auto mark = std::ranges::find(argv, "--");
  const auto is_before_mark = [&](const std::string& word) {
    return std::find(argv.begin(), mark, word) != mark;
  };
  if (mark == argv.end() || parsed.empty() || !is_before_mark(program) || is_before_mark(parsed.front()))
    return parsed;
  return {mark + 1, argv.end()};
}

}  // namespace

void ScriptOptions::add_to(CLI::App& app, const std::string& what) {
  app.add_option("PROGRAM", program_, what);
  app.add_option("ARGS", request_.arguments, "Arguments of the script, after --");
  app.add_option("-m,--module", module_, "Run a Python module, as `python -m` does, instead of a script")
      ->type_name("NAME")
      ->group(kScriptGroup);
  app.add_option(
         "--python", python_,
         "Python that runs the script (default: that of the active virtual environment, else python3)")
      ->type_name("PATH")
      ->group(kScriptGroup);
  add_parsed_option(
      app, "--patience", "N|TIME", [this](const std::string& text) { read_patience(text); },
      "Limit of steps until enough of them are alike (default 100), or of time until the first step, such as "
      "30s (default 600s)")
      ->group(kScriptGroup);
  app.add_option("--shape", request_.shape,
                 "Steps to record if they differ: most-frequent, largest, or N for the N-th most frequent "
                 "(default most-frequent)")
      ->type_name("most-frequent|largest|N")
      ->group(kScriptGroup);
  app.add_option("--step-function", request_.step_function,
                 "Function whose calls are the steps, for scripts without an optimizer of torch.optim")
      ->type_name("MODULE:NAME")
      ->group(kScriptGroup);
  add_assume_option(app, balanced_experts_)->group(kScriptGroup);
  app.add_option("--apply", request_.applied_code,
                 "Python code of offprof export --to pytorch, which is applied to the script's model")
      ->type_name("FILE")
      ->group(kScriptGroup);
}

void ScriptOptions::choose_program(const std::vector<std::string>& argv) {
  request_.is_module = !module_.empty();
  if (request_.is_module && !program_.empty())
    request_.arguments.insert(request_.arguments.begin(), program_);
  if (request_.is_module) program_ = module_;
  request_.arguments = typed_arguments(argv, program_, std::move(request_.arguments));
  if (program_.empty())
    throw input_error(
        "no program is given",
        fmt::format("Name a script or a model: offprof {0} train.py, offprof {0} model.pt", argv[1]));
  if (!is_script() && !arguments().empty())
    throw input_error("a TorchScript module takes no arguments: " + arguments().front());
  if (const auto given = option_words(); !given.empty()) require_script(given.front());
}

void ScriptOptions::require_script(const std::string& option) const {
  if (is_script()) return;
  throw input_error(option + " is for training scripts, and " + program_ + " is a TorchScript module",
                    "Leave the option out, or give a script: train.py, or -m MODULE");
}

std::vector<std::string> ScriptOptions::words() const {
  return request_.is_module ? std::vector<std::string>{"-m", program_} : std::vector<std::string>{program_};
}

std::vector<std::string> ScriptOptions::option_words() const {
  std::vector<std::string> words;
  const auto add = [&](const char* flag, const std::string& value, const std::string& usual = "") {
    if (value != usual) words.insert(words.end(), {flag, value});
  };
  add("--python", python_);
  add("--patience", patience_);
  add("--shape", request_.shape, ScriptRequest{}.shape);
  add("--step-function", request_.step_function);
  add("--apply", request_.applied_code);
  if (balanced_experts_) add("--assume", "balanced-experts");
  return words;
}

ScriptRequest ScriptOptions::request() const {
  parse_shape(request_.shape);
  ScriptRequest request = request_;
  request.run.model_path = program_;
  if (!request.applied_code.empty())
    request.applied_code = std::filesystem::absolute(request.applied_code).string();
  return request;
}

void ScriptOptions::set_assumptions(std::optional<ScriptGpu>& gpu) const {
  if (gpu) gpu->balanced_experts = balanced_experts_;
  if (!gpu && balanced_experts_)
    throw input_error("--assume is for a virtual GPU: other devices compute the values",
                      "Add --device virtual.");
}

std::string ScriptOptions::python() const {
  return choose_python(python_);
}

/// Reads a number of steps or a time.
void ScriptOptions::read_patience(const std::string& text) {
  patience_ = text;
  if (text.find_first_not_of("0123456789") != std::string::npos) {
    request_.patience_seconds = static_cast<double>(parse_duration(text)) / 1e9;
    return;
  }
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), request_.patience_steps);
  if (failure != std::errc() || request_.patience_steps < 1 || request_.patience_steps > kMostSteps)
    throw input_error(fmt::format("'{}' is not a number of steps from 1 to {}", text, kMostSteps));
}

}  // namespace offprof
