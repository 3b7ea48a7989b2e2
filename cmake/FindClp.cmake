# Clp, COIN-OR's linear programming solver: the target Clp::Headers. The library is loaded when it is needed and
# never linked: see simulator/tuner/plans/linear_program.cpp. The Debian package is coinor-libclp-dev.
find_path(Clp_INCLUDE_DIR coin/Clp_C_Interface.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Clp REQUIRED_VARS Clp_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/setup.sh installs it (Debian: coinor-libclp-dev)")
if(Clp_FOUND AND NOT TARGET Clp::Headers)
  add_library(Clp::Headers INTERFACE IMPORTED)
  set_target_properties(Clp::Headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Clp_INCLUDE_DIR}")
endif()
mark_as_advanced(Clp_INCLUDE_DIR)
