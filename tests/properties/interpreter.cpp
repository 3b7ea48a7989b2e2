#include "tests/properties/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string_view>

#include "tests/properties/operations.h"

namespace offprof {
namespace {

/// Returns the message up to its details: which tensor, its shape, the place in LibTorch. Without hooks,
/// autograd has another sentence for a view that was modified in place.
std::string kind_of(std::string_view message) {
  if (message.find(kCannotBeMadeAgain) != std::string_view::npos) return std::string(kCannotBeMadeAgain);
  for (const char* what : {"modified inplace", "modified by an inplace operation"})
    if (message.find(what) != std::string_view::npos) return "modified in place";
  for (const std::string_view end : {"\n", ": [", " (", ". "}) message = message.substr(0, message.find(end));
  return std::string(message);
}

void note_refusal(std::vector<std::string>& refusals, const std::string& place,
                  const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    refusals.push_back(place + ": " + kind_of(error.what()));
  }
}

void run(Pool& pool, const Instruction& instruction) {
  const Operation& operation = operation_of(instruction);
  if (operation.act != nullptr)
    operation.act(pool, instruction);
  else
    pool.add(operation.make(pool.at(instruction.first), pool.at(instruction.second), instruction.number));
}

}  // namespace

std::string describe(const Instruction& instruction, std::size_t index) {
  return fmt::format("{} {}({}, {}; {})", index, operation_of(instruction).name, instruction.first,
                     instruction.second, instruction.number);
}

std::vector<std::string> interpret(const Instructions& program, Leaves& leaves) {
  std::vector<std::string> refusals;
  Pool pool(leaves);
  for (std::size_t i = 0; i < program.size(); ++i)
    note_refusal(refusals, describe(program[i], i), [&] { run(pool, program[i]); });
  note_refusal(refusals, "at the end", [&] {
    const at::Tensor loss = pool.last_loss();
    pool.keep_leaves_only();
    if (loss.defined()) loss.backward();
  });
  return refusals;
}

bool refuses_to_make_again(const std::vector<std::string>& refusals) {
  return std::ranges::any_of(
      refusals, [](const std::string& line) { return line.find(kCannotBeMadeAgain) != std::string::npos; });
}

}  // namespace offprof
