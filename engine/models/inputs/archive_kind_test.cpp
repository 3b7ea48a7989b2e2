#include "engine/models/inputs/archive_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;

/// Returns the message for a file that begins with `head`; empty: it is accepted.
std::string refusal(std::string_view head) {
  try {
    check_zip_head(head, "m.pt");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.hint(), HasSubstr("torch.jit"));
    return error.what();
  }
}

TEST(ArchiveKind, AcceptsZips) {
  EXPECT_EQ(refusal("PK\x03\x04"), "");
}

TEST(ArchiveKind, RejectsPicklesAndOtherFiles) {
  EXPECT_THAT(refusal("\x80\x02}q"), HasSubstr("m.pt: a pickle"));
  EXPECT_THAT(refusal("impo"), HasSubstr("m.pt: not a TorchScript archive"));
  EXPECT_THAT(refusal("P"), HasSubstr("m.pt: not a TorchScript archive"));
  EXPECT_THAT(refusal(""), HasSubstr("m.pt: not a TorchScript archive"));
}

TEST(ArchiveKind, IdentifiesZipsByTheNamesOfTheirRecords) {
  EXPECT_THAT(what_archive_is({"archive_format", "data.pkl"}), HasSubstr("torch.export"));
  EXPECT_THAT(what_archive_is({"data.pkl", "data/0"}), HasSubstr("state dict"));
  EXPECT_THAT(what_archive_is({"word/document.xml"}), HasSubstr("a zip file that PyTorch did not write"));
  EXPECT_THAT(what_archive_is({}), HasSubstr("a zip file that PyTorch did not write"));
}

}  // namespace
}  // namespace offprof
