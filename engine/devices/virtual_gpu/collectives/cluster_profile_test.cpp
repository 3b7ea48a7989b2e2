#include "engine/devices/virtual_gpu/collectives/cluster_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/devices/virtual_gpu/collectives/built_in_clusters.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Returns the text of dgx-h100 with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text(built_in_clusters().front().second);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_cluster(text, "my.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

TEST(ClusterProfile, EveryBuiltInOneLoadsByItsName) {
  EXPECT_THAT(cluster_names(), ElementsAre("dgx-h100", "dgx-a100", "dgx-b200", "pcie-gen4", "pcie-gen5"));
  for (const std::string& name : cluster_names()) EXPECT_EQ(load_cluster(name).name, name);
}

TEST(ClusterProfile, EveryCardHasAUsualOne) {
  const auto name_for = [](const char* card) { return usual_cluster(load_profile(card)).name; };
  EXPECT_EQ(name_for("h200"), "dgx-h100");
  EXPECT_EQ(name_for("h100-pcie"), "pcie-gen5");
  EXPECT_EQ(name_for("a100-80gb"), "dgx-a100");
  EXPECT_EQ(name_for("b200"), "dgx-b200");
  EXPECT_EQ(name_for("rtx4090"), "pcie-gen4");
}

TEST(ClusterProfile, WrongKeysAndValuesAreNamed) {
  EXPECT_THAT(error_of(changed("\"cards\"", "\"card\"")),
              AllOf(HasSubstr("my.json"), HasSubstr("a cluster has no key 'network.card'")));
  EXPECT_THAT(error_of(changed("\"nvlink\"", "\"wire\"")), HasSubstr("node.link"));
  EXPECT_THAT(error_of(changed("\"node_low\": 0.8", "\"node_low\": 2")), HasSubstr("2 is more than 1.25"));
  EXPECT_THAT(error_of(changed("offprof.cluster/1", "offprof.cluster/2")), HasSubstr("offprof.cluster/2"));
  EXPECT_THAT(error_of(changed("\"sharp_bytes_per_second\": 476000000000", "\"sharp_bytes_per_second\": -1")),
              HasSubstr("sharp_bytes_per_second"));
}

TEST(ClusterProfile, AnUnknownNameGetsAGuess) {
  try {
    load_cluster("dgx-h10");
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(), HasSubstr("dgx-h100"));
  }
}

}  // namespace
}  // namespace offprof
