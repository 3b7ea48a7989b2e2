// Calls a fuzz target with each file of a corpus without libFuzzer, and checks that the target accepts
// exactly the listed files.
//
//   TARGET_fuzzer ACCEPTED FOLDER
//
//   ACCEPTED  a file with lines `FOLDER_NAME/FILE_NAME`: these files must be accepted, all others must be
//             rejected
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;

/// Returns the file's bytes as they are, without decompressing gzip.
std::string bytes_of(const fs::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  OFFPROF_CHECK(file != nullptr);
  std::string bytes(fs::file_size(path), '\0');
  OFFPROF_CHECK(std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  return bytes;
}

/// Returns the names of the files in one corpus that must be accepted.
std::set<std::string> accepted_names(const fs::path& list, const std::string& corpus) {
  std::ifstream lines(list);
  OFFPROF_CHECK(lines.is_open());
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(corpus + "/")) names.insert(line.substr(corpus.size() + 1));
  return names;
}

/// Returns true if the target accepts or rejects the file as expected.
bool goes_as_listed(const fs::path& path, bool must_be_accepted) {
  const std::string bytes = bytes_of(path);
  offprof::input_is_accepted = false;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (offprof::input_is_accepted == must_be_accepted) return true;
  const std::string what = must_be_accepted ? "refused, and listed as accepted: " + offprof::last_refusal
                                            : "accepted, and not listed as such";
  std::printf("%s: %s\n", path.c_str(), what.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  OFFPROF_CHECK(argc == 3);
  const fs::path folder = argv[2];
  std::set<std::string> accepted = accepted_names(argv[1], folder.filename());
  int count = 0, wrong = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool must_be_accepted = accepted.erase(entry.path().filename()) > 0;
    wrong += goes_as_listed(entry.path(), must_be_accepted) ? 0 : 1;
    ++count;
  }
  for (const std::string& name : accepted) std::printf("%s is listed, but does not exist\n", name.c_str());
  std::printf("%d inputs, of which %d went otherwise than listed\n", count, wrong);
  return count > 0 && wrong == 0 && accepted.empty() ? 0 : 1;
}
