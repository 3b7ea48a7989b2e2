#include "traces/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/file_size_limit.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/base/temporary.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

class FileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  /// Writes the file without the code under test.
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::string raw(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t count_files() const { return folder_.files().size(); }

  TestFolder folder_;
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 10007);
  return text;
}

TEST_F(FileTest, ReadsBackWhatItWrote) {
  const std::string text("a\0b\n\xff", 5);
  write_file(path("f"), text);
  EXPECT_EQ(read_file(path("f")), text);
  EXPECT_EQ(raw("f"), text);
}

TEST_F(FileTest, ReadsEmptyFiles) {
  EXPECT_EQ(read_file(put("empty", "")), "");
}

TEST_F(FileTest, CompressesIfTheNameEndsInGz) {
  const std::string text = long_text();
  write_file(path("f.gz"), text);
  EXPECT_LT(raw("f.gz").size(), text.size() / 2);
  EXPECT_EQ(read_file(path("f.gz")), text);
}

TEST_F(FileTest, DecompressesGzipUnderAnyName) {
  write_file(path("f.gz"), "text");
  fs::rename(path("f.gz"), path("f.json"));
  EXPECT_EQ(read_file(path("f.json")), "text");
}

TEST_F(FileTest, AcceptsGzipMembersThatEndAnywhere) {
  std::string text, compact;
  for (int i = 0; i < 700; ++i) {  // so that some members cross the end of a chunk
    std::string part;
    for (int j = 0; j < 100; ++j) part += std::to_string(i * 104'729 + j * 7919);
    write_file(path("part.gz"), part);
    compact += raw("part.gz");
    text += part;
  }
  EXPECT_EQ(read_file(put("all.gz", compact)), text);
  EXPECT_THAT(message_of([&] { read_file(put("short.gz", compact.substr(0, compact.size() - 5))); }),
              HasSubstr("ends early"));
}

TEST_F(FileTest, ReturnsTheWholeFileInPieces) {
  const std::string text = long_text();
  for (const char* name : {"f", "f.gz"}) {
    write_file(path(name), text);
    const auto source = open_file(path(name));
    std::string all, piece(1001, '\0');
    std::size_t size = piece.size();
    while (size == piece.size()) {
      size = source->read(piece);
      all.append(piece, 0, size);
    }
    EXPECT_EQ(all, text) << name;
    EXPECT_EQ(source->read(piece), 0U) << name;
  }
}

TEST_F(FileTest, DecompressesEveryMemberOfAGzipFile) {
  write_file(path("a.gz"), "one ");
  write_file(path("b.gz"), "");
  write_file(path("c.gz"), "two");
  EXPECT_EQ(read_file(put("all", raw("a.gz") + raw("b.gz") + raw("c.gz"))), "one two");
}

TEST_F(FileTest, ReportsTruncatedGzip) {
  write_file(path("f.gz"), long_text());
  put("half", raw("f.gz").substr(0, 1000));
  EXPECT_THAT(message_of([&] { read_file(path("half")); }), HasSubstr("truncated"));
}

TEST_F(FileTest, ReportsDamagedGzip) {
  write_file(path("f.gz"), long_text());
  std::string bytes = raw("f.gz");
  bytes.replace(500, 20, 20, '\0');
  put("bad", bytes);
  EXPECT_THAT(message_of([&] { read_file(path("bad")); }), HasSubstr("damaged"));
}

TEST_F(FileTest, RejectsAFileAboveTheGivenLimit) {
  const std::string text(1000, 'x');
  write_file(path("f.gz"), text);
  for (const std::string& name : {put("f", text), path("f.gz")}) {
    EXPECT_EQ(read_file(name, 1000), text);
    EXPECT_THAT(message_of([&] { read_file(name, 999); }), HasSubstr("has more than 999 B"));
  }
}

TEST_F(FileTest, ReportsAMissingFile) {
  EXPECT_THAT(message_of([&] { read_file(path("none")); }), HasSubstr("No such file"));
}

TEST_F(FileTest, ReportsAFolder) {
  EXPECT_THAT(message_of([&] { read_file(folder_.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of([&] { write_file(folder_.path(), "x"); }), HasSubstr("it is a folder"));
}

TEST_F(FileTest, ReplacesAFileWithoutLeavingATemporary) {
  put("f", "old");
  write_file(path("f"), "new");
  EXPECT_EQ(raw("f"), "new");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(FileTest, KeepsTheModeOfTheOldFile) {
  ::chmod(put("f", "old").c_str(), 0640);
  write_file(path("f"), "new");
  EXPECT_EQ(fs::status(path("f")).permissions(), static_cast<fs::perms>(0640));
}

TEST_F(FileTest, KeepsTheOldFileWhenTheDiskIsFull) {
  put("f", "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    message = message_of([&] { write_file(path("f"), std::string(5000, 'x')); });
  }
  EXPECT_THAT(message, HasSubstr("the old file is unchanged"));
  EXPECT_EQ(raw("f"), "old");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(FileTest, WritesThroughSymbolicLinks) {
  fs::create_directory(path("real"));
  put("real/f", "old");
  fs::create_symlink("real/f", path("link"));
  fs::create_symlink("link", path("link2"));
  write_file(path("link2"), "new");
  EXPECT_EQ(raw("real/f"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("link2")));
}

TEST_F(FileTest, CreatesTheTargetOfADanglingLink) {
  fs::create_symlink("later", path("link"));
  write_file(path("link"), "new");
  EXPECT_EQ(raw("later"), "new");
}

TEST_F(FileTest, RejectsCircularLinks) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_THAT(message_of([&] { write_file(path("a"), "x"); }), HasSubstr("symbolic links"));
}

TEST_F(FileTest, WritesIntoPipes) {
  ::mkfifo(path("pipe").c_str(), 0600);
  std::string got;
  std::thread reader([&] { got = raw("pipe"); });
  write_file(path("pipe"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(FileTest, ReportsAFullDevice) {
  EXPECT_THAT(message_of([] { write_file("/dev/full", "x"); }), HasSubstr("No space left"));
}

TEST_F(FileTest, WritesDashToStandardOutput) {
  ::testing::internal::CaptureStdout();
  write_file("-", "to stdout");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "to stdout");
}

TEST_F(FileTest, CheckWritableLeavesNoFile) {
  check_writable(path("f"));
  check_writable("-");
  EXPECT_EQ(count_files(), 0);
}

TEST_F(FileTest, CheckWritableLeavesTheOldFile) {
  put("f", "old");
  check_writable(path("f"));
  EXPECT_EQ(raw("f"), "old");
}

TEST_F(FileTest, CheckWritableFindsAMissingFolder) {
  EXPECT_THAT(message_of([&] { check_writable(path("no/f")); }), HasSubstr("does not exist"));
}

TEST_F(FileTest, ReportsAFolderThatAcceptsNoFiles) {
  EXPECT_THAT(message_of([] { check_writable("/proc/x.json"); }),
              HasSubstr("cannot create a file in '/proc': No such file or directory"));
}

TEST_F(FileTest, CheckWritableRejectsFolders) {
  EXPECT_THAT(message_of([&] { check_writable(folder_.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of([&] { check_writable(""); }), HasSubstr("the name is empty"));
}

TEST_F(FileTest, EndsOnASignalWithItsStatus) {
  const auto end_by_signal = [] {
    std::signal(SIGINT, SIG_DFL);  // a shell makes background jobs ignore it
    exit_cleanly_on_signals();
    std::raise(SIGINT);
  };
  EXPECT_EXIT(end_by_signal(), ::testing::ExitedWithCode(130), "");
}

TEST_F(FileTest, LeavesOnlyTheOldFileAfterASignalWhileWriting) {
  put("f", "old");
  const auto interrupted = [&] {
    exit_cleanly_on_signals();
    const FileSizeLimit limit(1000);
    std::signal(SIGXFSZ, [](int) { std::raise(SIGTERM); });  // arrives in the middle of the write
    write_file(path("f"), std::string(5000, 'x'));
  };
  EXPECT_EXIT(interrupted(), ::testing::ExitedWithCode(143), "");
  EXPECT_EQ(raw("f"), "old");
  EXPECT_EQ(count_files(), 1);
}

TEST_F(FileTest, KeepsIgnoredSignalsIgnored) {
  const auto nohup = [] {
    std::signal(SIGHUP, SIG_IGN);
    exit_cleanly_on_signals();
    std::raise(SIGHUP);
    ::_exit(0);
  };
  EXPECT_EXIT(nohup(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace offprof
