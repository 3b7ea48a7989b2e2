#include <gmock/gmock.h>

#include "tests/support/run_tests.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return offprof::run_tests();
}
